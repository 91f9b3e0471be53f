"""What a message changes beside itself: its chat's last message and the trainer's contact."""

import datetime
import uuid

import pytest

START = datetime.datetime(2026, 5, 1, 9, tzinfo=datetime.timezone.utc)


def after(minutes):
    return START + datetime.timedelta(minutes=minutes)


def people(db, suffix, **roles):
    """Users with these roles; returns their uids."""
    uids = []
    for name, role in roles.items():
        uid = f"{name}-{suffix}"
        user = {"id": uid, "uid": uid, "email": f"{uid}@psst.app", "displayName": name.title()}
        db.document(f"users/{uid}").set({**user, "role": role} if role else user)
        uids.append(uid)
    return uids


def chat_of(db, chat, members, group=False):
    db.document(f"chats/{chat}").set({
        "id": chat, "members": members, "lastMessage": "", "lastMessageTimestamp": START,
        "isGroupChat": group, "createdAt": START, "updatedAt": START})


def say(db, chat, message, text, sender, time, **more):
    db.document(f"chats/{chat}/messages/{message}").set({
        "id": message, "text": text, "senderID": sender, "timestamp": time, "readBy": [sender],
        **more})


@pytest.fixture
def world(db):
    """A trainer, a client who is a contact, and their chat."""
    suffix = uuid.uuid4().hex[:8]
    trainer, client = people(db, suffix, tina="trainer", carl="client")
    chat, contact = f"chat-{suffix}", db.document(f"contacts/{trainer}/clients/{client}")
    contact.set({"clientId": client, "displayName": "Carl", "email": f"{client}@psst.app",
                 "addedAt": START})
    chat_of(db, chat, [trainer, client])
    return {"trainer": trainer, "client": client, "chat": chat, "contact": contact,
            "suffix": suffix}


def test_chat_and_contact_follow_the_newest_message(suite, db, world):
    chat = db.document(f"chats/{world['chat']}")
    say(db, world["chat"], "m2", "Two", world["client"], after(2))
    suite.settle()
    say(db, world["chat"], "m1", "One", world["trainer"], after(1))
    suite.settle()

    stored = chat.get().to_dict()
    assert (stored["lastMessage"], stored["lastMessageTimestamp"]) == ("Two", after(2))
    assert stored["members"] == [world["trainer"], world["client"]]
    assert stored["updatedAt"] > START and stored["createdAt"] == START
    contact = world["contact"].get().to_dict()
    assert contact == {"clientId": world["client"], "displayName": "Carl", "addedAt": START,
                       "email": f"{world['client']}@psst.app", "lastContactedAt": after(2)}

    say(db, world["chat"], "m3", "", world["trainer"], after(3), mediaType="image",
        mediaURL="https://example.com/image.jpg")
    suite.settle()
    assert chat.get().get("lastMessage") == "Photo"
    assert world["contact"].get().get("lastContactedAt") == after(3)


def test_of_one_moment_the_greatest_id_is_the_last_message(suite, db, world):
    for message in ("m2", "m3", "m1"):
        say(db, world["chat"], message, f"Text of {message}", world["client"], after(1))
        suite.settle()

    assert db.document(f"chats/{world['chat']}").get().get("lastMessage") == "Text of m3"


def test_a_group_has_a_last_message_and_touches_no_contact(suite, db, world):
    chat = f"group-{world['suffix']}"
    chat_of(db, chat, [world["trainer"], world["client"]], group=True)
    say(db, chat, "m1", "Hello all", world["client"], after(1))
    suite.settle()

    assert db.document(f"chats/{chat}").get().get("lastMessage") == "Hello all"
    assert "lastContactedAt" not in world["contact"].get().to_dict()


def test_no_contact_and_no_chat_is_made(suite, db, world):
    world["contact"].delete()
    say(db, world["chat"], "m1", "Hello", world["client"], after(1))
    say(db, f"none-{world['suffix']}", "m1", "Hello", world["client"], after(1))
    suite.settle()

    assert not world["contact"].get().exists
    assert not db.document(f"chats/none-{world['suffix']}").get().exists


def test_without_a_chat_model_no_profile_is_made_and_the_log_says_why(suite, db, world):
    say(db, world["chat"], f"m-{world['suffix']}", "My knee hurts", world["client"], after(1))
    suite.settle()

    assert not db.document(f"clientProfiles/{world['trainer']}/clients/{world['client']}").get().exists
    logs = suite.cli("logs", "extractProfileInfoOnMessage", "--quiet").stdout
    line = next(line for line in logs.splitlines() if f"m-{world['suffix']}" in line)
    assert "no chat model is configured" in line


def test_writing_the_chat_ends_with_the_chat(suite, db, world):
    """The chat's update is an event too; it refreshes nothing and nothing follows from it."""
    say(db, world["chat"], "m1", "Hello", world["client"], after(1))
    suite.settle()
    written = db.document(f"chats/{world['chat']}").get().update_time
    suite.settle()

    assert db.document(f"chats/{world['chat']}").get().update_time == written
    logs = suite.cli("logs", "refreshChatMembers", "--quiet").stdout
    lines = [line for line in logs.splitlines() if world["chat"] in line]
    assert len(lines) == 2
    assert "it is new" in lines[0] and "its members are the same" in lines[1]
