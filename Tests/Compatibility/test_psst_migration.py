"""Psst's functions for administrators: migrateExistingChats, rollbackMigration, backfillEmbeddings."""

import threading
import uuid

import pytest
import requests
from conftest import client, started_psst, token
from google.cloud import firestore

ADMIN = "owner"
REAL = {"dryRun": False, "confirm": "migrate"}
ROLL_BACK = {"dryRun": False, "confirm": "rollback"}
EMBED = {"dryRun": False, "confirm": "backfill"}


def user(db, uid, role="client", **fields):
    data = {"id": uid, "uid": uid, "email": f"{uid}@psst.app", "displayName": uid.title(),
            "createdAt": firestore.SERVER_TIMESTAMP, "updatedAt": firestore.SERVER_TIMESTAMP}
    if role:
        data["role"] = role
    db.document(f"users/{uid}").set({**data, **fields})


def chat(db, name, *members, group=False):
    db.document(f"chats/{name}").set({
        "id": name, "members": list(members), "lastMessage": "", "isGroupChat": group,
        "lastMessageTimestamp": firestore.SERVER_TIMESTAMP,
        "createdAt": firestore.SERVER_TIMESTAMP, "updatedAt": firestore.SERVER_TIMESTAMP})


def stored(db, trainer):
    return {c.id: c.to_dict() for c in db.collection(f"contacts/{trainer}/clients").stream()}


def call(suite, function, data, bearer=ADMIN):
    reply = suite.call(function, data, bearer)
    assert reply.status_code == 200, reply.text
    return reply.json()["result"]


@pytest.fixture(scope="module")
def suite():
    """A suite of its own: a migration reads all chats, and the other tests leave thousands."""
    with started_psst() as suite:
        yield suite


@pytest.fixture(scope="module")
def db(suite):
    return client(suite)


@pytest.fixture
def names():
    """Names of this test's own."""
    suffix = uuid.uuid4().hex[:8]
    return lambda name: f"{name}-{suffix}"


@pytest.fixture
def people(db, names):
    """A trainer and two clients in a chat each, one of them in a group with a ghost too."""
    tina, carl, cora = names("tina"), names("carl"), names("cora")
    user(db, tina, "trainer")
    user(db, carl)
    user(db, cora)
    chat(db, names("one"), tina, carl)
    chat(db, names("group"), tina, carl, cora, names("ghost"), group=True)
    yield {"tina": tina, "carl": carl, "cora": cora, "ghost": names("ghost")}
    for name in ("one", "group"):
        db.document(f"chats/{names(name)}").delete()


@pytest.mark.parametrize("function", [
    "migrateExistingChats", "backfillEmbeddings", "rollbackMigration"])
@pytest.mark.parametrize("bearer, status, code", [
    (None, 401, "UNAUTHENTICATED"),
    (token("tina"), 403, "PERMISSION_DENIED"),
    (token("tina", admin=False), 403, "PERMISSION_DENIED"),
    (token("tina", admin="true"), 403, "PERMISSION_DENIED"),
    (token("tina", admin=True), 200, None),
    (ADMIN, 200, None),
])
def test_only_administrators_may(suite, function, bearer, status, code):
    reply = suite.call(function, {"dryRun": True, "run": "nothing"}, bearer)
    if function == "rollbackMigration" and status == 200:
        status, code = 404, "NOT_FOUND"

    assert reply.status_code == status, reply.text
    if code:
        assert reply.json()["error"]["status"] == code


@pytest.mark.parametrize("data", [
    {"dryRun": False}, {"dryRun": False, "confirm": "yes"}, {"dryRun": False, "confirm": ""},
])
def test_a_real_migration_must_be_confirmed(suite, db, people, data):
    reply = suite.call("migrateExistingChats", data, ADMIN)

    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert stored(db, people["tina"]) == {}


def test_a_dry_run_says_what_a_real_one_writes(suite, db, people):
    dry = call(suite, "migrateExistingChats", {})
    assert dry["dryRun"] is True and dry["backup"] is None
    assert stored(db, people["tina"]) == {}

    real = call(suite, "migrateExistingChats", REAL)
    assert real["dryRun"] is False and real["backup"]
    assert set(real) == set(dry) == {
        "dryRun", "run", "contacts", "counts", "skips", "errors", "backup", "truncated"}
    assert {c["data"].pop("source") for c in dry["contacts"]} == {dry["run"]}
    source = {c["data"]["source"] for c in real["contacts"]}
    assert source == {real["run"]} and real["run"] != dry["run"]
    assert [{**c, "data": {k: v for k, v in c["data"].items() if k != "source"}}
            for c in real["contacts"]] == dry["contacts"]
    assert real["counts"] == dry["counts"]
    assert real["skips"] == dry["skips"]
    mine = [c for c in real["contacts"] if c["path"].split("/")[1] == people["tina"]]
    assert sorted(c["path"].split("/")[3] for c in mine) == [people["carl"], people["cora"]]
    contacts = stored(db, people["tina"])
    for contact in mine:
        data = contacts[contact["path"].split("/")[3]]
        assert set(data) == set(contact["data"])
        for field in ("id", "clientId", "displayName", "email", "source"):
            assert data[field] == contact["data"][field]
    assert any(people["ghost"] in skip["path"] for skip in real["skips"])


def test_a_second_run_writes_nothing(suite, db, people):
    call(suite, "migrateExistingChats", REAL)
    path = f"contacts/{people['tina']}/clients/{people['carl']}"
    before = db.document(path).get().update_time

    again = call(suite, "migrateExistingChats", REAL)
    assert again["contacts"] == [] and again["counts"]["created"] == 0
    assert again["counts"]["existing"] >= 2
    assert db.document(path).get().update_time == before


def test_a_contact_that_is_there_stays_as_it_is(suite, db, people):
    path = f"contacts/{people['tina']}/clients/{people['carl']}"
    mine = {"clientId": people["carl"], "displayName": "My Carl", "email": "old@psst.app",
            "addedAt": firestore.SERVER_TIMESTAMP}
    db.document(path).set(mine)
    before = db.document(path).get()

    call(suite, "migrateExistingChats", REAL)
    after = db.document(path).get()
    assert after.to_dict() == before.to_dict() and after.update_time == before.update_time


def test_users_without_a_role_are_trainers(suite, db, names, people):
    olga = names("olga")
    user(db, olga, role=None)
    chat(db, names("old"), olga, people["carl"])

    reply = call(suite, "migrateExistingChats", REAL)
    assert list(stored(db, olga)) == [people["carl"]]
    assert any(skip["path"] == f"users/{olga}" for skip in reply["skips"])
    assert people["carl"] not in stored(db, people["carl"])


def test_some_trainers_are_migrated_and_the_run_is_rolled_back(suite, db, names, people):
    theo = names("theo")
    user(db, theo, "trainer")
    chat(db, names("theos"), theo, people["carl"])

    reply = call(suite, "migrateExistingChats", {"trainerIds": [theo], **REAL})
    assert [c["path"] for c in reply["contacts"]] == [f"contacts/{theo}/clients/{people['carl']}"]
    assert stored(db, people["tina"]) == {}

    dry = call(suite, "rollbackMigration", {"run": reply["run"]})
    assert dry == {"dryRun": True, "run": reply["run"], "kept": [], "truncated": False,
                   "removed": [f"contacts/{theo}/clients/{people['carl']}"],
                   "counts": {"removed": 1, "kept": 0}}
    assert list(stored(db, theo)) == [people["carl"]]
    real = call(suite, "rollbackMigration", {"run": reply["run"], **ROLL_BACK})
    assert real == {**dry, "dryRun": False}
    assert stored(db, theo) == {}


def test_a_message_keeps_no_contact_from_its_rollback(suite, db, people, names):
    run = call(suite, "migrateExistingChats", {"trainerIds": [people["tina"]], **REAL})["run"]
    db.document(f"chats/{names('one')}/messages/{names('hello')}").set({
        "id": names("hello"), "text": "Hello", "senderID": people["carl"], "readBy": [],
        "timestamp": firestore.SERVER_TIMESTAMP})
    suite.settle()
    assert "lastContactedAt" in stored(db, people["tina"])[people["carl"]]
    db.document(f"contacts/{people['tina']}/clients/{people['cora']}").update(
        {"displayName": "Cora from the gym"})

    reply = call(suite, "rollbackMigration", {"run": run, **ROLL_BACK})
    assert (reply["counts"]["removed"], reply["counts"]["kept"]) == (1, 1)
    assert list(stored(db, people["tina"])) == [people["cora"]]


@pytest.mark.parametrize("function, data", [
    ("migrateExistingChats", {"trainerIds": value}) for value in (
        "tina", 7, {}, [7], [None], [["tina"]], [], [""], ["a/b"], ["x" * 600],
        [f"t{n}" for n in range(1001)])
] + [("migrateExistingChats", data) for data in (
    {"dryRun": "no"}, {"dryRun": 0}, {"dryRun": False, "confirm": 7}, [], "all", 7)
] + [("rollbackMigration", {"run": value}) for value in (7, None, [], {}, "", "trainer", "x" * 101)
] + [("rollbackMigration", data) for data in (
    {}, {"run": "r", "dryRun": "no"}, {"run": "r", "dryRun": False},
    {"run": "r", "dryRun": False, "confirm": "migrate"})])
def test_a_senseless_migration_or_rollback_is_refused(suite, function, data):
    reply = suite.call(function, data, ADMIN)

    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"


def test_calls_at_once_write_every_contact_once(suite, db, names):
    trainer = names("busy")
    user(db, trainer, "trainer")
    clients = [names(f"client{number}") for number in range(20)]
    for client in clients:
        user(db, client)
        chat(db, f"{client}-chat", trainer, client)
    replies = []

    def run():
        replies.append(call(suite, "migrateExistingChats", REAL))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(replies) == 3
    assert sorted(stored(db, trainer)) == sorted(clients)
    assert all(reply["errors"] == [] for reply in replies)


@pytest.fixture
def messages(suite, db, names, people):
    """Three messages with text and two without, embedded by the trigger, their vectors deleted."""
    name = names("one")
    ids = [names(f"m{number}") for number in range(3)]
    for number, message in enumerate(ids):
        db.document(f"chats/{name}/messages/{message}").set({
            "id": message, "text": f"knee number {number}", "senderID": people["carl"],
            "timestamp": firestore.SERVER_TIMESTAMP, "readBy": []})
    db.document(f"chats/{name}/messages/{names('image')}").set({
        "id": "i", "senderID": people["carl"], "timestamp": firestore.SERVER_TIMESTAMP,
        "mediaType": "image", "readBy": []})
    db.document(f"chats/{name}/messages/{names('blank')}").set({
        "id": "b", "text": "  ", "senderID": people["carl"], "readBy": [],
        "timestamp": firestore.SERVER_TIMESTAMP})
    suite.settle()
    yield {"chat": name, "vectors": [f"{name}#{message}" for message in ids]}
    for message in db.collection(f"chats/{name}/messages").stream():
        message.reference.delete()
    suite.settle()


def data_plane(suite):
    return requests.get(
        f"http://{suite.address('vectors')}/indexes/chat-messages", timeout=10).json()["host"]


def fetch(suite, ids):
    reply = requests.get(
        f"{data_plane(suite)}/vectors/fetch", params={"ids": ids}, timeout=10).json()
    return reply["vectors"]


def forget(suite, ids):
    requests.post(
        f"{data_plane(suite)}/vectors/delete", json={"ids": ids}, timeout=10).raise_for_status()


def test_missing_vectors_are_made_as_the_trigger_makes_them(suite, messages):
    made = fetch(suite, messages["vectors"])
    assert len(made) == 3
    forget(suite, messages["vectors"])

    dry = call(suite, "backfillEmbeddings", {"chatId": messages["chat"]})
    assert dry["dryRun"] is True
    assert (dry["scanned"], dry["missing"], dry["embedded"], dry["skipped"]) == (5, 3, 0, 2)
    assert fetch(suite, messages["vectors"]) == {}

    real = call(suite, "backfillEmbeddings", {"chatId": messages["chat"], **EMBED})
    assert real == {
        "dryRun": False, "scanned": 5, "missing": 3, "embedded": 3, "skipped": 2, "failed": 0, "errors": [],
        "tokens": 0, "estimatedCostUSD": 0, "done": True, "stopped": None}
    assert fetch(suite, messages["vectors"]) == made

    again = call(suite, "backfillEmbeddings", {"chatId": messages["chat"], **EMBED})
    assert (again["missing"], again["embedded"], again["done"]) == (0, 0, True)


def test_a_limit_stops_and_the_next_call_goes_on(suite, messages):
    forget(suite, messages["vectors"])

    first = call(suite, "backfillEmbeddings", {"chatId": messages["chat"], "limit": 2, **EMBED})
    assert (first["embedded"], first["done"]) == (2, False)
    second = call(suite, "backfillEmbeddings", {"chatId": messages["chat"], **EMBED})
    assert (second["embedded"], second["done"]) == (1, True)
    assert len(fetch(suite, messages["vectors"])) == 3


def test_all_chats_are_embedded_without_a_chat_given(suite, messages):
    forget(suite, messages["vectors"][:1])

    reply = call(suite, "backfillEmbeddings", EMBED)
    assert reply["done"] is True and reply["embedded"] >= 1
    assert len(fetch(suite, messages["vectors"])) == 3


@pytest.mark.parametrize("data", [{"limit": 0}, {"limit": -1}, {"chatId": ""}, {"chatId": "a/b"}, {"dryRun": False},
                                  {"dryRun": False, "confirm": "migrate"}, {"maxCostUSD": -1}])
def test_a_senseless_backfill_is_refused(suite, data):
    reply = suite.call("backfillEmbeddings", data, ADMIN)

    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"
