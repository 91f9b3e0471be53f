"""Measures `chatWithAI` without the model's own time: the stub answers at once.

    CONFIGURATION=release .build/venv/bin/python Tests/Compatibility/assistant_overhead.py

Prints a line for each number of callers: the time of a question with an answer, of one with a tool
between, and of the stub's bare answer, which is part of the others; then the memory of the workers.
The callers are threads of one Python process, whose time counts, too.
"""

import concurrent.futures
import datetime
import http.client
import json
import pathlib
import tempfile
import time

from conftest import OpenAIStub, client, start_openai_stub, started_with_settings, token
from test_psst_assistant import workers_of

QUESTIONS = 400
TRAINERS = 40
START = datetime.datetime(2026, 5, 1, 9, tzinfo=datetime.timezone.utc)


def seed(db):
    """Trainers who share a chat of twenty messages: no one of them asks too often."""
    trainers = [f"trainer-{number}" for number in range(TRAINERS)]
    for uid in trainers:
        db.document(f"users/{uid}").set({
            "id": uid, "uid": uid, "email": f"{uid}@psst.app", "displayName": uid.title(),
            "role": "trainer", "createdAt": START, "updatedAt": START})
    db.document("chats/all").set({
        "id": "all", "members": trainers, "lastMessage": "", "lastMessageTimestamp": START,
        "isGroupChat": True, "groupName": "All", "createdAt": START, "updatedAt": START})
    for number in range(20):
        db.document(f"chats/all/messages/m{number}").set({
            "id": f"m{number}", "text": f"My injuries: the left knee, from squats {number}.",
            "senderID": trainers[0], "timestamp": START + datetime.timedelta(minutes=number),
            "readBy": trainers[:1]})
    return trainers


def measure(address, path, bodies, headers, callers):
    """The milliseconds of requests, sorted, with so many at a time, each on its own connection."""

    def run(part):
        connection = http.client.HTTPConnection(address, timeout=60)
        times = []
        for number in part:
            begin = time.perf_counter()
            connection.request("POST", path, bodies(number), headers(number))
            reply = connection.getresponse()
            text = reply.read()
            times.append((time.perf_counter() - begin) * 1000)
            assert reply.status == 200 and b"degraded\":true" not in text, text
        connection.close()
        return times

    parts = [range(first, QUESTIONS, callers) for first in range(callers)]
    with concurrent.futures.ThreadPoolExecutor(callers) as pool:
        return sorted(sum(pool.map(run, parts), []))


def megabytes(pid, field):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def main():
    process = start_openai_stub()
    stub = OpenAIStub(json.loads(process.stdout.readline())["port"])
    remind = {"name": "setReminder", "arguments": {
        "text": "Ask", "dueDate": f"{datetime.date.today() + datetime.timedelta(days=2)}T09:00"}}
    stub.script(rules=[
        {"contains": '{"author":"', "reply": {"json": {"facts": []}}},
        {"contains": '"question":"which', "reply": {"content": "Carl did: his left knee [1]."}},
        {"contains": '"question":"remind', "reply": {"toolCalls": [remind]}},
        {"contains": '"question":"remind', "afterTool": True, "reply": {"content": "Done."}},
        {"contains": "bare", "reply": {"content": "Carl did: his left knee [1]."}}])
    with tempfile.TemporaryDirectory() as folder, started_with_settings(
            pathlib.Path(folder), OPENAI_BASE_URL=f"{stub.origin}/v1", OPENAI_API_KEY="sk-test",
            PSST_CHAT_MODEL="gpt-4o-mini", PSST_EMBEDDING_MODEL="hashed-words-1",
            PSST_SEARCHES_PER_MINUTE="1000", PSST_USER_TOKENS_PER_DAY="1000000000",
            PSST_DOLLARS_PER_DAY="100000") as suite:
        trainers = seed(client(suite))
        suite.settle()
        tokens = [token(uid) for uid in trainers]
        path = suite.url("chatWithAI").removeprefix(f"http://{suite.address('functions')}")

        def headers(number):
            return {"Content-Type": "application/json",
                    "Authorization": f"Bearer {tokens[number % TRAINERS]}"}

        def question(text):
            return lambda number: json.dumps({"data": {"message": text}})

        def bare(_):
            return json.dumps({"model": "gpt-4o-mini", "stream": True, "messages": [
                {"role": "user", "content": "bare"}]})

        loads = {
            "answer": (suite.address("functions"), path, question("Which clients have injuries?")),
            "answer after a tool": (
                suite.address("functions"), path, question("Remind me of the knee")),
            "the stub alone": (
                stub.origin.removeprefix("http://"), "/v1/chat/completions", bare)}
        measure(*loads["answer"], headers, 4)
        for callers in (1, 16):
            for name, load in loads.items():
                times = measure(*load, headers, callers)
                p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
                print(f"{callers:2} callers  {name:20} p50 {p50:6.1f} ms  p99 {p99:6.1f} ms")
            for worker in workers_of(suite, "chatWithAI"):
                print(f"{callers:2} callers  worker {worker}: {megabytes(worker, 'VmRSS'):.1f} MB, "
                      f"at most {megabytes(worker, 'VmHWM'):.1f} MB")
    process.terminate()


if __name__ == "__main__":
    main()
