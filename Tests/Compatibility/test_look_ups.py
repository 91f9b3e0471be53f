"""Rules that look at other documents decide by the state in which a write is committed."""

import concurrent.futures
import random
import threading

import conftest
import grpc
import pytest
import requests
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.cloud.firestore_v1.types import Document, Value, Write, firestore

DATABASE = f"projects/{conftest.PROJECT}/databases/(default)"
DOCUMENTS = f"{DATABASE}/documents"
SERVICE = "/google.firestore.v1.Firestore/"
RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /things/{id} {
      allow create: if get(/databases/$(database)/documents/gates/g).data.open;
    }
    match /left/{id} {
      allow create: if !exists(/databases/$(database)/documents/right/$(id));
    }
    match /right/{id} {
      allow create: if !existsAfter(/databases/$(database)/documents/left/$(id));
    }
  }
}
"""
OWNER = [("authorization", "Bearer owner")]
USER = [("authorization", f"Bearer {conftest.token('u')}")]


class Client:
    """A connection of its own, and the ways in which a user creates a document."""

    def __init__(self, suite):
        self.origin = f"http://{suite.address('firestore')}"
        self.channel = grpc.insecure_channel(
            suite.address("firestore"), options=[("grpc.use_local_subchannel_pool", 1)])

    def call(self, method, request, response, metadata):
        call = self.channel.unary_unary(
            SERVICE + method, type(request).serialize, response.deserialize)
        return call(request, metadata=metadata, timeout=30)

    def commit(self, path, metadata, transaction=None, **fields):
        document = Document(
            name=f"{DOCUMENTS}/{path}",
            fields={name: Value(boolean_value=value) for name, value in fields.items()})
        request = firestore.CommitRequest(database=DATABASE, writes=[Write(update=document)])
        if transaction:
            request.transaction = transaction
        return self.call("Commit", request, firestore.CommitResponse, metadata).commit_time

    def begin(self):
        request = firestore.BeginTransactionRequest(database=DATABASE)
        return self.call(
            "BeginTransaction", request, firestore.BeginTransactionResponse, USER).transaction

    def create(self, path, way):
        """Whether the creation was allowed."""
        if way == "rest":
            collection, name = path.split("/")
            status = requests.post(
                f"{self.origin}/v1/{DOCUMENTS}/{collection}", params={"documentId": name},
                json={}, headers=dict([("Authorization", USER[0][1])]), timeout=30).status_code
            assert status in (200, 403), status
            return status == 200
        try:
            self.commit(path, USER, self.begin() if way == "transaction" else None)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.PERMISSION_DENIED, error
            return False
        return True

    def read(self, path):
        return requests.get(
            f"{self.origin}/v1/{DOCUMENTS}/{path}", headers=dict([("Authorization", "Bearer owner")]),
            timeout=30)


WAYS = ("commit", "transaction", "rest")


@pytest.fixture(name="suite", scope="module")
def suite_with_rules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    (folder / "firestore.rules").write_text(RULES, encoding="utf-8")
    with conftest.started(folder, "--no-functions") as suite:
        yield suite


def test_no_creation_lands_while_its_gate_is_closed(suite):
    owner, paths, stop = Client(suite), [], threading.Event()
    owner.commit("gates/g", OWNER, open=True)

    def creator(number):
        client, ways, count = Client(suite), random.Random(number), 0
        while not stop.is_set():
            count += 1
            path = f"things/w{number}n{count}"
            if client.create(path, ways.choice(WAYS)):
                paths.append(path)

    closed = []
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        creators = [pool.submit(creator, number) for number in range(6)]
        try:
            for _ in range(60):
                threading.Event().wait(random.uniform(0, 0.01))
                start = owner.commit("gates/g", OWNER, open=False)
                threading.Event().wait(random.uniform(0, 0.005))
                closed.append((start, owner.commit("gates/g", OWNER, open=True)))
        finally:
            stop.set()
        for done in creators:
            done.result()
    times = [
        DatetimeWithNanoseconds.from_rfc3339(owner.read(path).json()["createTime"])
        for path in paths]
    assert len(times) > 60
    landed = [
        time for time in times
        if any(start < time < end for start, end in closed)]
    assert not landed


def test_two_documents_that_forbid_each_other_never_both_exist(suite):
    clients, ways = [Client(suite), Client(suite)], random.Random(1)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number in range(150):
            created = [
                pool.submit(client.create, f"{side}/r{number}", ways.choice(WAYS))
                for client, side in zip(clients, ("left", "right"))]
            assert sum(done.result() for done in created) == 1
            found = [clients[0].read(f"{side}/r{number}").status_code for side in ("left", "right")]
            assert sorted(found) == [200, 404]
