"""The sample data of `make sample`: readable by the model's rules, and the same when repeated."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import requests
from conftest import CONFIGURATION, PROJECT, ROOT, client, hearth, started

SAMPLE = ROOT / "Sources" / "Tooling" / "Sample" / "sample.py"
NOW = "2026-11-27T09:00:00Z"
# Documents that break the model on purpose have such ids.
ODD = "odd-"


def run(*options, **environment):
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith(("FIRE", "GCLOUD", "HEARTH"))}
    return subprocess.run(
        [sys.executable, str(SAMPLE), *options], capture_output=True, text=True, timeout=120,
        env={**variables, **environment}, check=False)


def fill(suite, *options):
    done = run(
        "--messages", "200", "--now", NOW, *options,
        FIRESTORE_EMULATOR_HOST=suite.address("firestore"),
        FIREBASE_AUTH_EMULATOR_HOST=suite.address("auth"),
        FIREBASE_EMULATOR_HUB=suite.address("hub"), HEARTH_TOKEN=suite.token,
        GCLOUD_PROJECT=PROJECT)
    assert done.returncode == 0, done.stderr
    suite.settle()
    return done.stderr


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A suite of its own: the sample sets flags, and users of usual names."""
    host = os.environ.get("FIRESTORE_EMULATOR_HOST")
    functions = str(ROOT / ".build" / CONFIGURATION / "psst-functions")
    with started(tmp_path_factory.mktemp("sample"), "--executable", functions) as suite:
        fill(suite)
        yield suite, client(suite)
    if host is not None:
        os.environ["FIRESTORE_EMULATOR_HOST"] = host


@pytest.fixture
def db(filled):
    return filled[1]


def stored(query):
    """Documents that follow the model, by path."""
    return {each.reference.path: each.to_dict() for each in query.stream()
            if ODD not in each.reference.path}


def messages(db):
    """The messages of each chat by path, without those of the assistant, in order of time."""
    found = {}
    for path, data in stored(db.collection_group("messages")).items():
        if path.startswith("chats/"):
            found.setdefault(path.split("/messages/")[0], {})[path] = data
    return {chat: dict(sorted(each.items(), key=lambda entry: entry[1]["timestamp"]))
            for chat, each in found.items()}


def test_chats_show_their_last_message(db):
    chats, every = stored(db.collection("chats")), messages(db)

    assert set(chats) == set(every) and len(chats) > 30
    for path, chat in chats.items():
        last = list(every[path].values())[-1]
        assert chat["lastMessage"] == (last["text"] or "Photo"), path
        assert chat["lastMessageTimestamp"] == last["timestamp"], path
        assert chat["isGroupChat"] == ("groupName" in chat)


def test_messages_are_of_members_and_in_order(db):
    chats = stored(db.collection("chats"))
    for path, each in messages(db).items():
        assert list(each) == sorted(each), "ids follow the times"
        for name, message in each.items():
            assert message["senderID"] in message["readBy"], name
            assert set(message["readBy"]) <= set(chats[path]["members"]), name
            assert isinstance(message["text"], str) and "{" not in message["text"], name
            assert message["text"] or message["mediaType"] == "image", name


def test_people_have_documents_and_accounts(filled):
    suite, db = filled
    users = stored(db.collection("users"))
    chats = stored(db.collection("chats"))
    members = {uid for chat in chats.values() for uid in chat["members"]} - {"ghost-2019"}
    trainers = [user for user in users.values() if user.get("role") == "trainer"]

    assert {f"users/{uid}" for uid in members} <= set(users)
    assert len(trainers) == 4 and "role" not in users["users/pat"]
    reply = requests.post(
        f"http://{suite.address('auth')}/identitytoolkit.googleapis.com/v1/"
        "accounts:signInWithPassword?key=any", timeout=10,
        json={"email": "tina@example.com", "password": "secret1"})
    assert reply.status_code == 200 and reply.json()["localId"] == "tina"


def test_contacts_are_users(db):
    users = stored(db.collection("users"))
    every = messages(db)
    contacts = stored(db.collection_group("clients"))
    contacts = {path: data for path, data in contacts.items() if path.startswith("contacts/")}

    assert len(contacts) == 28
    for path, contact in contacts.items():
        user = users[f"users/{contact['clientId']}"]
        assert contact["displayName"] == user["displayName"], path
        _, trainer, _, uid = path.split("/")
        last = list(every[f"chats/{trainer}-{uid}"].values())[-1]
        assert contact["lastContactedAt"] == last["timestamp"], path
    prospects = stored(db.collection_group("prospects"))
    converted = [p for p in prospects.values() if "convertedToClientId" in p]
    assert len(prospects) == 8 and len(converted) == 2


def test_profiles_name_the_messages_they_are_from(db):
    every = messages(db)
    profiles = {path: data for path, data in stored(db.collection_group("clients")).items()
                if path.startswith("clientProfiles/")}
    lists = ("injuries", "goals", "equipment", "preferences", "travel", "stressFactors")

    assert profiles
    for path, profile in profiles.items():
        items = [(name, item) for name in lists for item in profile[name]]
        assert profile["totalItems"] == len(items) > 0, path
        for name, item in items:
            chat = f"chats/{item['sourceChatId']}"
            assert f"{chat}/messages/{item['sourceMessageId']}" in every[chat], path
            assert item["category"] == name


def test_the_migration_finds_chats_that_are_older_than_contacts(filled):
    suite, _ = filled
    result = suite.call("migrateExistingChats", {}, "owner").json()["result"]

    assert {contact["path"] for contact in result["contacts"]} == {
        "contacts/owen/clients/yuki", "contacts/pat/clients/vera", "contacts/tina/clients/walt"}
    reasons = {skip["path"]: skip["reason"] for skip in result["skips"]}
    assert "removed" in reasons["contacts/tina/clients/greg"]
    assert "no role" in reasons["users/pat"]
    assert any("odd-no-members" in error["path"] for error in result["errors"])


def event(suite, state, function):
    listed = suite.cli("events", "list", "--state", state, "--function", function, "--json")
    return json.loads(listed.stdout)[0]


def test_a_dead_event_succeeds_once_its_cause_is_corrected(filled):
    suite, db = filled
    dead = event(suite, "dead", "recordContact")
    assert dead["document"] == "chats/odd-full-chat/messages/m0002"

    chat = db.document("chats/odd-full-chat")
    before = chat.get().to_dict()
    chat.update({"notes": "short"})
    assert suite.cli("events", "retry", dead["id"]).returncode == 0
    suite.settle()
    assert "succeeded" in suite.cli("events", "show", dead["id"]).stdout
    assert chat.get().get("lastMessage").startswith("Week 1:")

    chat.set(before)
    suite.settle()


def test_a_second_run_changes_nothing(filled):
    suite, db = filled

    def count():
        return {name.id: sum(1 for _ in db.collection_group(name.id).stream())
                for name in db.collections()} | {
            name: sum(1 for _ in db.collection_group(name).stream())
            for name in ("messages", "clients", "events", "prospects", "removed")}

    before = count(), messages(db), stored(db.collection("chats"))
    fill(suite)
    after = count(), messages(db), stored(db.collection("chats"))
    assert after == before


def test_measurements_are_written_on_request(filled):
    suite, db = filled
    assert "measurements: 1,000 of 1,000" in fill(suite, "--bulk", "1000")
    assert db.collection("measurements").count().get()[0][0].value == 1000
    one = db.document("measurements/m0000999").get().to_dict()
    assert set(one) == {"uid", "kind", "value", "at", "note"}


@pytest.mark.parametrize("options, status, words", [
    (["--firestore", "127.0.0.1:1"], 1, "start one with `make start`"),
    (["--firestore", "here"], 1, "give HOST:PORT"),
    (["--messages", "many"], 2, "not a number"),
    (["--messages", "0"], 2, "1 or more"),
    (["--now", "soon"], 2, "not a time"),
])
def test_what_is_wrong_is_said_in_a_line(options, status, words):
    done = run(*options)
    assert done.returncode == status and words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_the_model_s_answers_need_no_suite(tmp_path):
    file = tmp_path / "answers.json"
    done = run("--answers", str(file), "--now", NOW)
    assert done.returncode == 0, done.stderr
    rules = json.loads(file.read_text(encoding="utf-8"))["rules"]
    assert len(rules) > 100 and all("contains" in rule for rule in rules)


@pytest.mark.timeout(180)
def test_the_sample_answers_by_its_script_and_leaves_nothing():
    ports = " ".join(f"--{name}-port 0" for name in
                     ("hub", "functions", "firestore", "database", "auth", "tasks", "vectors", "ui"))
    process = subprocess.Popen(
        ["sh", "Sources/Tooling/Scripts/sample.sh", CONFIGURATION, "no-build"], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "START_OPTIONS": ports, "SAMPLE_OPTIONS": "--messages 200"})
    try:
        text = ""
        for line in process.stdout:
            text += line
            if "Ctrl-C stops" in line:
                break
        hub = re.search(r"export FIREBASE_EMULATOR_HUB=(\S+)", text)[1]
        folder = pathlib.Path(re.search(r"Its log until then: (\S+)/log", text)[1])
        asked = subprocess.run(
            [hearth(), "call", "chatWithAI", "--hub", hub, "--as", "tina", "--data",
             json.dumps({"message": "Who had asthma as a kid?"})],
            capture_output=True, text=True, timeout=60, check=True)
        assert json.loads(asked.stdout)["model"] == "scripted"
    finally:
        process.terminate()
        process.wait(timeout=30)
    assert not folder.exists()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://{hub}/", timeout=5)
