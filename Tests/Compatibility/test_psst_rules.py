"""Who may do what with Psst's documents, through every protocol: psst_rules.json has a row for each sentence, both ways."""

import contextlib
import json
import pathlib
import queue
import subprocess

import conftest
import grpc
import pytest
import requests
from google.cloud.firestore_v1.types import firestore, query, write

FOLDER = pathlib.Path(__file__).parent
TABLE = json.loads((FOLDER / "psst_rules.json").read_text(encoding="utf-8"))
DATABASE = f"projects/{conftest.PROJECT}/databases/(default)"
DOCUMENTS = f"{DATABASE}/documents"
SERVICE = "/google.firestore.v1.Firestore/"
OPERATORS = {
    "==": "EQUAL", "!=": "NOT_EQUAL", "<": "LESS_THAN", "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN", ">=": "GREATER_THAN_OR_EQUAL", "array-contains": "ARRAY_CONTAINS",
    "array-contains-any": "ARRAY_CONTAINS_ANY", "in": "IN", "not-in": "NOT_IN"}

# Sentences that only refuse.
PROHIBITIONS = {
    "users: nobody deletes", "chats: created by createChat alone",
    "chats: nobody deletes", "personalTrainers: written by the server alone",
    "trainerStudents: written by callables only", "trainerWorkouts: written by callables only",
    "presence: written by the server", "leases: server only",
    "answers and causes of reminders: server only",
    "everything else is closed"}


def value(plain):
    """A value as REST writes it; objects with one key that begins with "$" are special."""
    if plain is None:
        return {"nullValue": None}
    for kind, name in ((bool, "booleanValue"), (float, "doubleValue"), (str, "stringValue")):
        if isinstance(plain, kind):
            return {name: plain}
    if isinstance(plain, int):
        return {"integerValue": str(plain)}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(element) for element in plain]}}
    kind = special(plain)
    if kind == "$timestamp":
        return {"timestampValue": plain[kind]}
    if kind == "$double":
        return {"doubleValue": float(plain[kind])}
    if kind == "$repeat":
        text, count, *prefix = plain[kind]
        return {"stringValue": "".join(prefix) + text * count}
    if kind == "$list":
        return value([f"{plain[kind][0]}{index}" for index in range(plain[kind][1])])
    return {"mapValue": {"fields": fields(plain)}}


def fields(plain):
    return {name: value(field) for name, field in plain.items()}


def special(plain):
    return next(iter(plain), None) if isinstance(plain, dict) and len(plain) == 1 else None


def written(request):
    """One write of a commit, as REST has it."""
    name = f"{DOCUMENTS}/{request['path']}"
    if request["method"] == "delete":
        return {"delete": name}
    kept, transforms, mask = {}, [], []
    for key, field in request.get("merge", request.get("data")).items():
        kind = special(field)
        if kind == "$serverTimestamp":
            transforms.append({"fieldPath": key, "setToServerValue": "REQUEST_TIME"})
        elif kind == "$arrayUnion":
            elements = {"values": [value(element) for element in field[kind]]}
            transforms.append({"fieldPath": key, "appendMissingElements": elements})
        else:
            mask.append(key)
            if kind != "$delete":
                kept[key] = value(field)
    result = {"update": {"name": name, "fields": kept}, "updateTransforms": transforms}
    if "merge" in request:
        result["updateMask"] = {"fieldPaths": mask}
    return result


def writes(request):
    return [written(part) for part in request.get("writes", [request])]


def structured(request):
    """A query's parent and the query itself, as REST has them."""
    parent, _, collection = request["path"].rpartition("/")
    source = {"collectionId": collection, "allDescendants": request.get("allDescendants", False)}
    asked = request.get("query", {})
    filters = [
        {"fieldFilter": {"field": {"fieldPath": path}, "op": OPERATORS[test], "value": value(given)}}
        for path, test, given in asked.get("where", [])]
    result = {"from": [source]}
    if filters:
        result["where"] = {"compositeFilter": {"op": "AND", "filters": filters}}
    if "orderBy" in asked:
        result["orderBy"] = [
            {"field": {"fieldPath": path}, "direction": "DESCENDING" if way == "desc" else "ASCENDING"}
            for path, way in asked["orderBy"]]
    if "limit" in asked:
        result["limit"] = asked["limit"]
    return f"{DOCUMENTS}/{parent}" if parent else DOCUMENTS, result


def message(kind, plain):
    """A message of the Python client from REST's JSON."""
    return kind.from_json(json.dumps(plain))


class REST:
    """The caller's requests as HTTP; each answers whether it was allowed."""

    def __init__(self, suite):
        self.origin = f"http://{suite.address('firestore')}/v1/"
        self.session = requests.Session()

    def send(self, method, path, body, bearer):
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        reply = self.session.request(
            method, self.origin + path, json=body, headers=headers, timeout=60)
        assert reply.status_code in (200, 403, 404), reply.text
        return reply

    def act(self, bearer, request):
        if request["method"] == "get":
            reply = self.send("GET", f"{DOCUMENTS}/{request['path']}", None, bearer)
        elif request["method"] == "list":
            parent, asked = structured(request)
            reply = self.send("POST", f"{parent}:runQuery", {"structuredQuery": asked}, bearer)
        else:
            reply = self.send("POST", f"{DOCUMENTS}:commit", {"writes": writes(request)}, bearer)
        return reply.status_code != 403

    def put(self, documents):
        body = [
            {"delete": f"{DOCUMENTS}/{path}"} if plain is None
            else {"update": {"name": f"{DOCUMENTS}/{path}", "fields": fields(plain)}}
            for path, plain in documents.items()]
        assert self.send("POST", f"{DOCUMENTS}:commit", {"writes": body}, "owner").ok


class RPC:
    """The caller's requests as gRPC; nobody signed in looks like a phone, not like a tool."""

    def __init__(self, suite):
        self.channel = grpc.insecure_channel(suite.address("firestore"))

    def metadata(self, bearer):
        headers = [("authorization", f"Bearer {bearer}")] if bearer else []
        return [("x-goog-api-client", "gl-objc/ fire/"), *headers]

    def unary(self, method, request, reply, bearer):
        call = self.channel.unary_unary(
            SERVICE + method, type(request).serialize, reply.deserialize)
        return call(request, metadata=self.metadata(bearer), timeout=30)

    def results(self, method, request, reply, bearer):
        call = self.channel.unary_stream(
            SERVICE + method, type(request).serialize, reply.deserialize)
        return list(call(request, metadata=self.metadata(bearer), timeout=30))

    def commit(self, bearer, request, transaction=None):
        parts = [message(write.Write, part) for part in writes(request)]
        self.unary(
            "Commit",
            firestore.CommitRequest(database=DATABASE, writes=parts, transaction=transaction),
            firestore.CommitResponse, bearer)

    def read(self, bearer, request, transaction=None):
        if request["method"] == "get":
            name = f"{DOCUMENTS}/{request['path']}"
            self.results(
                "BatchGetDocuments",
                firestore.BatchGetDocumentsRequest(
                    database=DATABASE, documents=[name], transaction=transaction),
                firestore.BatchGetDocumentsResponse, bearer)
        else:
            parent, asked = structured(request)
            self.results(
                "RunQuery",
                firestore.RunQueryRequest(
                    parent=parent, structured_query=message(query.StructuredQuery, asked),
                    transaction=transaction),
                firestore.RunQueryResponse, bearer)

    def allowed(self, body):
        try:
            body()
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.PERMISSION_DENIED, error
            return False
        return True

    def act(self, bearer, request):
        reads = request["method"] in ("get", "list")
        return self.allowed(lambda: (self.read if reads else self.commit)(bearer, request))


class Transaction(RPC):
    """The same in a transaction."""

    def act(self, bearer, request):
        begun = self.unary(
            "BeginTransaction", firestore.BeginTransactionRequest(database=DATABASE),
            firestore.BeginTransactionResponse, bearer)
        reads = request["method"] in ("get", "list")
        step = self.read if reads else self.commit
        try:
            return self.allowed(lambda: step(bearer, request, begun.transaction))
        finally:
            with contextlib.suppress(grpc.RpcError):
                call = self.channel.unary_unary(
                    SERVICE + "Rollback", firestore.RollbackRequest.serialize, lambda reply: reply)
                call(
                    firestore.RollbackRequest(database=DATABASE, transaction=begun.transaction),
                    metadata=self.metadata(bearer), timeout=30)


class Streams(RPC):
    """Reads as targets of Listen, writes in a stream of Write."""

    def stream(self, method, first, kind, reply, bearer):
        outgoing = queue.SimpleQueue()
        outgoing.put(first)
        call = self.channel.stream_stream(SERVICE + method, kind.serialize, reply.deserialize)
        return outgoing, call(iter(outgoing.get, None), metadata=self.metadata(bearer), timeout=30)

    def act(self, bearer, request):
        return self.allowed(lambda: self.step(bearer, request)) and self.is_open

    def step(self, bearer, request):
        self.is_open = True
        if request["method"] not in ("get", "list"):
            outgoing, replies = self.stream(
                "Write", firestore.WriteRequest(database=DATABASE), firestore.WriteRequest,
                firestore.WriteResponse, bearer)
            opened = next(replies)
            parts = [message(write.Write, part) for part in writes(request)]
            outgoing.put(firestore.WriteRequest(stream_token=opened.stream_token, writes=parts))
            try:
                next(replies)
            finally:
                outgoing.put(None)
            return
        target = firestore.Target(target_id=2)
        if request["method"] == "get":
            target.documents = firestore.Target.DocumentsTarget(
                documents=[f"{DOCUMENTS}/{request['path']}"])
        else:
            parent, asked = structured(request)
            target.query = firestore.Target.QueryTarget(
                parent=parent, structured_query=message(query.StructuredQuery, asked))
        outgoing, replies = self.stream(
            "Listen", firestore.ListenRequest(database=DATABASE, add_target=target),
            firestore.ListenRequest, firestore.ListenResponse, bearer)
        for reply in replies:
            change = reply.target_change
            if change.cause.code:
                assert change.cause.code == grpc.StatusCode.PERMISSION_DENIED.value[0], change
                self.is_open = False
                break
            if change.target_change_type == firestore.TargetChange.TargetChangeType.CURRENT:
                break
        outgoing.put(None)


def test_each_sentence_has_cases_both_ways():
    ways = {True: set(), False: set()}
    for case in TABLE["cases"]:
        ways[case["allow"]].add(case["sentence"])
    assert ways[False] - ways[True] == PROHIBITIONS
    assert ways[True] <= ways[False]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A suite with Psst's rules, as its own firebase.json has them loaded."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "firebase.json").write_text(json.dumps(
        {"firestore": {"rules": str(conftest.ROOT / "firestore.rules")}}), encoding="utf-8")
    with conftest.started(folder, "--no-functions") as suite:
        REST(suite).put(TABLE["world"])
        yield suite


@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", [REST, RPC, Transaction, Streams])
def test_everybody_gets_what_is_theirs_and_nothing_else(guarded, protocol):
    owner, caller = REST(guarded), protocol(guarded)
    world, changed, wrong = TABLE["world"], set(), []
    for case in TABLE["cases"]:
        seed = case.get("seed", {})
        owner.put({path: world.get(path) for path in changed} | seed)
        changed = set(seed)
        request = case["request"]
        claims = {k: v for k, v in (case["auth"] or {}).items() if k != "uid"}
        bearer = conftest.token(case["auth"]["uid"], **claims) if case["auth"] else None
        allowed = caller.act(bearer, request)
        if allowed != case["allow"]:
            wrong.append(case["name"])
        if allowed and request["method"] not in ("get", "list"):
            changed |= {part["path"] for part in request.get("writes", [request])}
    owner.put({path: world.get(path) for path in changed})
    assert not wrong, "\n".join(wrong)


def test_a_stranger_reads_and_writes_no_collection_of_the_world(guarded):
    """Whatever is stored: one who has no part in it gets nothing but what everybody signed in may see."""
    stranger = conftest.token("nobody")
    caller = REST(guarded)
    shown = ("users", "personalTrainers", "presence")
    for path in TABLE["world"]:
        # What is below a user is theirs alone.
        may = path.split("/")[0] in shown and path.count("/") == 1
        assert caller.act(stranger, {"method": "get", "path": path}) == may, path
        assert not caller.act(stranger, {"method": "delete", "path": path}), path
        assert not caller.act(None, {"method": "get", "path": path}), path


def test_images_are_read_and_written_by_whom_they_concern():
    """Cloud Storage's sentence, both ways: psst_storage_rules.json, asked of storage.rules."""
    outcome = subprocess.run(
        [conftest.hearth(), "rules", "test", "--storage", str(FOLDER / "psst_storage_rules.json")],
        cwd=conftest.ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
