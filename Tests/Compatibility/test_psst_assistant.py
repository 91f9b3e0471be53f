"""The assistant through a running suite, with a chat model that answers as scripted."""

import concurrent.futures
import contextlib
import datetime
import json
import os
import pathlib
import pty
import signal
import subprocess
import uuid

import pytest
import requests
from conftest import (
    CONFIGURATION, ROOT, client, hearth, started_with_settings, token, until)
from google.cloud.firestore_v1.base_query import FieldFilter

START = datetime.datetime(2026, 5, 1, 9, tzinfo=datetime.timezone.utc)
QUESTION = "Which clients mentioned injuries?"
INJURY = "My injuries: the left knee, from squats."
UNAVAILABLE = "The assistant is unavailable at the moment"


@contextlib.contextmanager
def suite_with_model(openai_stub, folder):
    with started_with_settings(
            folder, OPENAI_BASE_URL=f"{openai_stub.origin}/v1", OPENAI_API_KEY="sk-test",
            PSST_CHAT_MODEL="gpt-4o-mini", PSST_EMBEDDING_MODEL="hashed-words-1",
            PSST_SEARCHES_PER_MINUTE="1000") as suite:
        yield suite


@pytest.fixture(scope="module")
def suite(openai_stub, tmp_path_factory):
    with suite_with_model(openai_stub, tmp_path_factory.mktemp("psst")) as suite:
        yield suite


@pytest.fixture
def fresh_suite(openai_stub, tmp_path):
    """A suite of the test's own: what fails often opens its worker's circuit."""
    with suite_with_model(openai_stub, tmp_path) as suite:
        yield suite


@pytest.fixture
def stub(openai_stub):
    openai_stub.control("reset", {})
    # Facts of messages are another function's; it finds none.
    openai_stub.script(rules=[{"contains": '{"author":"', "reply": {"json": {"facts": []}}}])
    return openai_stub


class World:
    """A trainer with a client, their chat, and what the trainer asks."""

    def __init__(self, suite, stub):
        self.suite, self.stub, self.db = suite, stub, client(suite)
        suffix = uuid.uuid4().hex[:8]
        self.trainer, self.client = f"tina-{suffix}", f"carl-{suffix}"
        self.chat = f"chat-{suffix}"
        people = ((self.trainer, "trainer"), (self.client, "client"), ("somebody", "client"))
        for uid, role in people:
            self.db.document(f"users/{uid}").set({
                "id": uid, "uid": uid, "email": f"{uid}@psst.app", "displayName": uid.title(),
                "role": role, "createdAt": START, "updatedAt": START})
        self.db.document(f"contacts/{self.trainer}/clients/{self.client}").set({
            "clientId": self.client, "displayName": "Carl", "addedAt": START,
            "email": f"{self.client}@psst.app"})
        self.db.document(f"chats/{self.chat}").set({
            "id": self.chat, "members": [self.trainer, self.client], "lastMessage": "",
            "lastMessageTimestamp": START, "isGroupChat": False, "createdAt": START,
            "updatedAt": START})
        self.messages = self.db.collection(f"chats/{self.chat}/messages")
        self.messages.document("m1").set({
            "id": "m1", "text": INJURY, "senderID": self.client, "timestamp": START,
            "readBy": [self.client]})
        suite.settle()

    def answers(self, *replies):
        self.stub.script(chat=list(replies))

    def asks(self, message=QUESTION, conversation=None, uid=None, request=None):
        data = {"message": message}
        if conversation:
            data["conversationId"] = conversation
        if request:
            data["requestId"] = request
        return self.suite.call("chatWithAI", data, token(uid or self.trainer))

    def gets(self, *arguments, **options):
        """The result of a question that has one."""
        reply = self.asks(*arguments, **options)
        assert reply.status_code == 200, reply.text
        return reply.json()["result"]

    @staticmethod
    def refusal(reply):
        """The status and the error of a reply that has one."""
        error = reply.json()["error"]
        return reply.status_code, error["status"], error["message"]

    def stream(self, message=QUESTION):
        """The response of a question that streams."""
        reply = requests.post(
            self.suite.url("chatWithAI"), json={"data": {"message": message}}, stream=True,
            timeout=60, headers={"Accept": "text/event-stream",
                                 "Authorization": f"Bearer {token(self.trainer)}"})
        assert reply.headers["content-type"].startswith("text/event-stream")
        return reply

    def confirms(self, action, accept=True, uid=None):
        return self.suite.call("confirmAction", {"actionId": action, "accept": accept},
                               token(uid or self.trainer))

    def said(self, conversation):
        """Where what was said is stored."""
        return self.db.collection(
            f"users/{self.trainer}/ai_conversations/{conversation}/messages")

    def conversation(self, conversation):
        """What was said, by whom, as stored."""
        turns = self.said(conversation).order_by("timestamp")
        return [(turn.get("role"), turn.get("content")) for turn in turns.stream()]

    def conversations(self):
        """The ids of the trainer's own conversations, without the welcome to a new user."""
        conversations = self.db.collection(f"users/{self.trainer}/ai_conversations")
        return [
            conversation.id for conversation in conversations.stream()
            if conversation.id != "welcome"]

    def texts(self):
        return sorted(message.get("text") for message in self.messages.stream())

    def questions(self):
        """What the chat model was asked, but for facts."""
        return [entry for entry in self.stub.journal()
                if entry["route"] == "chat" and "response_format" not in entry["request"]]


@pytest.fixture
def world(suite, stub):
    return World(suite, stub)


@pytest.fixture
def fresh_world(fresh_suite, stub):
    return World(fresh_suite, stub)


def events(reply):
    """The events of a stream, as they come."""
    for line in reply.iter_lines(chunk_size=1):
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def calls_tool(name, **arguments):
    return {"toolCalls": [{"name": name, "arguments": arguments}]}


def tomorrow():
    day = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    return day.strftime("%Y-%m-%dT09:00")


# Answers


def test_an_answer_names_the_messages_that_it_rests_on(world):
    world.answers({"content": "Carl did: his left knee [1]."})
    result = world.gets()

    assert result["reply"] == "Carl did: his left knee [1]."
    assert (result["model"], result["degraded"]) == ("gpt-4o-mini", False) and result["note"] is None
    assert result["actions"] == [] and result["usage"]["totalTokens"] > 0
    source, = result["sources"]
    assert (source["chatId"], source["messageId"], source["text"]) == (world.chat, "m1", INJURY)
    question, = world.questions()
    assert INJURY not in question["request"]["messages"][0]["content"]
    given = json.loads(question["request"]["messages"][-1]["content"])
    assert (given["question"], given["messages"][0]["message"]["text"]) == (QUESTION, INJURY)


def test_the_words_stream_before_the_result(world):
    world.answers({"content": "Let me look. ", **calls_tool("searchMessages", query="squats")},
                  {"content": "Carl did: his left knee."})
    *chunks, last = [*events(world.stream())]
    chunks = [chunk["message"] for chunk in chunks]

    words = [chunk["text"] for chunk in chunks if chunk["type"] == "text"]
    assert len(words) > 2 and "".join(words) == "Let me look. Carl did: his left knee."
    assert [chunk["tool"] for chunk in chunks if chunk["type"] != "text"] == ["searchMessages"] * 2
    assert [chunk["type"] for chunk in chunks if chunk["type"] != "text"] == [
        "toolBegins", "toolEnds"]
    assert last["result"]["reply"] == "Carl did: his left knee."


def test_a_conversation_is_remembered_and_goes_on(world):
    world.answers({"content": "Carl did [1]."}, {"content": "His left knee."})
    first = world.gets()["conversationId"]
    assert world.gets("And what exactly?", first)["conversationId"] == first

    assert world.conversation(first) == [
        ("user", QUESTION), ("assistant", "Carl did [1]."),
        ("user", "And what exactly?"), ("assistant", "His left knee.")]
    roles = [turn["role"] for turn in world.questions()[1]["request"]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_two_questions_in_one_conversation_at_once_both_have_their_answers(world):
    world.answers({"content": "Hello."})
    conversation = world.gets("Tell me of Carl")["conversationId"]
    world.stub.script(rules=[{"contains": f'"question":"about {name}', "reply": {"content": name}}
                             for name in ("knees", "goals")])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        replies = [*pool.map(lambda name: world.gets(f"About {name}", conversation)["reply"],
                             ("knees", "goals"))]

    assert replies == ["knees", "goals"]
    said = world.conversation(conversation)[2:]
    assert sorted(said) == [("assistant", "goals"), ("assistant", "knees"),
                            ("user", "About goals"), ("user", "About knees")]
    assert all(said.index(("user", f"About {name}")) < said.index(("assistant", name))
               for name in ("knees", "goals"))


# Actions


def test_a_reminder_is_set_at_once(world):
    world.answers(calls_tool("setReminder", text="Ask Carl", dueDate=tomorrow()),
                  {"content": "Done."})
    action, = world.gets("Remind me tomorrow at 9 to ask Carl")["actions"]

    assert (action["action"], action["status"]) == ("setReminder", "done")
    reminder = world.db.document(action["result"]).get().to_dict()
    assert (reminder["trainerId"], reminder["text"], reminder["completed"]) == (
        world.trainer, "Ask Carl", False)
    assert reminder["dueDate"].strftime("%Y-%m-%dT%H:%M") == tomorrow()
    record = world.db.document(f"aiActions/{action['id']}").get().to_dict()
    assert (record["trainerId"], record["status"]) == (world.trainer, "done")


def test_a_message_is_sent_once_when_its_trainer_confirms_it(world):
    world.answers(calls_tool("sendMessage", client="Carl", chatId=None, text="Rest your knee."),
                  {"content": "Shall I send it?"})
    action, = world.gets("Write to Carl to rest")["actions"]
    assert (action["status"], world.texts()) == ("proposed", [INJURY])

    for uid in (world.client, "somebody"):
        assert world.refusal(world.confirms(action["id"], uid=uid)) == (
            404, "NOT_FOUND", "There is no such proposal of yours.")
    assert world.suite.call("confirmAction", {"actionId": action["id"], "accept": True}
                            ).status_code == 401
    assert world.texts() == [INJURY]
    for _ in range(2):
        assert world.confirms(action["id"]).json()["result"]["status"] == "done"
    assert world.texts() == [INJURY, "Rest your knee."]
    assert world.refusal(world.confirms(action["id"], accept=False)) == (
        400, "FAILED_PRECONDITION", "The proposal is done already.")


def test_a_message_that_its_trainer_declines_is_not_sent(world):
    world.answers(calls_tool("sendMessage", client="Carl", chatId=None, text="Rest your knee."),
                  {"content": "Shall I send it?"})
    action, = world.gets("Write to Carl to rest")["actions"]

    assert world.confirms(action["id"], accept=False).json()["result"]["status"] == "refused"
    assert world.refusal(world.confirms(action["id"]))[:2] == (400, "FAILED_PRECONDITION")
    assert world.texts() == [INJURY]


def test_a_proposal_to_a_client_who_was_removed_since_is_refused(world):
    world.answers(calls_tool("sendMessage", client="Carl", chatId=None, text="Rest your knee."),
                  {"content": "Shall I send it?"})
    action, = world.gets("Write to Carl to rest")["actions"]
    world.db.document(f"contacts/{world.trainer}/clients/{world.client}").delete()
    world.db.document(f"contacts/{world.trainer}/removed/{world.client}").set({"removedAt": START})

    settled = world.confirms(action["id"]).json()["result"]
    assert (settled["status"], settled["result"]) == (
        "refused", "one of the two people of this chat has removed the other")
    assert world.texts() == [INJURY]


def test_a_model_that_calls_tools_without_end_is_stopped(world):
    world.stub.script(rules=[
        {"contains": '"question":', "afterTool": after,
         "reply": {**calls_tool("searchMessages", query="squats"), "unchecked": True}}
        for after in (False, True)])
    result = world.gets()

    assert result["degraded"] and "no answer within what one question may use" in result["note"]
    assert len(world.questions()) <= 6


def test_of_twenty_calls_at_once_eight_are_made(world):
    calls = [calls_tool("setReminder", text=f"Number {number}", dueDate=tomorrow())["toolCalls"][0]
             for number in range(20)]
    world.answers({"toolCalls": calls}, {"content": "Some are set."})
    result = world.gets("Remind me of twenty things tomorrow")

    # A request is carried out once; what else the model makes of it is proposed.
    assert {action["status"] for action in result["actions"]} == {"proposed"}
    assert len(result["actions"]) == 8
    results = [turn for turn in world.questions()[1]["request"]["messages"]
               if turn["role"] == "tool"]
    assert len(results) == 20
    assert sum("at most 8 calls" in turn["content"] for turn in results) == 12


# Other callers


def test_nobody_reads_or_continues_the_conversation_of_another(world):
    world.answers({"content": "Carl did [1]."})
    conversation = world.gets()["conversationId"]

    for uid in (world.client, "somebody"):
        assert world.refusal(world.asks("Hello again", conversation, uid)) == (
            404, "NOT_FOUND", "There is no such conversation of yours.")
    assert world.suite.call("chatWithAI", {"message": QUESTION}).status_code == 401
    assert len(world.conversation(conversation)) == 2 and len(world.questions()) == 1


def test_who_has_no_user_document_spends_nothing(world):
    """Anonymous and half-made accounts are members of a chat at most by mistake."""
    world.db.document(f"chats/{world.chat}").update(
        {"members": [world.trainer, world.client, "ghost"]})
    message = world.messages.document("m")
    message.set({"id": "m", "text": INJURY, "senderID": world.client, "timestamp": START})
    world.suite.settle()
    asked = len(world.stub.journal())
    for function, data in (
            ("chatWithAI", {"message": QUESTION}), ("semanticSearch", {"query": "knee"}),
            ("summarizeChat", {"chatId": world.chat}),
            ("surfaceContext", {"chatId": world.chat, "messageId": "m"}),
            ("suggestReminder", {"chatId": world.chat, "messageId": "m"})):
        reply = world.suite.call(function, data, token("ghost"))
        assert world.refusal(reply) == (
            403, "PERMISSION_DENIED", "Only users of the app may do this; sign up first."), function
    assert len(world.stub.journal()) == asked


def test_one_who_is_not_in_the_chat_gets_none_of_its_messages(world):
    world.answers({"content": "Nobody did."})
    result = world.gets(uid="somebody")

    assert result["sources"] == []
    question, = world.questions()
    assert INJURY not in json.dumps(question["request"])


@pytest.mark.parametrize("message", [
    "🦵🏽🤕", "مَن ذكر إصابة؟", "\u202egnirts \x00\x1b[2J\ufffd", "x" * 4000])
def test_any_other_text_is_a_question(world, message):
    world.answers({"content": "I do not know."})

    assert world.gets(message)["reply"] == "I do not know."
    question, = world.questions()
    assert json.loads(question["request"]["messages"][-1]["content"])["question"] == message


@pytest.mark.parametrize("message", ["", " \n", "x" * 4001])
def test_a_question_that_is_none_costs_nothing(world, message):
    assert world.refusal(world.asks(message))[:2] == (400, "INVALID_ARGUMENT")
    assert world.questions() == [] and world.conversations() == []


# Failures


FAULTS = {
    "a wrong key": {"status": 401},
    "too many requests": {"status": 429, "headers": {"retry-after-ms": "10"}},
    "no money left": {"status": 429, "body": {
        "error": {"message": "Quota", "type": "insufficient_quota", "code": "insufficient_quota"}}},
    "an outage": {"status": 500, "headers": {"retry-after-ms": "10"}},
    "garbage": {"body": "<html>"},
    "a cut connection": {"reset": True},
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_whatever_the_provider_does_the_caller_gets_an_error_or_messages(fresh_world, fault):
    world = fresh_world
    world.stub.fail({"route": "chat", "times": 20, **fault})
    result = world.gets()
    assert result["note"] == f"{UNAVAILABLE}."
    assert result["reply"] == f"{UNAVAILABLE}. These messages have words of your question."
    assert (result.get("model"), result["degraded"], result["actions"]) == (None, True, [])
    assert [source["messageId"] for source in result["sources"]] == ["m1"]

    reply = world.asks("Tell me of squats")
    status, name, message = world.refusal(reply)
    if fault.get("status") == 429:
        assert (status, name) == (429, "RESOURCE_EXHAUSTED")
        assert message.startswith("The assistant has no room for this question")
    else:
        assert (status, name) == (503, "UNAVAILABLE")
        assert message.startswith(UNAVAILABLE)
    assert "sk-test" not in reply.text and "stub" not in reply.text.lower()


def test_half_a_stream_is_an_answer_that_says_so(world):
    world.answers({"content": "Carl did, his left knee hurts after squats."})
    world.stub.fail({"route": "chat", "truncateAfter": 4})
    *chunks, last = [*events(world.stream())]

    result = last["result"]
    assert result["note"] == "The assistant became unavailable before its answer was complete."
    assert result["degraded"] and result["reply"] and "hurts after squats" not in result["reply"]
    assert "".join(chunk["message"]["text"] for chunk in chunks) == result["reply"]


def test_what_was_done_is_reported_though_the_provider_fails_then(fresh_world):
    world = fresh_world
    world.answers(calls_tool("setReminder", text="Ask Carl", dueDate=tomorrow()))
    world.stub.fail({"route": "chat", "call": 2, "times": 20, "status": 500,
                     "headers": {"retry-after-ms": "10"}})
    result = world.gets("Remind me tomorrow at 9 to ask Carl")

    assert result["degraded"] and "became unavailable" in result["note"]
    assert [action["status"] for action in result["actions"]] == ["done"]


def test_a_busy_provider_is_asked_again(world):
    world.stub.fail({"route": "chat", "status": 429, "headers": {"retry-after-ms": "10"}})
    world.answers({"content": "Carl did [1]."})

    assert world.gets()["degraded"] is False
    assert [entry["status"] for entry in world.questions()] == [429, 200]


def test_a_client_that_leaves_takes_the_call_of_the_model_along(world):
    world.answers(calls_tool("searchMessages", query="squats"), {"content": "Too late."})
    world.stub.fail({"route": "chat", "call": 2, "delaySeconds": 60})
    reply = world.stream()
    chunks = events(reply)
    assert [next(chunks)["message"]["type"] for _ in range(2)] == ["toolBegins", "toolEnds"]
    until(lambda: len(world.questions()) == 2, "the model is not asked")
    reply.close()

    until(lambda: world.questions()[1]["hasClientLeft"], "the model's call goes on")
    conversation, = world.conversations()
    assert world.conversation(conversation) == [("user", QUESTION)]


def workers_of(suite, function):
    """The processes that serve a function."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = (folder / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[1]
            words = (folder / "cmdline").read_bytes().decode()
            if int(parent) == suite.process.pid and function in words:
                found.append(int(folder.name))
    return found


def test_a_question_sent_again_with_its_id_gets_its_answer_and_acts_once(world):
    world.answers(calls_tool("setReminder", text="Ask Carl", dueDate=tomorrow()),
                  {"content": "Done."})
    question = "Remind me tomorrow at 9 to ask Carl"
    first = world.gets(question, request="q1")
    assert world.gets(question, request="q1") == first
    assert world.gets(question, first["conversationId"], request="q1") == first
    assert len(world.questions()) == 2
    ours = FieldFilter("trainerId", "==", world.trainer)
    assert len(world.db.collection("reminders").where(filter=ours).get()) == 1

    refused = world.asks("Remind me of Dana", request="q1")
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_a_question_asked_again_after_a_crash_acts_once(world):
    world.answers({"content": "Hello."})
    conversation = world.gets("Tell me of Carl")["conversationId"]
    remind = calls_tool("setReminder", text="Ask Carl", dueDate=tomorrow())
    world.answers(remind, {"content": "Never heard."})
    world.stub.fail({"route": "chat", "call": 2, "delaySeconds": 60})
    question = "Remind me tomorrow at 9 to ask Carl"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reply = pool.submit(world.asks, question, conversation)
        until(lambda: len(world.questions()) == 3, "the model is not asked after the tool")
        for worker in workers_of(world.suite, "chatWithAI"):
            os.kill(worker, signal.SIGKILL)
        assert reply.result().status_code >= 500
    assert world.conversation(conversation)[2:] == [("user", question)]
    world.answers(remind, {"content": "Done."})
    # Nobody knows yet that the first attempt is dead.
    refused = world.asks(question, conversation)
    assert (refused.status_code, refused.json()["error"]["status"]) == (409, "ABORTED")
    asked, = world.said(conversation).where(
        filter=FieldFilter("content", "==", question)).get()
    asked.reference.update({"claim.until": datetime.datetime.now(datetime.timezone.utc)})
    result = world.gets(question, conversation)

    assert [action["status"] for action in result["actions"]] == ["done"]
    assert world.conversation(conversation)[2:] == [("user", question), ("assistant", "Done.")]
    ours = FieldFilter("trainerId", "==", world.trainer)
    reminders = world.db.collection("reminders").where(filter=ours).get()
    assert [reminder.get("text") for reminder in reminders] == ["Ask Carl"]


# The command line and the demo


def on_terminal(command, environment=None):
    """What a command prints on a terminal."""
    near, far = pty.openpty()
    process = subprocess.Popen(command, stdout=far, stderr=subprocess.DEVNULL, env=environment)
    os.close(far)
    output = b""
    with contextlib.suppress(OSError):  # The far end closes with the command.
        while piece := os.read(near, 65536):
            output += piece
    os.close(near)
    assert process.wait(timeout=60) == 0, output
    return output.decode().replace("\r\n", "\n")


def test_words_run_on_where_a_person_reads_and_are_lines_where_a_program_does(world):
    world.answers(*[calls_tool("searchMessages", query="squats"),
                    {"content": "Carl did: his left knee."}] * 2)
    arguments = ["call", "chatWithAI", "--as", world.trainer, "--stream", "--data",
                 json.dumps({"message": QUESTION})]
    shown = on_terminal([hearth(), *arguments, "--hub", world.suite.address("hub")])
    *chunks, first, second = shown.split("\n")[:4]
    assert [json.loads(chunk)["type"] for chunk in chunks] == ["toolBegins", "toolEnds"]
    assert (first, second) == ("Carl did: his left knee.", "{")

    lines = world.suite.cli(*arguments).stdout.split("\n")
    chunks = [json.loads(line) for line in lines[:lines.index("{")]]
    assert "".join(chunk.get("text", "") for chunk in chunks) == "Carl did: his left knee."


class Demo:
    """The demo, as `make demo` runs it once all is built."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["sh", "Sources/Tooling/Scripts/demo.sh", CONFIGURATION, "no-build"], cwd=ROOT,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.environment = dict(os.environ)
        self.commands = []
        for line in self.process.stdout:
            line = line.strip()
            if line.startswith("export FI"):
                name, value = line.removeprefix("export ").split("=")
                self.environment[name] = value
            elif line.startswith(("hearth ", "curl ")):
                self.commands.append(line)
            elif line.startswith("Imported "):
                self.folder = pathlib.Path(line.rpartition(" from ")[2]).parent
            elif "Ctrl-C" in line:
                break
        else:
            raise AssertionError(self.process.stderr.read())

    def run(self, command):
        path = f"{pathlib.Path(hearth()).parent}:{self.environment['PATH']}"
        run = subprocess.run(["sh", "-c", command], env={**self.environment, "PATH": path},
                             capture_output=True, text=True, timeout=60, check=True)
        return run.stdout

    def result(self, command):
        """The result of a call, which the chunks come before."""
        output = self.run(command)
        return json.loads(output if output.startswith("{\n") else output[output.index("\n{\n"):])

    def processes(self):
        """The processes of the demo, which all have its folder in what they were started with."""
        return [words for folder in pathlib.Path("/proc").iterdir() if folder.name.isdigit()
                and str(self.folder) in (words := self.words(folder))]

    @staticmethod
    def words(folder):
        with contextlib.suppress(OSError):
            return (folder / "cmdline").read_bytes().decode()
        return ""


@pytest.fixture
def demo():
    demo = Demo()
    yield demo
    if demo.process.poll() is None:
        demo.process.kill()
        demo.process.wait()


def test_the_demo_shows_what_it_says_and_leaves_nothing(demo):
    ask, remind, look, write, confirm, sum_up, surface, suggest, *calls, run = demo.commands
    asked = demo.result(ask)
    assert [source["senderName"] for source in asked["sources"]] == ["Dana", "Carl"]
    for source, part in zip(asked["sources"], asked["reply"].split(".")[1:]):
        assert source["senderName"] in part

    reminded, = (result := demo.result(remind))["actions"]
    assert (reminded["status"], result["model"]) == ("done", "scripted")
    document, = json.loads(demo.run(look))["documents"]
    assert document["name"].endswith(reminded["result"])

    proposed, = (result := demo.result(write))["actions"]
    assert (proposed["status"], result["model"]) == ("proposed", "scripted")
    before = demo.result(sum_up)
    assert (before["model"], before["cached"], before["messages"]) == ("scripted", False, 3)
    sent = demo.result(confirm.replace("ID", proposed["id"]))
    assert sent["status"] == "done"
    after = demo.result(sum_up)
    assert after["messages"] == 4 and after["summary"] != before["summary"]
    assert demo.result(sum_up)["cached"]
    found, = demo.result(surface)["results"]
    assert (found["chatId"], found["messageId"]) == ("tina-carl", "m1")
    suggested = demo.result(suggest)
    assert "Erik" in suggested["reminder"]["text"] and suggested["model"] == "scripted"

    for call in calls:
        scheduled, = demo.result(call)["actions"]
        assert scheduled["status"] == "done"
    demo.run(run)
    reminders = ["Ask Carl", "overlap", "Erik and you", "Dana and you"]
    until(lambda: all(words in demo.run(look) for words in reminders), "a reminder is missing")

    other = demo.result(ask.replace(QUESTION, "Who is strongest?"))
    assert other["reply"].startswith("I am a script, not a model") and asked["model"] == "scripted"
    # The script says nothing of messages that the caller cannot read, or that it does not know.
    other = demo.result(ask.replace("tina", "carl"))
    assert other["reply"].startswith("I am a script, not a model")
    other = demo.result(sum_up.replace("tina-carl", "tina-dana"))
    assert other["summary"].startswith("I am a script, not a model")
    assert demo.result(suggest.replace("tina-erik", "tina-dana"))["reminder"] is None

    assert demo.processes() != []
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=10) == 0
    until(lambda: demo.processes() == [], "the demo leaves processes behind")
    assert not demo.folder.exists()


def test_the_demos_processes_end_with_its_suite(demo):
    demo.process.kill()
    demo.process.wait(timeout=10)

    until(lambda: demo.processes() == [], "the demo leaves processes behind")
