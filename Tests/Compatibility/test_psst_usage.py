"""What calls of models cost, as a real worker counts it, and its limits."""

import datetime
import uuid

import pytest
from conftest import client, started_with_settings, token


@pytest.fixture(scope="module")
def suite(openai_stub, tmp_path_factory):
    """A suite of its own, with paid models and few searches."""
    openai_stub.control("reset", {})
    with started_with_settings(
            tmp_path_factory.mktemp("psst"), OPENAI_BASE_URL=f"{openai_stub.origin}/v1",
            OPENAI_API_KEY="sk-test", PSST_CHAT_MODEL="gpt-4o-mini",
            PSST_SEARCHES_PER_MINUTE="3") as suite:
        yield suite


@pytest.fixture(scope="module")
def db(suite):
    return client(suite)


def days(db, payer):
    return [day.to_dict() for day in db.collection(f"usage/{payer}/days").stream()]


def test_a_message_is_charged_to_its_sender_and_in_the_sum(suite, db, openai_stub):
    suffix = uuid.uuid4().hex[:8]
    trainer, sender, chat = f"tina-{suffix}", f"carl-{suffix}", f"chat-{suffix}"
    now = datetime.datetime.now(datetime.timezone.utc)
    for uid, role in ((trainer, "trainer"), (sender, "client")):
        db.document(f"users/{uid}").set({"displayName": uid, "role": role})
    db.document(f"chats/{chat}").set({"members": [trainer, sender], "isGroupChat": False})
    db.document(f"contacts/{trainer}/clients/{sender}").set({
        "id": sender, "clientId": sender, "displayName": "Carl", "email": "carl@psst.app",
        "addedAt": now})
    openai_stub.script(rules=[{"contains": "", "reply": {"json": {"facts": []}}}])
    db.document(f"chats/{chat}/messages/m1").set({
        "id": "m1", "text": "My knee is sore", "senderID": sender, "timestamp": now,
        "readBy": [sender]})
    suite.settle()

    (day,) = days(db, sender)
    assert day["requests"] == 2 and day["costUSD"] > 0
    assert set(day["byModel"]) == {"text-embedding-3-small", "gpt-4o-mini"}
    for field in ("requests", "tokens"):
        assert day[field] == sum(model[field] for model in day["byModel"].values()) > 0
    (total,) = days(db, "_app")
    assert total["tokens"] >= day["tokens"]
    assert days(db, trainer) == []


def test_searches_beyond_the_limit_say_when_to_try_again(suite, db):
    caller = f"carla-{uuid.uuid4().hex[:8]}"
    db.document(f"users/{caller}").set({"displayName": "Carla", "role": "client"})
    replies = [
        suite.call("semanticSearch", {"query": f"knee {number}"}, token(caller))
        for number in range(5)]

    assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429]
    error = replies[-1].json()["error"]
    assert error["status"] == "RESOURCE_EXHAUSTED"
    assert 1 <= error["details"]["retryAfterSeconds"] <= 60
