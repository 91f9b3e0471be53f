"""Psst's functions: a trigger fired by a write, a callable over HTTP, and the commands around."""

import json
import uuid

import pytest
import requests
from conftest import token
from google.cloud import firestore


@pytest.fixture
def chat(suite, db):
    """A chat between a trainer and a client with one message that is searchable."""
    suffix = uuid.uuid4().hex[:8]
    trainer, client, chat = f"t-{suffix}", f"c-{suffix}", f"chat-{suffix}"
    for uid, role in ((trainer, "trainer"), (client, "client")):
        db.document(f"users/{uid}").set({
            "id": uid, "uid": uid, "email": f"{uid}@psst.app", "displayName": uid.title(),
            "role": role, "createdAt": firestore.SERVER_TIMESTAMP,
            "updatedAt": firestore.SERVER_TIMESTAMP})
    db.document(f"chats/{chat}").set({
        "id": chat, "members": [trainer, client], "lastMessage": "", "isGroupChat": False,
        "lastMessageTimestamp": firestore.SERVER_TIMESTAMP,
        "createdAt": firestore.SERVER_TIMESTAMP, "updatedAt": firestore.SERVER_TIMESTAMP})
    message = f"m-{suffix}"
    db.document(f"chats/{chat}/messages/{message}").set({
        "id": message, "text": f"My sore knee hurts after squats {suffix}", "senderID": client,
        "timestamp": firestore.SERVER_TIMESTAMP, "readBy": [client]})
    suite.settle()
    return {"trainer": trainer, "client": client, "chat": chat, "message": message,
            "vector": f"{chat}#{message}", "suffix": suffix}


def vectors(suite, path, **options):
    host = requests.get(
        f"http://{suite.address('vectors')}/indexes/chat-messages", timeout=10).json()["host"]
    return requests.get(f"{host}/{path}", timeout=10, **options).json()


def test_a_message_becomes_a_vector_with_its_metadata(suite, chat):
    found = vectors(suite, "vectors/fetch", params={"ids": chat["vector"]})["vectors"]

    metadata = found[chat["vector"]]["metadata"]
    assert metadata["firestoreMessageId"] == chat["message"]
    assert metadata["firestoreChatId"] == chat["chat"]
    assert metadata["trainerId"] == chat["trainer"]
    assert metadata["senderId"] == chat["client"]
    assert metadata["isGroupChat"] is False
    assert sorted(metadata["members"]) == sorted([chat["trainer"], chat["client"]])
    assert metadata["timestamp"] > 1_500_000_000_000


def test_a_member_finds_the_message_and_a_stranger_does_not(suite, db, chat):
    query = {"query": f"sore knee {chat['suffix']}"}

    reply = suite.call("semanticSearch", query, token(chat["trainer"]))
    assert reply.status_code == 200, reply.text
    result = reply.json()["result"]
    assert [hit["messageId"] for hit in result["results"]] == [chat["message"]]
    assert result["provider"] == "lexical" and result["degraded"] is True

    db.document("users/stranger").set({"displayName": "Stranger", "role": "client"})
    stranger = suite.call("semanticSearch", query, token("stranger"))
    assert stranger.json()["result"]["results"] == []


def test_deleting_the_message_deletes_its_vector(suite, db, chat):
    db.document(f"chats/{chat['chat']}/messages/{chat['message']}").delete()
    suite.settle()

    assert vectors(suite, "vectors/fetch", params={"ids": chat["vector"]})["vectors"] == {}


def test_deleting_the_chat_deletes_its_vectors(suite, db, chat):
    db.document(f"chats/{chat['chat']}").delete()
    suite.settle()

    assert vectors(suite, "vectors/fetch", params={"ids": chat["vector"]})["vectors"] == {}


def test_changed_members_reach_the_vectors(suite, db, chat):
    db.document(f"chats/{chat['chat']}").update({"members": [chat["trainer"]]})
    suite.settle()

    found = vectors(suite, "vectors/fetch", params={"ids": chat["vector"]})["vectors"]
    assert found[chat["vector"]]["metadata"]["members"] == [chat["trainer"]]
    hits = suite.call("semanticSearch", {"query": "sore knee"}, token(chat["client"])).json()
    assert chat["message"] not in [hit["messageId"] for hit in hits["result"]["results"]]


@pytest.mark.parametrize("headers, status, code", [
    ({}, 401, "UNAUTHENTICATED"),
    ({"Authorization": "Bearer rubbish"}, 401, "UNAUTHENTICATED"),
    ({"Authorization": "Bearer owner"}, 401, "UNAUTHENTICATED"),
])
def test_credentials_are_checked(suite, headers, status, code):
    reply = requests.post(
        suite.url("semanticSearch"), json={"data": {"query": "x"}}, headers=headers, timeout=30)

    assert reply.status_code == status
    assert reply.json()["error"]["status"] == code


@pytest.mark.parametrize("function, data, bearer", [
    ("semanticSearch", {"query": "x"}, token("u")), ("migrateExistingChats", {}, "owner"),
    ("backfillEmbeddings", {}, "owner"),
])
def test_keys_that_a_callable_does_not_know_are_ignored(suite, db, function, data, bearer):
    db.document("users/u").set({"displayName": "U", "role": "client"})
    plain = suite.call(function, data, bearer)
    reply = suite.call(function, {**data, "more": {"deep": [1]}, "": None}, bearer)

    assert plain.status_code == reply.status_code == 200, reply.text
    assert set(reply.json()["result"]) == set(plain.json()["result"])


@pytest.mark.parametrize("body", ["{", '{"data": {}, "more": 1}', '{"data": {"query": 5}}', "[]"])
def test_malformed_calls_are_invalid_arguments(suite, body):
    reply = requests.post(
        suite.url("semanticSearch"), data=body, timeout=30,
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {token('u')}"})

    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"


def test_an_unknown_function_names_those_there_are(suite):
    reply = suite.call("nobody", None)

    assert reply.status_code == 404
    assert "semanticSearch" in reply.text


def test_too_long_a_body_is_refused(suite):
    reply = suite.call("semanticSearch", {"query": "x" * (11 << 20)}, token("u"))

    assert reply.status_code == 413


def test_a_browser_may_call_from_another_origin(suite):
    reply = requests.options(
        suite.url("semanticSearch"), timeout=30,
        headers={"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization,content-type"})

    assert reply.status_code == 204
    assert reply.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"


def test_the_commands_show_the_same(suite, chat):
    called = suite.cli(
        "call", "semanticSearch", "--as", chat["client"],
        "--data", json.dumps({"query": f"sore knee {chat['suffix']}"}))
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["results"][0]["messageId"] == chat["message"]

    logs = suite.cli("functions", "logs", "embedMessage")
    assert chat["message"] in logs.stdout
    events = json.loads(suite.cli("events", "list", "--json", "--limit", "1000").stdout)
    mine = [e for e in events if e["document"].endswith(chat["message"])]
    assert sorted((e["function"], e["state"]) for e in mine) == [
        (function, "succeeded")
        for function in ("embedMessage", "extractProfileInfoOnMessage", "recordContact")]


def test_a_failing_call_exits_with_one_and_says_why(suite):
    called = suite.cli("call", "semanticSearch", "--data", '{"query": "x"}')

    assert called.returncode == 1
    assert "UNAUTHENTICATED" in called.stderr and called.stdout == ""
