"""Two apps made of Psst's Swift library and a client of Google's in one chat, under the access rules.

The apps are processes of `PsstApp`, which sign up, send and listen over sockets. Google's client acts
as a third user by her ID token.
"""

import contextlib
import datetime
import json
import os
import queue
import shutil
import signal
import subprocess
import threading

import conftest
import pytest
import requests
from google.cloud import firestore

WAIT = 30
FLAG = "relationship_validation_enabled"


class App:
    """A process of the library's app."""

    def __init__(self, suite, folder=None, options=()):
        environment = {
            "PATH": os.environ["PATH"], "GCLOUD_PROJECT": conftest.PROJECT,
            "FIRESTORE_EMULATOR_HOST": suite.address("firestore"),
            "FIREBASE_AUTH_EMULATOR_HOST": suite.address("auth")}
        options = ["--functions", suite.url("").rstrip("/"), *options]
        if folder:
            options += ["--queue", str(folder)]
        self.process = subprocess.Popen(
            [str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "PsstApp"), *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.count = 0
        self.replies, self.observed = queue.Queue(), {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if "observed" in event:
                self.observed.setdefault(event["observed"], queue.Queue()).put(event)
            else:
                self.replies.put(event)

    def ask(self, action, **values):
        """The reply to a command."""
        self.count += 1
        self.process.stdin.write(json.dumps({"id": self.count, "do": action, **values}) + "\n")
        self.process.stdin.flush()
        reply = self.replies.get(timeout=WAIT)
        assert reply["id"] == self.count
        return reply

    def do(self, action, **values):
        """The result of a command that succeeds."""
        reply = self.ask(action, **values)
        assert "ok" in reply, reply
        return reply["ok"]

    def sign_up(self, name, role):
        [uid] = self.do("signUp", email=f"{name}@psst.app", text="secret1", name=name.title(), role=role)
        return uid

    def shown(self, name, holds):
        """The first value observed under a name that satisfies a condition."""
        while True:
            event = self.observed.setdefault(name, queue.Queue()).get(timeout=WAIT)
            assert "items" in event, event
            if holds(event["items"]):
                return event["items"]

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=10) == 0


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("psst")
    for file in ("firestore.rules", "firestore.indexes.json"):
        shutil.copy(conftest.ROOT / file, folder)
    binary = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "psst-functions")
    # As in production, a query without an index fails.
    with conftest.started(folder, "--executable", binary, "--strict-indexes") as suite:
        yield suite


@pytest.fixture
def apps(suite):
    """Makes apps, which end with the test."""
    with contextlib.ExitStack() as stack:
        def make(folder=None, options=()):
            app = App(suite, folder, options)
            stack.callback(lambda: app.process.poll() is not None or app.stop())
            return app
        yield make


@pytest.fixture
def db(suite):
    """Google's client with the rights of an administrator, in an empty database."""
    for service, path in (("firestore", "emulator/v1"), ("auth", "emulator/v1")):
        tail = "databases/(default)/documents" if service == "firestore" else "accounts"
        address = f"http://{suite.address(service)}/{path}/projects/{conftest.PROJECT}/{tail}"
        assert requests.delete(address, timeout=30, headers={"Authorization": "Bearer owner"}).ok
    return conftest.client(suite)


def as_user(suite, uid):
    """Google's client as a user, whose token it sends instead of the administrator's."""
    db = conftest.client(suite)
    metadata = [entry for entry in db._rpc_metadata if entry[0] != "authorization"]
    token = conftest.token(uid, email=f"{uid}@psst.app")
    db._rpc_metadata_internal = [*metadata, ("authorization", f"Bearer {token}")]
    return db


def cover(db, percent):
    db.document("remoteConfig/template").set({
        "conditions": [{"name": "covered", "expression": f"percent <= {percent}"}],
        "parameters": {FLAG: {
            "defaultValue": {"value": "false"},
            "conditionalValues": {"covered": {"value": "true"}}}}})


def delivered(*texts):
    return lambda items: [item.split(" ", 1)[0] for item in items] == ["delivered"] * len(texts) and [
        item.split(" ", 1)[1].rsplit(" ", 1)[0] for item in items] == list(texts)


@pytest.mark.parametrize("options", [(), ("--url-session",)], ids=["libcurl", "URLSession"])
def test_two_apps_and_googles_client_talk_in_one_group(suite, db, apps, options):
    trainer, client = apps(options=options), apps(options=options)
    tina, carl = trainer.sign_up("tina", "trainer"), client.sign_up("carl", "client")
    db.document("users/cora").set({"displayName": "Cora", "role": "client", "email": "cora@psst.app"})
    assert trainer.do("addClient", email="Carl@psst.app") == [carl]
    assert trainer.do("addClient", email="cora@psst.app") == ["cora"]
    [group] = trainer.do("createChat", members=[tina, carl, "cora"], name="Runners")
    cora = as_user(suite, "cora")
    heard = queue.Queue()
    messages = cora.collection(f"chats/{group}/messages")
    watch = messages.order_by("timestamp").on_snapshot(
        lambda documents, *_: heard.put([document.get("text") for document in documents]))
    try:
        for app in (trainer, client):
            app.do("observeMessages", chat=group)
            app.do("observeChats")
        trainer.do("send", chat=group, text="Hello runners")
        for app in (trainer, client):
            app.shown(group, delivered("Hello runners"))
        while heard.get(timeout=WAIT) != ["Hello runners"]:
            pass

        messages.document("from-cora").set({
            "id": "from-cora", "text": "Hello Tina", "senderID": "cora",
            "timestamp": firestore.SERVER_TIMESTAMP, "readBy": ["cora"]})
        for app in (trainer, client):
            app.shown(group, delivered("Hello runners", "Hello Tina"))
        client.do("send", chat=group, text="Hi all")
        while heard.get(timeout=WAIT) != ["Hello runners", "Hello Tina", "Hi all"]:
            pass
        # The server's function tells the list of chats.
        for app in (trainer, client):
            app.shown("chats", lambda items: items == ["Hi all"])

        # Receipts of one are seen by the others.
        client.do("markAsRead", chat=group)
        read = trainer.shown(group, lambda items: items[0].endswith(" 2") and items[1].endswith(" 2"))
        assert [item[-1] for item in read] == ["2", "2", "1"]
        assert carl in messages.document("from-cora").get().get("readBy")
    finally:
        watch.unsubscribe()


def test_each_acts_as_themself_alone(suite, db, apps):
    trainer, client, other = apps(), apps(), apps()
    tina, carl = trainer.sign_up("tina", "trainer"), client.sign_up("carl", "client")
    other.sign_up("eve", "client")
    cover(db, 100)
    refused = client.ask("createChat", members=[tina])
    assert refused["text"] == "This trainer hasn't added you yet", refused
    trainer.do("addClient", email="carl@psst.app")
    [chat] = client.do("createChat", members=[tina, carl])
    assert trainer.do("createChat", members=[carl]) == [chat]

    # A stranger neither hears nor says anything in the chat.
    other.do("observeMessages", chat=chat)
    other.do("send", chat=chat, text="Listen to me")
    ending = other.observed.setdefault(chat, queue.Queue())
    while "error" not in (event := ending.get(timeout=WAIT)):
        assert event["items"][0].split(" ")[0] in ("sending", 'failed(PsstServices.MessageError.permissionDenied)')
    assert event["error"] == "MessageError.permissionDenied"
    assert other.ask("addClient", email="carl@psst.app")["error"] == "ContactError.unauthorized"
    assert other.do("chats") == [] and other.do("clients") == []

    # A removed client reads on, and what they say is refused.
    trainer.do("removeClient", text=carl)
    client.do("observeMessages", chat=chat)
    client.do("send", chat=chat, text="Please")
    client.shown(chat, lambda items: [item.split(" ", 1)[0] for item in items] == [
        "failed(PsstServices.MessageError.permissionDenied)"])
    assert not list(db.collection(f"chats/{chat}/messages").stream())

    # Back to 0 percent: no deployment, and nobody is refused.
    cover(db, 0)
    assert client.do("createChat", members=[tina]) == [chat]


def test_a_trainer_and_a_client_find_what_is_theirs(suite, db, apps):
    trainer, client = apps(), apps()
    tina, carl = trainer.sign_up("tina", "trainer"), client.sign_up("carl", "client")
    trainer.do("addClient", email="carl@psst.app")
    assert trainer.do("people") == ["Carl"]
    assert client.do("isContact", text=tina) == ["true"] and client.do("isContact", text=carl) == ["false"]
    [chat] = client.do("createChat", members=[tina])
    for number in range(150):
        client.do("send", chat=chat, text=f"m{number}")
    conftest.until(lambda: trainer.do("unread", chat=chat) == ["150"], "messages are missing")
    conftest.until(lambda: client.do("people") == ["Tina"], "the chat is not in the list")
    trainer.do("markAsRead", chat=chat)
    assert trainer.do("unread", chat=chat) == ["50"] and client.do("unread", chat=chat) == ["0"]

    trainer.do("remind", text="Call")
    [plan] = trainer.do("remind", text="Plan")
    trainer.do("complete", text=plan)
    assert trainer.do("reminders") == ["Call"]
    assert client.ask("remind", text="x")["error"] == "ReminderError.unauthorized"
    db.collection("aiActions").add({
        "trainerId": tina, "conversationId": "c", "action": "sendMessage", "parameters": {"text": "Hi"},
        "status": "proposed", "timestamp": firestore.SERVER_TIMESTAMP,
        "expiresAt": datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)})
    assert trainer.do("proposals") == ["sendMessage"] and client.do("proposals") == []



def test_a_message_survives_the_death_of_the_app_and_is_sent_once(suite, db, apps, tmp_path):
    cora = apps()
    cora_uid = cora.sign_up("cora", "client")
    first = apps(tmp_path)
    carl = first.sign_up("carl", "client")
    [chat] = first.do("createChat", members=[cora_uid])
    cora.do("observeMessages", chat=chat)
    # The suite stands still, so that the messages cannot get through.
    suite.process.send_signal(signal.SIGSTOP)
    try:
        for number in range(5):
            first.do("send", chat=chat, text=f"m{number}")
        first.process.kill()
        first.process.wait()
    finally:
        suite.process.send_signal(signal.SIGCONT)
    second = apps(tmp_path)
    assert second.do("signIn", email="carl@psst.app", text="secret1") == [carl]
    cora.shown(chat, delivered("m0", "m1", "m2", "m3", "m4"))
    second.do("send", chat=chat, text="m5")
    cora.shown(chat, delivered("m0", "m1", "m2", "m3", "m4", "m5"))
    conftest.until(
        lambda: not list(tmp_path.rglob("*.json")), "delivered messages are still in the queue")


def test_after_a_sign_out_the_services_act_as_nobody(suite, db, apps):
    app = apps()
    app.sign_up("tina", "trainer")
    app.do("signOut")
    assert app.ask("clients")["error"] == "ContactError.notAuthenticated"
    assert app.ask("createChat", members=["x"])["error"] == "ChatError.notAuthenticated"
    app.sign_up("eve", "client")
    assert app.do("clients") == []


@pytest.mark.parametrize("options", [(), ("--url-session",)], ids=["libcurl", "URLSession"])
def test_when_the_suite_stands_still_apps_go_on_afterwards(suite, db, apps, options):
    app, other = apps(options=options), apps(options=options)
    app.sign_up("carl", "client")
    cora = other.sign_up("cora", "client")
    [chat] = app.do("createChat", members=[cora])
    app.do("observeMessages", chat=chat)
    app.shown(chat, lambda items: items == [])
    suite.process.send_signal(signal.SIGSTOP)
    other.do("send", chat=chat, text="After the pause")
    other.do("send", chat=chat, text="and in order")
    suite.process.send_signal(signal.SIGCONT)
    app.shown(chat, delivered("After the pause", "and in order"))


def test_a_call_that_gets_no_answer_ends_while_a_person_waits(suite, db, apps):
    app = apps()
    app.sign_up("tina", "trainer")
    suite.process.send_signal(signal.SIGSTOP)
    try:
        assert app.ask("clients")["text"] == "No internet connection"
    finally:
        suite.process.send_signal(signal.SIGCONT)
    assert app.do("clients") == []


def test_the_assistant_streams_its_answer_or_says_why_not(suite, db, apps):
    app = apps()
    app.sign_up("tina", "trainer")
    reply = app.ask("ask", text="Which clients mentioned injuries?")
    assert "ok" in reply and "PSST_CHAT_MODEL" in reply["ok"][0] or reply["error"].startswith(
        "AIError.unavailable"), reply
    assert app.do("search", text="injuries") == []


def test_who_creates_too_many_chats_is_told_when_to_go_on(suite, db, apps):
    app, other = apps(), apps()
    app.sign_up("carl", "client")
    cora = other.sign_up("cora", "client")
    replies = [app.ask("createChat", members=[cora]) for _ in range(31)]
    assert all("ok" in reply for reply in replies[:30]), replies
    assert replies[30]["error"].startswith("ChatError.tooManyRequests"), replies[30]
    assert "try again in" in replies[30]["text"]
    assert len({reply["ok"][0] for reply in replies[:30]}) == 1
