"""The Realtime Database with its clients in Python: over REST, event streams and bare sockets."""

import base64
import contextlib
import json
import os
import socket
import threading
import uuid

import firebase_admin
import pytest
import requests
from conftest import PROJECT, until
from firebase_admin import db

OWNER = {"Authorization": "Bearer owner"}


@pytest.fixture(name="namespace")
def fixture_namespace():
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture(name="root")
def fixture_root(suite, namespace, monkeypatch):
    """The root of an instance of its own, of the administrator's library."""
    monkeypatch.setenv("FIREBASE_DATABASE_EMULATOR_HOST", suite.address("database"))
    app = firebase_admin.initialize_app(
        options={"projectId": PROJECT, "databaseURL": f"https://{namespace}.firebaseio.com"},
        name=namespace)
    yield db.reference("/", app=app)
    firebase_admin.delete_app(app)


class Rest:
    """The REST API of one instance."""

    def __init__(self, suite, namespace):
        self.base = f"http://{suite.address('database')}"
        self.namespace = namespace

    def send(self, method, path, body=None, headers=None, **parameters):
        return requests.request(
            method, f"{self.base}{path}", timeout=30,
            params={"ns": self.namespace, **parameters},
            headers=OWNER if headers is None else headers,
            data=body if body is None or isinstance(body, str) else json.dumps(body))


@pytest.fixture(name="rest")
def fixture_rest(suite, namespace):
    return Rest(suite, namespace)


class WebSocket:
    """A WebSocket that speaks the protocol of Firebase's clients, without any library."""

    def __init__(self, address, target, fields=""):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.rest = b""
        self.number = 0
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((
            f"GET {target} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{fields}\r\n"
        ).encode())
        head, self.rest = self.read_until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head

    def read_until(self, end):
        data = self.rest
        while end not in data:
            data += self.read_more()
        return data.split(end, 1)

    def read_more(self):
        more = self.socket.recv(65536)
        if not more:
            raise EOFError
        return more

    def take(self, count):
        while len(self.rest) < count:
            self.rest += self.read_more()
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.socket.sendall(b"\x81" + length + mask + masked)

    def receive(self):
        _, size = self.take(2)
        if size == 126:
            size = int.from_bytes(self.take(2), "big")
        elif size == 127:
            size = int.from_bytes(self.take(8), "big")
        return json.loads(self.take(size))

    def request(self, action, **body):
        """Sends a request; returns what comes until its response, and the response."""
        self.number += 1
        self.send(json.dumps({"t": "d", "d": {"r": self.number, "a": action, "b": body}}))
        pushes = []
        while True:
            message = self.receive()["d"]
            if message.get("r") == self.number:
                return pushes, message["b"]
            pushes.append(message)

    def close(self):
        self.socket.close()


@pytest.fixture(name="connect")
def fixture_connect(suite, namespace):
    """Opens sockets to the instance."""
    with contextlib.ExitStack() as stack:
        def connect():
            opened = WebSocket(suite.address("database"), f"/.ws?v=5&ns={namespace}")
            stack.callback(opened.close)
            return opened
        yield connect


def test_administrator_reads_and_writes(root):
    place = root.child("messages")
    place.set({"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}})
    assert place.get() == {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}}
    assert place.get(shallow=True) == {"a": True, "b": True, "c": True}
    place.update({"a/n": 5, "b": None})
    assert place.get() == {"a": {"n": 5}, "c": {"n": 3}}
    pushed = place.push({"n": 9})
    assert pushed.get() == {"n": 9}
    place.child("a").delete()
    assert set(place.get()) == {"c", pushed.key}


def test_administrator_queries(root):
    place = root.child("scores")
    place.set({"a": 3, "b": 1, "c": 2})
    assert list(place.order_by_key().limit_to_first(2).get()) == ["a", "b"]
    assert list(place.order_by_key().start_at("b").get()) == ["b", "c"]


def test_administrator_sees_conflicts(root):
    place = root.child("count")
    value, tag = place.get(etag=True)
    assert value is None
    assert place.set_if_unchanged(tag, 1) == (True, 1, place.get(etag=True)[1])
    changed, current, _ = place.set_if_unchanged(tag, 2)
    assert (changed, current) == (False, 1)
    assert place.get_if_changed(place.get(etag=True)[1])[0] is False
    assert place.transaction(lambda count: (count or 0) + 1) == 2


def test_concurrent_transactions_lose_nothing(root):
    place = root.child("count")
    threads = [
        threading.Thread(target=place.transaction, args=(lambda count: (count or 0) + 1,))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.get() == 8


# The library's thread reads on while its connection is closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_administrator_listens(root):
    place = root.child("live")
    place.set({"a": 1})
    events = []
    registration = place.listen(events.append)
    try:
        until(lambda: events, "no first value came")
        assert (events[0].event_type, events[0].path, events[0].data) == ("put", "/", {"a": 1})
        place.child("b").set(2)
        until(lambda: len(events) == 2, "no change came")
        assert (events[1].path, events[1].data) == ("/b", 2)
        place.update({"a": None, "c/d": 3})
        until(lambda: len(events) == 3, "no update came")
        assert (events[2].event_type, events[2].data) == ("patch", {"a": None, "c/d": 3})
    finally:
        # The library's thread ends with the next event.
        threading.Timer(0.5, place.child("end").set, [True]).start()
        registration.close()


def test_answers_have_productions_form(rest):
    reply = rest.send("GET", "/a.json")
    assert (reply.status_code, reply.text) == (200, "null")
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    reply = rest.send("PUT", "/a.b.json", 1)
    assert (reply.status_code, reply.text) == (
        400, '{\n  "error" : "Invalid path: Invalid token in path"\n}\n')
    reply = rest.send("PUT", "/a.json", '{"$": 1}')
    assert "couldn't parse key beginning at 1:2." in reply.json()["error"]
    assert rest.send("PUT", "/a.json", {"b": [1, None, 2]}, print="silent").status_code == 204
    assert rest.send("GET", "/a.json", print="pretty").text == '{\n  "b" : [ 1, null, 2 ]\n}'
    assert rest.send("GET", "/a").status_code == 404


def test_pages_of_other_sites_are_refused(rest, suite):
    headers = {**OWNER, "Origin": "https://example.com"}
    assert rest.send("GET", "/a.json", headers=headers).status_code == 403
    with pytest.raises(AssertionError, match="403"):
        WebSocket(suite.address("database"), "/.ws?v=5&ns=x", "Origin: https://example.com\r\n")


def test_own_writes_come_before_their_responses(connect, rest):
    client = connect()
    hello = client.receive()
    assert hello["t"] == "c" and hello["d"]["t"] == "h"
    assert hello["d"]["d"]["h"] == rest.base.removeprefix("http://")
    pushes, reply = client.request("q", p="/a", h="")
    assert [push["b"] for push in pushes] == [{"p": "a", "d": None}]
    assert reply == {"s": "ok", "d": {}}
    pushes, reply = client.request("p", p="/a/b", d={"x": 1})
    assert [push["b"] for push in pushes] == [{"p": "a/b", "d": {"x": 1}}]
    assert reply["s"] == "ok"


def test_all_clients_see_a_change(connect, rest):
    first, second = connect(), connect()
    for client in (first, second):
        client.receive()
        client.request("q", p="/room", h="")
    first.request("m", p="/room", d={"a/b": 1, "c": "é😀"})
    assert second.receive()["d"] == {"a": "m", "b": {"p": "room", "d": {"a/b": 1, "c": "é😀"}}}
    rest.send("PUT", "/room/c.json", "null")
    for client in (first, second):
        assert client.receive()["d"] == {"a": "d", "b": {"p": "room/c", "d": None}}


def test_a_lost_connection_applies_what_was_left(connect, rest):
    client = connect()
    client.receive()
    _, reply = client.request("o", p="/online", d={"since": {".sv": "timestamp"}})
    assert reply["s"] == "ok"
    assert rest.send("GET", "/online.json").json() is None
    client.close()
    until(lambda: rest.send("GET", "/online.json").json() is not None, "nothing was applied")


def test_bad_messages_get_an_answer(connect):
    client = connect()
    client.receive()
    for text in ("{", '{"t":"d"}', "[]"):
        client.send(text)
        assert client.receive()["d"]["t"] == "e"
    _, reply = client.request("nonsense")
    assert reply["s"] == "failed"
    _, reply = client.request("auth", cred="a.b.c")
    assert reply["s"] == "invalid_token"
    _, reply = client.request("p", p="/a.b", d=1)
    assert reply["d"] == "Invalid path: Invalid token in path"
