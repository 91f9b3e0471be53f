"""Transactions whose client does not get the answer to its commit."""

import contextlib
import socket
import threading

import conftest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

HEADERS = 1


class Proxy:
    """Passes connections on; `lose_next_answer` ends one where the next answer would begin."""

    def __init__(self, address):
        host, port = address.split(":")
        self.target = (host, int(port))
        self.losing = False
        self.lost = 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next_answer(self):
        self.losing = True

    def close(self):
        for connection in [self.server, *self.connections]:
            self._end(connection)

    @staticmethod
    def _end(connection):
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                server = socket.create_connection(self.target)
                self.connections += [client, server]
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()
                threading.Thread(target=self._down, args=(client, server), daemon=True).start()

    def _up(self, client, server):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        self._end(server)

    def _down(self, client, server):
        with contextlib.suppress(OSError):
            stream = server.makefile("rb")
            while len(head := stream.read(9)) == 9:
                length, kind = int.from_bytes(head[:3], "big"), head[3]
                if self.losing and kind == HEADERS:
                    self.losing = False
                    self.lost += 1
                    break
                client.sendall(head + stream.read(length))
        self._end(client)
        self._end(server)


def test_a_transaction_is_applied_once_though_the_answer_to_its_commit_is_lost(
        suite, db, collection, monkeypatch):
    proxy = Proxy(suite.address("firestore"))
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", proxy.address)
    behind = firestore.Client(project=conftest.PROJECT, credentials=AnonymousCredentials())
    counter = behind.collection(collection.id).document("counter")
    counter.set({"n": 0})
    runs = []

    @firestore.transactional
    def increment(transaction):
        value = counter.get(transaction=transaction).get("n")
        transaction.update(counter, {"n": value + 1, "list": firestore.ArrayUnion([value])})
        runs.append(value)
        proxy.lose_next_answer()

    for count in range(1, 11):
        transaction = behind.transaction()
        increment(transaction)
        stored = db.collection(collection.id).document("counter").get()
        assert stored.get("n") == count
        assert stored.update_time == transaction.commit_time
    assert runs == list(range(10))
    assert proxy.lost == 10
    proxy.close()
