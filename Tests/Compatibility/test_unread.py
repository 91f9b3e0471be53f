"""Pages that never read what they listen to, and those beside them."""

import json
import socket
import urllib.parse
import uuid

from conftest import PROJECT, started
from phones import Conversation, commit, connect, doc, expect_snapshot, listen, query

CHANNEL = "/google.firestore.v1.Firestore/Listen/channel"
# Few enough that all together stay below the memory for requests and responses under way, above
# which others are refused until pages that make no progress are ended.
PAGES = 20
# What a page that reads nothing may cost the server: its results twice, stored and as JSON.
MEGABYTES_OF_PAGE = 16


def megabytes(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        [line] = [line for line in status if line.startswith("VmRSS")]
    return int(line.split()[1]) // 1024


def request(address, method, query_items, body=""):
    """Sends a request on a connection of its own, whose socket takes hardly anything unread."""
    host, port = address.split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect((host, int(port)))
    connection.sendall(
        f"{method} {CHANNEL}?{urllib.parse.urlencode(query_items)} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return connection


def open_page(address, database):
    """A page that listens to a collection and reads no more than that it may."""
    message = json.dumps({"database": database, "addTarget": {"targetId": 2, "query": {
        "parent": f"{database}/documents",
        "structuredQuery": {"from": [{"collectionId": "large"}]}}}})
    form = urllib.parse.urlencode({"count": 1, "ofs": 0, "req0___data__": message})
    opening = request(address, "POST", {"VER": 8, "RID": 1}, form)
    session = opening.recv(4096).decode().split('["c","', 1)[1].split('"', 1)[0]
    opening.close()
    back = request(address, "GET", {"SID": session, "RID": "rpc", "AID": 0, "CI": 0})
    assert b"200 OK" in back.recv(64)
    return back


def test_pages_that_read_nothing_cost_little_and_hold_up_nobody(tmp_path):
    database = f"phones-{uuid.uuid4().hex[:12]}"
    text = "x" * 900_000
    with started(tmp_path, "--no-functions") as suite:
        address = suite.address("firestore")
        full_name = f"projects/{PROJECT}/databases/{database}"
        Conversation(suite, database).run(
            [commit(doc(f"large/{number}").set(text=text)) for number in range(5)])
        before = megabytes(suite.process)
        pages = [open_page(address, full_name) for _ in range(PAGES)]
        steps = [connect(), listen(2, query("c")), expect_snapshot({2: []})]
        for number in range(20):
            steps += [
                commit(doc(f"large/{number % 5}").set(text=text, n=number)),
                commit(doc("c/a").set(n=number)),
                expect_snapshot({2: {"c/a": {"n": number}}}),
            ]
        Conversation(suite, database).run(steps)
        assert megabytes(suite.process) - before < PAGES * MEGABYTES_OF_PAGE
        for page in pages:
            page.close()


def test_a_stop_ends_the_long_reads_of_clients_that_stay_and_of_those_that_left(tmp_path):
    text = "x" * 900_000
    with started(tmp_path, "--no-functions") as suite:
        address = suite.address("firestore")
        database = f"projects/{PROJECT}/databases/(default)"
        Conversation(suite, "(default)").run(
            [commit(doc(f"large/{number}").set(text=text)) for number in range(10)])
        host, port = address.split(":")
        clients = []
        for _ in range(60):
            client = socket.create_connection((host, int(port)), timeout=30)
            client.sendall(
                f"GET /v1/{database}/documents/large?pageSize=10 HTTP/1.1\r\n"
                "Host: localhost\r\nAuthorization: Bearer owner\r\n\r\n".encode())
            clients.append(client)
        for client in clients[::2]:
            client.close()
        # `started` sends the signal; status 0 means that the stop needed no force.
