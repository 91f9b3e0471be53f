"""Security rules of a running suite: loading them, listeners that lose access, and what developers are told."""

import json
import queue
import subprocess
import sys
import uuid

import conftest
import grpc
import pytest
import requests
from google.cloud.firestore_v1.types import firestore, query
from phones import Ended
from web_channels import WebChannelStream

RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /notes/{id} {
      allow read: if resource.data.owner == request.auth.uid;
      allow write: if request.auth.uid == 'alice';
    }
    match /rooms/{room}/messages/{message} {
      allow read: if request.auth.uid in get(/databases/$(database)/documents/rooms/$(room)).data.members;
    }
  }
}
"""


def value(plain):
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(element) for element in plain]}}
    return {"stringValue": plain}


class Rules:
    """A project of a suite with a rules file."""

    def __init__(self, suite, folder, project=conftest.PROJECT):
        self.suite = suite
        self.project = project
        self.database = f"projects/{project}/databases/(default)"
        self.documents = f"{self.database}/documents"
        self.file = folder / "firestore.rules"
        self.origin = f"http://{suite.address('firestore')}"
        self.channel = grpc.insecure_channel(suite.address("firestore"))

    def put(self, path, **fields):
        body = {"fields": {name: value(field) for name, field in fields.items()}}
        reply = requests.patch(
            f"{self.origin}/v1/{self.documents}/{path}", json=body, timeout=10,
            headers={"Authorization": "Bearer owner"})
        assert reply.status_code == 200, reply.text

    def get(self, path, uid):
        headers = {"Authorization": f"Bearer {conftest.token(uid)}"}
        return requests.get(
            f"{self.origin}/v1/{self.documents}/{path}", headers=headers, timeout=10).status_code

    def upload(self, content, scope=None, **options):
        return requests.put(
            f"{self.origin}/emulator/v1/{scope or f'projects/{self.project}'}:securityRules", timeout=10,
            json={"rules": {"files": [{"name": "firestore.rules", "content": content}]}} | options)

    def loaded(self, project=None):
        """The text of a project's rules."""
        reply = requests.get(
            f"{self.origin}/emulator/v1/projects/{project or self.project}:securityRules", timeout=10)
        assert reply.status_code == 200, reply.text
        return reply.json()["rules"]["files"][0]["content"]

    def write(self, uid, project=None, database="(default)"):
        """The status of a user's write to a collection that only RULES's alice may write to."""
        return requests.patch(
            f"{self.origin}/v1/projects/{project or self.project}/databases/{database}/documents/notes/w",
            timeout=10, json={"fields": {"owner": value(uid)}},
            headers={"Authorization": f"Bearer {conftest.token(uid)}" if uid != "owner" else
                     "Bearer owner"}).status_code

    def listen(self, uid, target):
        return Listener(self.channel, self.database, uid, target)

    def document(self, path):
        return firestore.Target(
            documents=firestore.Target.DocumentsTarget(documents=[f"{self.documents}/{path}"]))

    def collection(self, parent, name, **equal):
        filters = [
            query.StructuredQuery.Filter(field_filter=query.StructuredQuery.FieldFilter(
                field=query.StructuredQuery.FieldReference(field_path=path), op="EQUAL",
                value={"string_value": given}))
            for path, given in equal.items()]
        asked = query.StructuredQuery(
            from_=[query.StructuredQuery.CollectionSelector(collection_id=name)])
        if filters:
            asked.where = filters[0]
        return firestore.Target(query=firestore.Target.QueryTarget(
            parent=f"{self.documents}/{parent}" if parent else self.documents,
            structured_query=asked))


class Listener:
    """One target of a user; `wait` reads until something has happened."""

    def __init__(self, channel, database, uid, target):
        self.requests = queue.SimpleQueue()
        target.target_id = 2
        self.requests.put(firestore.ListenRequest(database=database, add_target=target))
        call = channel.stream_stream(
            "/google.firestore.v1.Firestore/Listen", firestore.ListenRequest.serialize,
            firestore.ListenResponse.deserialize)
        self.replies = call(
            iter(self.requests.get, None), timeout=30,
            metadata=[("authorization", f"Bearer {conftest.token(uid)}")])
        self.seen = []

    def wait(self, holds):
        for reply in self.replies:
            self.seen.append(reply)
            if holds(reply):
                return reply
        raise AssertionError("the stream has ended")

    def current(self):
        kind = firestore.TargetChange.TargetChangeType.CURRENT
        return self.wait(lambda reply: reply.target_change.target_change_type == kind)

    def refusal(self):
        reply = self.wait(lambda reply: reply.target_change.cause.code)
        return reply.target_change.cause.code

    def close(self):
        self.requests.put(None)


DENIED = grpc.StatusCode.PERMISSION_DENIED.value[0]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    (folder / "firestore.rules").write_text(RULES, encoding="utf-8")
    with conftest.started(folder, "--no-functions") as suite:
        yield suite, folder


@pytest.fixture
def rules(guarded):
    """A project of the test's own, guarded by a file that stays as it is."""
    return Rules(*guarded, project=f"demo-{uuid.uuid4().hex}")


@pytest.fixture
def own_rules(tmp_path):
    """A suite of the test's own, whose file may change."""
    (tmp_path / "firestore.rules").write_text(RULES, encoding="utf-8")
    with conftest.started(tmp_path, "--no-functions") as suite:
        yield Rules(suite, tmp_path)


def test_a_listener_of_a_document_loses_it_before_it_is_told_what_it_became(rules):
    rules.put("notes/1", owner="alice", text="mine")
    listener = rules.listen("alice", rules.document("notes/1"))
    listener.current()
    rules.put("notes/1", owner="bob", text="secret")
    assert listener.refusal() == DENIED
    texts = [
        reply.document_change.document.fields["text"].string_value for reply in listener.seen
        if reply.document_change.document.name]
    assert texts == ["mine"]
    listener.close()


def test_what_leaves_a_query_is_not_told_to_whom_it_no_longer_belongs(rules):
    rules.put("notes/1", owner="alice", text="mine")
    listener = rules.listen("alice", rules.collection("", "notes", owner="alice"))
    listener.current()
    rules.put("notes/1", owner="bob", text="secret")
    listener.wait(lambda reply: reply.document_remove.document or reply.document_change.removed_target_ids)
    assert "secret" not in str(listener.seen)
    listener.close()


def test_a_listener_loses_access_with_the_document_that_gave_it(rules):
    rules.put("rooms/r", members=["alice", "bob"])
    rules.put("rooms/r/messages/1", text="hello")
    listener = rules.listen("alice", rules.collection("rooms/r", "messages"))
    listener.current()
    rules.put("rooms/r", members=["bob"])
    rules.put("rooms/r/messages/2", text="secret")
    assert listener.refusal() == DENIED
    assert "secret" not in str(listener.seen)
    listener.close()


def test_a_listener_keeps_what_a_change_leaves_it(rules):
    rules.put("rooms/r", members=["alice", "bob"])
    listener = rules.listen("alice", rules.collection("rooms/r", "messages"))
    listener.current()
    rules.put("rooms/r", members=["alice"])
    rules.put("rooms/r/messages/2", text="news")
    listener.wait(lambda reply: "news" in str(reply))
    listener.close()


def test_a_web_page_listens_and_writes_as_its_user(rules):
    rules.put("rooms/r", members=["bob"])
    rules.put("rooms/r/messages/m", text="one")

    def channel(method, response, uid):
        return WebChannelStream(
            rules.suite.address("firestore"), method, response.pb(),
            token=conftest.token(uid) if uid else None)

    def listen(uid):
        stream = channel("Listen", firestore.ListenResponse, uid)
        target = rules.collection("rooms/r", "messages")
        target.target_id = 2
        stream.send(firestore.ListenRequest.pb(
            firestore.ListenRequest(database=rules.database, add_target=target)))
        return stream

    def until_removed(stream):
        documents = []
        while True:
            message = stream.receive()
            if message.HasField("document_change"):
                documents.append(message.document_change.document.fields["text"].string_value)
            if message.target_change.target_change_type == 2:
                return documents, message.target_change.cause.code

    assert until_removed(listen(None)) == ([], DENIED)
    assert until_removed(listen("carol")) == ([], DENIED)
    page = listen("bob")
    while page.receive().target_change.target_change_type != 3:
        pass
    rules.put("rooms/r", members=["carol"])
    rules.put("rooms/r/messages/m", text="two")
    assert until_removed(page) == ([], DENIED)
    page.cancel()

    def write(uid):
        stream = channel("Write", firestore.WriteResponse, uid)
        stream.send(firestore.WriteRequest.pb(firestore.WriteRequest(database=rules.database)))
        token = stream.receive().stream_token
        stream.send(firestore.WriteRequest.pb(firestore.WriteRequest(stream_token=token, writes=[
            {"update": {"name": f"{rules.documents}/notes/w", "fields": {"owner": {"string_value": uid}}}}
        ])))
        return stream.receive()

    with pytest.raises(Ended, match="PERMISSION_DENIED"):
        write("bob")
    assert len(write("alice").write_results) == 1


def test_a_listener_loses_access_when_rules_are_uploaded(rules):
    rules.put("notes/1", owner="alice")
    listener = rules.listen("alice", rules.document("notes/1"))
    listener.current()
    closed = RULES.replace("resource.data.owner == request.auth.uid", "false")
    assert rules.upload(closed).status_code == 200
    assert listener.refusal() == DENIED
    listener.close()


def test_a_changed_file_is_in_force_and_a_broken_one_is_not(own_rules):
    own_rules.put("notes/1", owner="alice")
    assert own_rules.get("notes/1", "alice") == 200 and own_rules.get("notes/1", "bob") == 403
    own_rules.file.write_text(RULES.replace("== request.auth.uid", "!= 'x'"), encoding="utf-8")
    conftest.until(lambda: own_rules.get("notes/1", "bob") == 200, "the change is not taken")
    own_rules.file.write_text("service cloud.firestore {", encoding="utf-8")
    own_rules.file.write_text(RULES + "\n// again", encoding="utf-8")
    conftest.until(lambda: own_rules.get("notes/1", "bob") == 403, "the file is not read again")


def test_a_listener_loses_access_when_the_file_changes(own_rules):
    own_rules.put("notes/1", owner="alice")
    listener = own_rules.listen("alice", own_rules.document("notes/1"))
    listener.current()
    own_rules.file.write_text(
        RULES.replace("resource.data.owner == request.auth.uid", "false"), encoding="utf-8")
    assert listener.refusal() == DENIED
    listener.close()


def test_an_upload_with_a_mistake_says_where_and_leaves_the_former_rules(rules):
    rules.put("notes/1", owner="alice")
    reply = rules.upload("rules_version = '2';\nservice cloud.firestore {\n  match /a { allow get: if ; }\n}")
    assert reply.status_code == 400
    assert "L3:28 Missing conditional expression after 'if'." in reply.json()["error"]["message"]
    assert rules.get("notes/1", "alice") == 200 and rules.get("notes/1", "bob") == 403


def test_the_file_guards_every_project(own_rules):
    for project in (conftest.PROJECT, "demo-second"):
        assert own_rules.write("alice", project) == 200
        assert own_rules.write("bob", project) == 403
        assert own_rules.write("bob", project, "other") == 403
        assert own_rules.write("owner", project) == 200
        assert own_rules.loaded(project) == RULES


def test_uploaded_rules_go_before_the_file_for_their_project(own_rules):
    bobs = RULES.replace("'alice'", "'bob'")
    assert own_rules.upload(bobs, "projects/demo-second").status_code == 200
    assert own_rules.loaded("demo-second") == bobs and own_rules.loaded() == RULES
    assert own_rules.write("bob", "demo-second") == 200 and own_rules.write("alice", "demo-second") == 403
    assert own_rules.write("alice") == 200 and own_rules.write("bob") == 403
    # A change of the file concerns all others, and the suite's own project whatever it had.
    assert own_rules.upload(bobs).status_code == 200
    assert own_rules.write("bob") == 200
    own_rules.file.write_text(RULES.replace("'alice'", "'carol'"), encoding="utf-8")
    conftest.until(lambda: own_rules.write("carol") == 200, "the change is not taken")
    assert own_rules.write("bob") == 403
    assert own_rules.write("bob", "demo-second") == 200 and own_rules.write("carol", "demo-second") == 403
    assert own_rules.write("carol", "demo-third") == 200


@pytest.mark.parametrize("content", ["", " \n", "// later\n", "rules_version = '2';\n"])
def test_an_empty_upload_is_refused_and_opens_nothing(rules, content):
    reply = rules.upload(content)
    assert reply.status_code == 400 and "The file has no rules" in reply.json()["error"]["message"]
    assert rules.loaded() == RULES and rules.write("bob") == 403


def test_without_rules_everybody_may_do_everything_and_is_told_so(tmp_path):
    (tmp_path / "firestore.rules").write_text(RULES, encoding="utf-8")
    log = tmp_path / "log"
    with log.open("w", encoding="utf-8") as output, conftest.started(
            tmp_path, "--no-functions", "--no-rules", stderr=output) as suite:
        rules = Rules(suite, tmp_path)
        for project in (conftest.PROJECT, "demo-second"):
            assert rules.write("bob", project) == 200
        assert "Security rules are off (--no-rules)" in log.read_text(encoding="utf-8")
        # Those that are uploaded are meant.
        assert rules.upload(RULES, "projects/demo-second").status_code == 200
        assert rules.write("bob", "demo-second") == 403 and rules.write("bob") == 200


@pytest.mark.parametrize("options, status", [((), 403), (("--no-rules",), 200)])
def test_exec_guards_every_project_unless_it_has_no_rules(tmp_path, options, status):
    (tmp_path / "firestore.rules").write_text(RULES, encoding="utf-8")
    script = tmp_path / "write.py"
    script.write_text(f"""
import os, requests
for project in ("{conftest.PROJECT}", "demo-second"):
    print(requests.patch(
        f"http://{{os.environ['FIRESTORE_EMULATOR_HOST']}}/v1/projects/{{project}}"
        "/databases/(default)/documents/notes/w", json={{"fields": {{}}}}, timeout=10,
        headers={{"Authorization": "Bearer {conftest.token('bob')}"}}).status_code)
""", encoding="utf-8")
    ended = subprocess.run(
        [conftest.hearth(), "exec", "--no-functions", "--project", conftest.PROJECT, *options,
         "--", sys.executable, str(script)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split() == [str(status)] * 2
    assert ("Security rules are off" in ended.stderr) == bool(options)


def test_a_file_that_goes_away_is_told_once_and_its_rules_stay(tmp_path):
    file = tmp_path / "firestore.rules"
    file.write_text(RULES, encoding="utf-8")
    log = tmp_path / "log"

    def told(complaint, count=1):
        conftest.until(
            lambda: log.read_text(encoding="utf-8").count(complaint) == count, "nobody is told")
        assert rules.write("bob") == 403 and rules.write("bob", "demo-second") == 403

    with log.open("w", encoding="utf-8") as output, conftest.started(
            tmp_path, "--no-functions", stderr=output) as suite:
        rules = Rules(suite, tmp_path)
        file.unlink()
        told("firestore.rules is no longer there. The former rules stay.")
        file.write_text(RULES.replace("'alice'", "'carol'"), encoding="utf-8")
        conftest.until(lambda: rules.write("carol") == 200, "the file is not read again")
        file.write_bytes(RULES.encode("utf-16"))
        told("cannot be read: it is not text in UTF-8. The former rules stay.")
        file.unlink()
        file.mkdir()
        told("cannot be read: it is not a file. The former rules stay.")
        file.rmdir()
        file.write_bytes(b"/" * (1 << 20))
        told("cannot be read: it has more than 262144 bytes. The former rules stay.")
        # A truncated file is no rules, and no reason to open what they guard.
        for number, content in enumerate(["", "  \n", "// nothing\n"]):
            file.write_text(content, encoding="utf-8")
            told("The file has no rules", number + 1)
        file.write_text(RULES, encoding="utf-8")
        conftest.until(lambda: rules.write("alice") == 200, "the file is not read again")
        assert rules.write("carol") == 403


@pytest.mark.parametrize("content, expected", [
    (RULES, "f.rules is in order."),
    (RULES.replace("match /notes/{id} {", "match /notes/{id} { allow list: if 1 == 'a';"),
     "f.rules can be loaded, with the warning above."),
])
def test_check_says_whether_there_are_warnings(tmp_path, content, expected):
    (tmp_path / "f.rules").write_text(content, encoding="utf-8")
    ended = subprocess.run(
        [conftest.hearth(), "rules", "check", "--rules", "f.rules"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == expected


@pytest.mark.parametrize("content, complaint", [
    (RULES.replace("request.auth.uid == 'alice'", "requst.auth.uid == 'alice'"),
     "Invalid variable name: requst. Did you mean 'request'?"),
    (RULES.replace("request.auth.uid == 'alice'", "request.auth.uuid == 'alice'"),
     "Invalid member name: uuid. Did you mean 'uid'?"),
    (RULES.replace("allow write", "allow wirte"), "Invalid method name: wirte. Did you mean 'write'?"),
])
def test_check_fails_for_a_misspelt_name_that_can_be_loaded(tmp_path, content, complaint):
    file = tmp_path / "firestore.rules"
    file.write_text(content, encoding="utf-8")
    ended = subprocess.run(
        [conftest.hearth(), "rules", "check"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert f"warning: {complaint}" in ended.stderr
    assert "has a name that stands for nothing" in ended.stderr
    with conftest.started(tmp_path, "--no-functions") as suite:
        assert Rules(suite, tmp_path).write("alice") == 403


def test_check_says_all_that_is_wrong(tmp_path):
    (tmp_path / "f.rules").write_text("""
service cloud.firestore {
  match /a/{id} {
    allow read: if ;
    allow write: if id = 'a';
    allow list if true;
  }
}
""", encoding="utf-8")
    ended = subprocess.run(
        [conftest.hearth(), "rules", "check", "--rules", "f.rules"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert [line.split(":")[1] for line in ended.stderr.splitlines() if ".rules:" in line] == [
        "4", "5", "6"]


def test_cases_of_storage_rules_can_be_allowed(tmp_path):
    (tmp_path / "storage.rules").write_text("""
rules_version = '2';
service firebase.storage {
  match /b/{bucket}/o {
    match /images/{name} {
      allow create: if request.auth != null && request.resource.size < 1000;
    }
  }
}
""", encoding="utf-8")
    case = {"name": "small", "expect": "allow", "auth": {"uid": "alice"}, "method": "create",
            "path": "images/a.png", "object": {"size": 999}}
    cases = [case, case | {"name": "large", "expect": "deny", "object": {"size": 1000}}]
    (tmp_path / "cases.json").write_text(json.dumps({"cases": cases}), encoding="utf-8")
    ended = subprocess.run(
        [conftest.hearth(), "rules", "test", "--storage", "cases.json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == "2 of 2 cases are as expected."


@pytest.mark.parametrize("content, complaint", [
    ("service cloud.firestore {", "firestore.rules:1:26: error: Unexpected '<EOF>'."),
    ("", "firestore.rules:1:1: error: The file has no rules"),
    ("// later\n", "firestore.rules:2:1: error: The file has no rules"),
    (None, "firestore.rules cannot be read: it is not a file."),
])
def test_a_suite_does_not_start_without_the_rules_that_were_meant(tmp_path, content, complaint):
    if content is None:
        (tmp_path / "firestore.rules").mkdir()
    else:
        (tmp_path / "firestore.rules").write_text(content, encoding="utf-8")
    ended = subprocess.run(
        [conftest.hearth(), "start", "--ephemeral", "--no-functions", "--hub-port", "0",
         "--firestore-port", "0", "--vectors-port", "0", "--functions-port", "0", "--tasks-port", "0",
         "--auth-port", "0"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert complaint in ended.stderr


def test_a_refusal_is_explained_with_the_values_that_decided(own_rules):
    own_rules.put("notes/1", owner="alice")
    assert own_rules.get("notes/1", "bob") == 403
    told = own_rules.suite.cli("rules", "explain", "--denied").stdout
    assert "get notes/1  denied" in told
    assert "resource.data.owner = 'alice'" in told and "request.auth.uid = 'bob'" in told
    other = own_rules.documents.replace("(default)", "other")
    reply = requests.get(
        f"{own_rules.origin}/v1/{other}/notes/1", timeout=10,
        headers={"Authorization": f"Bearer {conftest.token('bob')}"})
    assert reply.status_code == 403
    told = own_rules.suite.cli("rules", "explain", "--limit", "1").stdout
    assert "get notes/1 in database other  denied" in told


def test_coverage_counts_what_was_asked(own_rules):
    own_rules.put("notes/1", owner="alice")
    for uid in ("alice", "bob", "bob"):
        own_rules.get("notes/1", uid)
    reply = requests.get(
        f"{own_rules.origin}/emulator/v1/projects/{conftest.PROJECT}:ruleCoverage", timeout=10)
    counts = {
        json.dumps(entry["value"]): entry["count"] for entry in reply.json()["report"][0]["values"]}
    assert counts == {'{"boolValue": true}': 1, '{"boolValue": false}': 2}
    page = requests.get(reply.url + ".html", timeout=10)
    assert page.headers["content-type"].startswith("text/html") and "allow write" in page.text


def test_every_document_of_a_request_is_decided(rules):
    rules.put("notes/hers", owner="alice")
    rules.put("notes/his", owner="bob")

    def batch_get(*names):
        return requests.post(
            f"{rules.origin}/v1/{rules.documents}:batchGet", timeout=10,
            json={"documents": [f"{rules.documents}/notes/{name}" for name in names]},
            headers={"Authorization": f"Bearer {conftest.token('alice')}"}).status_code

    assert batch_get("hers") == 200
    assert batch_get("hers", "his") == 403
    assert batch_get("his", "hers") == 403


def test_writes_of_one_document_are_one_change_of_a_method(rules):
    assert rules.upload("""
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /a/{id} { allow create, update: if request.resource.data.owner == 'bob'; }
    match /created/{id} { allow create; }
    match /updated/{id} { allow update; }
  }
}""").status_code == 200

    def commit(*writes):
        return requests.post(
            f"{rules.origin}/v1/{rules.documents}:commit", timeout=10,
            json={"writes": [
                {"update": {"name": f"{rules.documents}/{path}", "fields": {"owner": value(owner)}}} | more
                for path, owner, more in writes]},
            headers={"Authorization": f"Bearer {conftest.token('bob')}"}).status_code

    # What counts is what is left, not what was there in between.
    assert commit(("a/1", "bob", {}), ("a/1", "alice", {})) == 403
    assert commit(("a/1", "alice", {}), ("a/1", "bob", {})) == 200
    # A precondition says what is meant, whatever is stored.
    is_there, is_not = ({"currentDocument": {"exists": exists}} for exists in (True, False))
    assert commit(("created/1", "bob", is_there)) == 403
    assert commit(("updated/1", "bob", is_there)) == 404
    assert commit(("created/1", "bob", is_not)) == 200
    assert commit(("created/1", "bob", {})) == 403
    assert commit(("created/1", "bob", is_not)) == 409
    rules.put("updated/1", owner="bob")
    assert commit(("updated/1", "bob", is_not)) == 403
    assert commit(("updated/1", "bob", {})) == 200


def test_rules_see_the_commit_as_a_whole_and_what_was_before(rules):
    assert rules.upload("""
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /posts/{id} {
      allow create: if !exists(/databases/$(database)/documents/counts/$(id))
        && getAfter(/databases/$(database)/documents/counts/$(id)).data.owner == 'bob';
    }
    match /counts/{id} { allow create; }
  }
}""").status_code == 200

    def commit(*writes):
        return requests.post(
            f"{rules.origin}/v1/{rules.documents}:commit", timeout=10,
            json={"writes": [
                {"update": {"name": f"{rules.documents}/{path}", "fields": {"owner": value(owner)}}}
                for path, owner in writes]},
            headers={"Authorization": f"Bearer {conftest.token('bob')}"}).status_code

    assert commit(("posts/1", "bob")) == 403
    assert commit(("posts/1", "bob"), ("counts/1", "alice")) == 403
    assert commit(("posts/1", "bob"), ("counts/1", "bob")) == 200
    rules.put("counts/2", owner="bob")
    assert commit(("posts/2", "bob")) == 403


@pytest.mark.parametrize("count, status", [(1, 200), (2, 200), (3, 403)])
def test_rules_look_at_twenty_documents_for_a_request_of_several(rules, count, status):
    looks = " && ".join(
        f"!exists(/databases/$(database)/documents/looks/$(id + '{number}'))" for number in range(8))
    assert rules.upload(f"""
rules_version = '2';
service cloud.firestore {{
  match /databases/{{database}}/documents {{
    match /many/{{id}} {{ allow read, write: if {looks}; }}
  }}
}}""").status_code == 200
    names = [f"{rules.documents}/many/m{number}" for number in range(count)]
    headers = {"Authorization": f"Bearer {conftest.token('bob')}"}
    for verb, body in [
            ("batchGet", {"documents": names}),
            ("commit", {"writes": [{"update": {"name": name}} for name in names]}),
            ("batchGet", {"documents": names})]:
        reply = requests.post(
            f"{rules.origin}/v1/{rules.documents}:{verb}", json=body, headers=headers, timeout=10)
        assert reply.status_code == status, (verb, reply.text)


def test_rules_look_at_ten_documents_for_a_query_of_several_alternatives(rules):
    rules.put("notes/1", owner="bob")
    looks = " && ".join(
        f"!exists(/databases/$(database)/documents/looks/$(resource.data.owner + '{number}'))"
        for number in range(4))
    assert rules.upload(RULES.replace("resource.data.owner == request.auth.uid", looks)).status_code == 200

    def query_of(*owners):
        return requests.post(
            f"{rules.origin}/v1/{rules.documents}:runQuery", timeout=10,
            headers={"Authorization": f"Bearer {conftest.token('bob')}"},
            json={"structuredQuery": {
                "from": [{"collectionId": "notes"}],
                "where": {"fieldFilter": {
                    "field": {"fieldPath": "owner"}, "op": "IN", "value": value(list(owners))}}}}).status_code

    assert query_of("alice", "bob") == 200
    assert query_of("alice", "bob", "carol") == 403


def test_rules_of_a_collection_do_not_open_its_group(rules):
    assert rules.upload("""
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /notes/{id} { allow read; }
    match /{path=**}/logs/{id} { allow read; }
  }
}""").status_code == 200
    rules.put("notes/1", owner="bob")
    rules.put("rooms/r/notes/1", owner="alice")

    def query_of(name, everywhere):
        return requests.post(
            f"{rules.origin}/v1/{rules.documents}:runQuery", timeout=10,
            headers={"Authorization": f"Bearer {conftest.token('bob')}"},
            json={"structuredQuery": {
                "from": [{"collectionId": name, "allDescendants": everywhere}]}}).status_code

    assert query_of("notes", False) == 200
    assert query_of("notes", True) == 403
    assert query_of("logs", False) == 200 and query_of("logs", True) == 200


def test_rules_see_the_time_of_the_request(rules):
    assert rules.upload("""
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /past/{id} { allow read, write: if request.time < timestamp.date(2020, 1, 1); }
    match /now/{id} {
      allow read, delete: if request.time > timestamp.date(2020, 1, 1);
      allow create: if request.resource.data.at == request.time;
    }
  }
}""").status_code == 200
    headers = {"Authorization": f"Bearer {conftest.token('bob')}"}

    def commit(path, *transforms):
        return requests.post(
            f"{rules.origin}/v1/{rules.documents}:commit", headers=headers, timeout=10,
            json={"writes": [{
                "update": {"name": f"{rules.documents}/{path}"}, "updateTransforms": list(transforms)}]}).status_code

    assert commit("past/1") == 403
    assert rules.get("past/1", "bob") == 403
    assert commit("now/1", {"fieldPath": "at", "setToServerValue": "REQUEST_TIME"}) == 200
    assert rules.get("now/1", "bob") == 200
    for collection_id, status in [("past", 403), ("now", 200)]:
        reply = requests.post(
            f"{rules.origin}/v1/{rules.documents}:runQuery", headers=headers, timeout=10,
            json={"structuredQuery": {"from": [{"collectionId": collection_id}]}})
        assert reply.status_code == status


def test_rules_of_a_database_go_before_those_of_its_project(rules):
    reply = requests.put(
        f"{rules.origin}/emulator/v1/{rules.database}:securityRules", timeout=10,
        json={"rules": {"files": [{"name": "f.rules", "content": RULES.replace("'alice'", "'bob'")}]}})
    assert reply.status_code == 200, reply.text

    def write(uid, database):
        return requests.patch(
            f"{rules.origin}/v1/{rules.documents.replace('(default)', database)}/notes/1", timeout=10,
            json={"fields": {"owner": value(uid)}},
            headers={"Authorization": f"Bearer {conftest.token(uid)}"}).status_code

    assert write("bob", "(default)") == 200 and write("alice", "(default)") == 403
    assert write("bob", "other") == 403 and write("alice", "other") == 200


def test_a_patch_answers_only_what_was_written_to_whom_may_not_read(rules):
    rules.upload(RULES.replace("allow read: if resource.data.owner", "allow get: if resource.data.owner"))
    rules.put("notes/n", owner="bob", secret="of bob")

    def patch(uid):
        return requests.patch(
            f"{rules.origin}/v1/{rules.documents}/notes/n?updateMask.fieldPaths=title", timeout=10,
            json={"fields": {"title": value("new")}},
            headers={"Authorization": f"Bearer {conftest.token(uid)}"})

    reply = patch("alice")
    assert reply.status_code == 200
    assert reply.json()["fields"] == {"title": value("new")}
    assert reply.json()["updateTime"]
    rules.put("notes/n", owner="alice", secret="of alice")
    assert set(patch("alice").json()["fields"]) == {"title", "owner", "secret"}


def test_a_read_of_the_past_is_decided_by_the_documents_of_that_time(rules):
    rules.put("rooms/r", members=["bob"])
    rules.put("rooms/r/messages/m", text="then")
    read_time = requests.post(
        f"{rules.origin}/v1/{rules.documents}:batchGet", timeout=10,
        json={"documents": [f"{rules.documents}/rooms/r"]},
        headers={"Authorization": "Bearer owner"}).json()[0]["readTime"]
    rules.put("rooms/r", members=["carol"])
    rules.put("rooms/r/messages/m", text="now")

    def read(uid, **params):
        return requests.get(
            f"{rules.origin}/v1/{rules.documents}/rooms/r/messages/m", timeout=10, params=params,
            headers={"Authorization": f"Bearer {conftest.token(uid)}"})

    assert read("bob").status_code == 403
    assert read("bob", readTime=read_time).json()["fields"] == {"text": value("then")}
    assert read("carol").json()["fields"] == {"text": value("now")}
    assert read("carol", readTime=read_time).status_code == 403


def test_only_the_administrator_lists_collections_and_writes_batches(rules):
    headers = {"Authorization": f"Bearer {conftest.token('alice')}"}
    for verb in (":listCollectionIds", ":batchWrite", ":partitionQuery"):
        body = {"structuredQuery": {
            "from": [{"collectionId": "notes", "allDescendants": True}],
            "orderBy": [{"field": {"fieldPath": "__name__"}}]},
            "partitionCount": 2} if verb == ":partitionQuery" else {}
        reply = requests.post(
            f"{rules.origin}/v1/{rules.documents}{verb}", json=body, headers=headers, timeout=10)
        assert reply.status_code == 403, (verb, reply.text)
