"""A web page's side of the WebChannel protocol, over which dialogues run as over gRPC.

`WebChannelTransport` behaves as Closure's client does. A rough one has a bad network: its requests
arrive twice, and its back channels break off in mid-chunk and begin again after what was whole; every
second one ends after its first chunk, as pages ask for behind a buffering proxy.
"""

import http.client
import json
import queue
import threading
import urllib.parse

from google.protobuf import json_format
from google.protobuf.unknown_fields import UnknownFieldSet
from phones import WAIT, Ended, GRPCTransport, Stream

# The number of the field that Google's Python types lack.
VERIFY = 5
# Closure's client sends no more in one request.
MESSAGES_MAX = 1000


def to_json(message):
    """A request as pages send it."""
    value = json_format.MessageToDict(message)
    for index, write in enumerate(getattr(message, "writes", [])):
        for field in UnknownFieldSet(write):
            if field.field_number == VERIFY:
                value["writes"][index]["verify"] = field.data.decode()
    return json.dumps(value, ensure_ascii=False)


def length(text):
    """How long clients count a text to be: in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


class Chunks:
    """Reads chunks out of bytes as they come, without waiting for the response's end."""

    def __init__(self):
        self.bytes = b""

    def feed(self, data):
        """The arrays of the chunks that are whole by now."""
        self.bytes += data
        while b"\n" in self.bytes:
            size, rest = self.bytes.split(b"\n", 1)
            # A cut at the end is of a character that is yet to come.
            text = rest.decode("utf-8", errors="ignore")
            units = text.encode("utf-16-le")
            if len(units) < 2 * int(size):
                return
            body = units[:2 * int(size)].decode("utf-16-le")
            self.bytes = rest[len(body.encode()):]
            yield from json.loads(body)


class WebChannelStream(Stream):
    """A stream in both directions over plain requests, as `GRPCStream` is over gRPC."""

    def __init__(self, address, method, response, rough=False, token=None):
        super().__init__()
        self.token = token
        self.address = address
        self.path = f"/google.firestore.v1.Firestore/{method}/channel"
        self.response = response
        self.rough = rough
        self.outgoing = queue.Queue()
        self.session = None
        self.sent = 0
        self.requests = 7
        self.last = 0
        self.is_over = False
        threading.Thread(target=self._write, daemon=True).start()

    # The interface of streams

    def send(self, message):
        self.outgoing.put(to_json(message))

    def half_close(self):
        """A page has no half of it: it leaves."""
        self.outgoing.put(None)

    def cancel(self):
        self.is_over = True
        self.outgoing.put(None)

    # Forth

    def _write(self):
        try:
            while (text := self.outgoing.get()) is not None:
                texts = [text]
                is_last = False
                while not self.outgoing.empty() and len(texts) < MESSAGES_MAX:
                    text = self.outgoing.get()
                    if text is None:
                        is_last = True
                        break
                    texts.append(text)
                self._post(texts)
                if is_last:
                    break
            if self.session and not self.is_over:
                self.is_over = True
                self._request("POST", {"SID": self.session, "TYPE": "terminate"}, {})
            self.incoming.put(Ended("OK"))
        except (OSError, http.client.HTTPException, Ended) as error:
            self._fail(error)

    def _post(self, texts):
        form = {"count": len(texts), "ofs": self.sent}
        form |= {f"req{index}___data__": text for index, text in enumerate(texts)}
        self.requests += 1
        self.sent += len(texts)
        if self.session is None:
            form["headers"] = "X-Goog-Api-Client:gl-js/ fire/12\r\nContent-Type:text/plain\r\n"
            if self.token:
                form["headers"] += f"Authorization:Bearer {self.token}\r\n"
            body = self._request(
                "POST", {"VER": 8, "CVER": 22, "RID": self.requests, "t": 1}, form)
            [[number, [kind, self.session, _, version, *_]]] = list(Chunks().feed(body))
            assert (number, kind, version) == (0, "c", 8), body
            threading.Thread(target=self._read, daemon=True).start()
            return
        query = {"VER": 8, "SID": self.session, "RID": self.requests, "AID": self.last, "t": 1}
        for _ in range(2 if self.rough else 1):
            body = self._request("POST", query, form).decode()
            size, report = body.split("\n")
            assert len(report) == int(size), body
            assert len(json.loads(report)) == 3, body

    def _request(self, method, query, form):
        connection = http.client.HTTPConnection(self.address, timeout=WAIT)
        connection.request(
            method, f"{self.path}?{urllib.parse.urlencode(query)}",
            body=urllib.parse.urlencode(form),
            headers={"Content-Type": "application/x-www-form-urlencoded"})
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        if reply.status != 200:
            raise Ended("UNAVAILABLE", f"{reply.status} {body}")
        return body

    # Back

    def _read(self):
        try:
            turn = 0
            while not self.is_over:
                turn += 1
                self._back_channel(turn)
        except (OSError, http.client.HTTPException, Ended) as error:
            self._fail(error)

    def _back_channel(self, turn):
        is_polling = self.rough and turn % 2 == 0
        query = {
            "VER": 8, "RID": "rpc", "SID": self.session, "AID": self.last,
            "CI": 1 if is_polling else 0, "TYPE": "xmlhttp", "t": 1}
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("GET", f"{self.path}?{urllib.parse.urlencode(query)}")
        reply = connection.getresponse()
        if reply.status != 200:
            raise Ended("UNAVAILABLE", f"{reply.status} {reply.read()}")
        chunks = Chunks()
        # A rough network breaks off further on each time.
        rest = 100 * turn ** 2 if self.rough and not is_polling else None
        while data := reply.read1(1 << 16 if rest is None else min(rest, 1 << 16)):
            for number, payload in chunks.feed(data):
                assert number == self.last + 1, f"array {number} follows {self.last}"
                self.last = number
                self._take(payload)
            if rest is not None:
                rest -= len(data)
                if rest <= 0:
                    break
        connection.close()

    def _take(self, payload):
        if payload == ["noop"]:
            return
        if payload == ["close"]:
            self.is_over = True
            self.incoming.put(Ended("OK"))
            return
        [message] = payload
        if "error" in message:
            self.is_over = True
            self.incoming.put(Ended(message["error"]["status"], message["error"]["message"]))
            return
        self.incoming.put(json_format.ParseDict(message, self.response()))

    def _fail(self, error):
        if not self.is_over:
            self.is_over = True
            self.incoming.put(
                error if isinstance(error, Ended) else Ended("UNAVAILABLE", str(error)))


class WebChannelTransport(GRPCTransport):
    """Streams over WebChannel; calls as they were."""

    def stream(self, method, request, response, database):
        return WebChannelStream(self.address, method, response)


class RoughTransport(GRPCTransport):
    """Streams over a bad network."""

    def stream(self, method, request, response, database):
        return WebChannelStream(self.address, method, response, rough=True)
