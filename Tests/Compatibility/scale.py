"""Times the app's requests on a large database, and kills its migration and backfill on the way.

    make scale                        1 000 trainers, 10 000 users, 100 000 messages; release build
    .build/venv/bin/python Tests/Compatibility/scale.py --part 0.1 --configuration debug
    .build/venv/bin/python Tests/Compatibility/scale.py --part 10 --only speeds

Prints one line a step: the time, and the most memory that server and worker had during it. Exits
with 1 when something is lost, doubled or written by a run that had nothing to do.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import requests
from conftest import PROJECT, ROOT
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

MIGRATE, BACKFILL = "migrateExistingChats", "backfillEmbeddings"
ROLL_BACK = "rollbackMigration"
REAL = {"dryRun": False, "confirm": "migrate"}
EMBED = {"dryRun": False, "confirm": "backfill"}
WORDS = ("knee squat rest water sleep row run bench press core pain tired happy Monday evening "
         "stretch travel hotel band dumbbell goal weight slow fast again tomorrow").split()


class Suite:
    """A suite on a folder, to be killed and started again; serves only the functions for administrators."""

    def __init__(self, configuration, folder):
        self.binaries = ROOT / ".build" / configuration
        self.configuration = configuration
        self.folder = pathlib.Path(folder)
        self.worker = self.folder / "functions"
        # Without the triggers: they would embed while the backfill is measured.
        self.worker.write_text(f"""#!{sys.executable}
import json, os, subprocess, sys
binary = {str(self.binaries / "psst-functions")!r}
manifest = os.environ.get("FUNCTIONS_MANIFEST_OUTPUT_PATH")
if not manifest:
    os.execv(binary, [binary, *sys.argv[1:]])
subprocess.run([binary], check=True)
with open(manifest) as file:
    described = json.load(file)
described["endpoints"] = {{name: endpoint for name, endpoint in described["endpoints"].items()
                          if name in {(MIGRATE, ROLL_BACK, BACKFILL)!r}}}
with open(manifest, "w") as file:
    json.dump(described, file)
""")
        self.worker.chmod(0o755)
        self.start()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.binaries / "hearth", "start", "--data", self.folder / "data", "--json",
                 "--project", PROJECT, "--executable", self.worker,
                 *[flag for name in ("hub", "functions", "firestore", "vectors")
                   for flag in (f"--{name}-port", "0")]],
                stdout=subprocess.PIPE, stderr=log, cwd=ROOT, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the suite did not start; see {self.folder / 'log'}")
        self.services = json.loads(line)["services"]
        os.environ["FIRESTORE_EMULATOR_HOST"] = self.address("firestore")
        self.db = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())

    def address(self, service):
        return f"{self.services[service]['host']}:{self.services[service]['port']}"

    def call(self, function, data):
        return requests.post(
            f"http://{self.address('functions')}/{PROJECT}/us-central1/{function}",
            json={"data": data}, headers={"Authorization": "Bearer owner"}, timeout=3600)

    def workers(self, function=None):
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, IndexError):
                if int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) \
                        != self.process.pid:
                    continue
                environment = (folder / "environ").read_bytes().split(b"\0")
                if function is None or f"FUNCTION_TARGET={function}".encode() in environment:
                    found.append(int(folder.name))
        return found

    def kill(self, function=None):
        """Ends the worker of a function, or the server with everything."""
        for pid in self.workers(function) if function else [self.process.pid]:
            os.kill(pid, 9)
        if not function:
            self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def megabytes(pid):
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0


@contextlib.contextmanager
def measured(suite, title, function=None):
    """Prints how long a step took and the most memory in use meanwhile."""
    peak, ended = {"server": 0, "worker": 0}, threading.Event()
    first = {}

    def watch():
        while not ended.wait(0.1):
            for name, pids in (("server", [suite.process.pid]),
                               ("worker", suite.workers(function) if function else [])):
                size = max([megabytes(pid) for pid in pids], default=0)
                first.setdefault(name, size)
                peak[name] = max(peak[name], size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, note = time.monotonic(), []
    try:
        yield note
    finally:
        ended.set()
        watcher.join()
        print(f"{title:32} {time.monotonic() - start:7.1f} s   server {peak['server']:5.0f} MB "
              f"(from {first.get('server', 0):.0f})   worker {peak['worker']:4.0f} MB   "
              f"{' '.join(map(str, note))}", flush=True)


def documents(trainers, users, messages, seed=7):
    """All documents by path, one after another, and what is to come of them."""
    choose = random.Random(seed)
    expected = set()
    trainer = [f"trainer{number:05}" for number in range(trainers)]
    client = [f"client{number:06}" for number in range(users - trainers)]

    def person(uid, role):
        data = {"id": uid, "uid": uid, "email": f"{uid}@psst.app", "displayName": uid.title()}
        return f"users/{uid}", {**data, "role": role} if role else data

    def chat(name, members, group=False):
        for one in members:
            for other in members:
                if one.startswith("trainer") and other.startswith("client"):
                    expected.add((one, other))
        return f"chats/{name}", {
            "id": name, "members": members, "isGroupChat": group, "lastMessage": "",
            "createdAt": firestore.SERVER_TIMESTAMP, "updatedAt": firestore.SERVER_TIMESTAMP}

    def everything():
        for number, uid in enumerate(trainer):
            yield person(uid, None if number % 50 == 0 else "trainer")
        for uid in client:
            yield person(uid, "client")
        chats = []
        for number, uid in enumerate(client):
            # One trainer has a tenth of all clients.
            whose = trainer[0] if number % 10 == 0 else trainer[choose.randrange(trainers)]
            members = [whose, uid] + ([f"ghost{number}"] if number % 500 == 0 else [])
            chats.append((f"chat{number:06}", members))
            yield chat(chats[-1][0], members)
        for number in range(max(1, len(client) // 50)):
            members = choose.sample(trainer, 2) + choose.sample(client, 5)
            chats.append((f"group{number:05}", members))
            yield chat(chats[-1][0], members, group=True)
        for number in range(messages):
            name, members = chats[number % len(chats)]
            yield f"chats/{name}/messages/message{number:07}", {
                "id": f"message{number:07}", "senderID": members[number % 2], "readBy": [],
                "text": " ".join(choose.choices(WORDS, k=12)) + f" {number}",
                "timestamp": firestore.SERVER_TIMESTAMP}

    return everything(), expected


def seed(db, stream):
    def commit(part):
        batch = db.batch()
        for path, data in part:
            batch.set(db.document(path), data)
        batch.commit()

    count, part = 0, []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = []
        for entry in stream:
            part.append(entry)
            count += 1
            if len(part) == 400:
                waiting.append(pool.submit(commit, part))
                part = []
            if len(waiting) > 16:
                waiting.pop(0).result()
        waiting.append(pool.submit(commit, part))
        for task in waiting:
            task.result()
    return count


def interrupted(suite, function, data, count, target, kill):
    """Calls, and kills as soon as so many are counted."""
    result = {}

    def call():
        try:
            reply = suite.call(function, data)
            result["reply"] = f"{reply.status_code} {reply.text[:60]}"
        except requests.RequestException as error:
            result["reply"] = type(error).__name__

    thread = threading.Thread(target=call)
    thread.start()
    reached = 0
    while thread.is_alive() and reached < target:
        time.sleep(0.05)
        reached = count()
    is_killed = thread.is_alive()
    kill()
    thread.join()
    check(is_killed, f"{function} is killed on the way, at {reached}")
    return f"the caller got: {result['reply']}"


def result(suite, function, data):
    reply = suite.call(function, data)
    if reply.status_code != 200:
        sys.exit(f"{function} answered {reply.status_code}: {reply.text}")
    return reply.json()["result"], len(reply.content)


def check(holds, sentence):
    print(f"  {'ok' if holds else 'WRONG'}: {sentence}", flush=True)
    if not holds:
        check.failures += 1


check.failures = 0


def migrate(suite, expected):
    def contacts():
        return suite.db.collection_group("clients").count().get()[0][0].value

    with measured(suite, "migrate, dry", MIGRATE) as note:
        dry, size = result(suite, MIGRATE, {})
        note.append(f"{dry['counts']} reply {size >> 10} KB")
    check({(c["path"].split("/")[1], c["path"].split("/")[3]) for c in dry["contacts"]} == expected,
          f"the dry run lists the {len(expected)} contacts that are missing")
    with measured(suite, "migrate, worker killed", MIGRATE) as note:
        note.append(interrupted(suite, MIGRATE, REAL, contacts, len(expected) // 3,
                                lambda: suite.kill(MIGRATE)))
    # The next run waits until the lease of the killed one is over.
    with measured(suite, "migrate, server killed", MIGRATE) as note:
        note.append(interrupted(suite, MIGRATE, REAL, contacts, len(expected) * 2 // 3, suite.kill))
    with measured(suite, "start again"):
        suite.start()
    before = contacts()
    with measured(suite, "migrate, to the end", MIGRATE) as note:
        real, size = result(suite, MIGRATE, REAL)
        note.append(f"{real['counts']}, backup {real['backup']}")
    check(real["counts"]["existing"] == before
          and before + real["counts"]["created"] == len(expected),
          f"{before} contacts of the killed runs were kept, {real['counts']['created']} added")
    check(contacts() == len(expected), f"{contacts()} contacts are stored, each once")
    with measured(suite, "migrate, a second time", MIGRATE) as note:
        again, _ = result(suite, MIGRATE, REAL)
        note.append(again["counts"])
    check(again["contacts"] == [] and again["counts"]["existing"] == len(expected),
          "the second run wrote nothing")
    with measured(suite, "roll the last one back", ROLL_BACK) as note:
        gone, _ = result(suite, ROLL_BACK, {
            "run": real["run"], "dryRun": False, "confirm": "rollback"})
        note.append(gone["counts"])
    check(gone["counts"] == {"removed": real["counts"]["created"], "kept": 0}
          and contacts() == before, "the rollback removed what the run had made, and no more")


def backfill(suite, messages):
    def vectors():
        host = requests.get(
            f"http://{suite.address('vectors')}/indexes/chat-messages", timeout=60).json()["host"]
        return requests.post(
            f"{host}/describe_index_stats", json={}, timeout=60).json()["totalVectorCount"]

    with measured(suite, "backfill, dry", BACKFILL) as note:
        dry, _ = result(suite, BACKFILL, {})
        note.append(dry)
    check(dry["missing"] == messages, f"the dry run finds {messages} messages without a vector")
    with measured(suite, "backfill, worker killed", BACKFILL) as note:
        note.append(interrupted(suite, BACKFILL, EMBED, vectors, messages // 3,
                                lambda: suite.kill(BACKFILL)))
    with measured(suite, "backfill, server killed", BACKFILL) as note:
        note.append(interrupted(suite, BACKFILL, EMBED, vectors, messages * 2 // 3, suite.kill))
    with measured(suite, "start again"):
        suite.start()
    before = vectors()
    with measured(suite, "backfill, to the end", BACKFILL) as note:
        real, _ = result(suite, BACKFILL, EMBED)
        note.append(real)
    check(real["done"] and real["failed"] == 0, "the run is done and nothing failed")
    check(before + real["embedded"] == vectors() == messages,
          f"{before} vectors were kept, {real['embedded']} added, none twice")
    with measured(suite, "backfill, a second time", BACKFILL) as note:
        again, _ = result(suite, BACKFILL, EMBED)
        note.append(again)
    check(again["embedded"] == 0 and again["done"], "the second run wrote nothing")


def speeds(suite, trainers, users):
    """Times the requests whose durations the app's documents limit; without functions in between."""
    db, trainer = suite.db, "trainer00000"
    contacts = db.collection(f"contacts/{trainer}/clients")
    # Those that a migration would make, for a trainer with a tenth of all clients, at most 1000.
    for start in range(0, 1000, 500):
        batch = db.batch()
        for number in range(start, min(start + 500, (users - trainers) // 10)):
            uid = f"client{number * 10:06}"
            batch.set(contacts.document(uid), {
                "id": uid, "clientId": uid, "displayName": uid.title(), "email": f"{uid}@psst.app",
                "addedAt": firestore.SERVER_TIMESTAMP})
        batch.commit()
    messages = db.collection("chats/chat000000/messages")
    arrived = {}

    def by_email(number):
        email = f"client{(number * 7919) % (users - trainers):06}@psst.app"
        found = db.collection("users").where(
            filter=firestore.FieldFilter("email", "==", email)).limit(1).get()
        assert len(found) == 1, email

    def search(number):
        wanted = str(number)
        assert any(wanted in contact.get("displayName") for contact in contacts.stream())

    def deliver(number):
        arrived[f"sent{number}"] = threading.Event()
        messages.document(f"sent{number}").set({
            "senderID": trainer, "text": f"squat {number}", "readBy": [],
            "timestamp": firestore.SERVER_TIMESTAMP})
        assert arrived[f"sent{number}"].wait(30), "the message does not arrive"

    def seen(_, changes, __):
        for change in changes:
            if change.document.id in arrived:
                arrived[change.document.id].set()

    listener = messages.order_by("timestamp", direction="DESCENDING").limit(100).on_snapshot(seen)
    by_email(0)  # The first look-up reads all users and makes the index.
    for title, limit, times, action in [
            ("contact list, newest first", 500, 20, lambda _: contacts.order_by(
                "addedAt", direction="DESCENDING").get()),
            ("user by email", 200, 200, by_email),
            ("relation of a pair", 100, 200, lambda _: contacts.document("client000010").get()),
            ("search over the contacts", 100, 20, search),
            ("message, until another has it", 100, 200, deliver)]:
        action(1)
        taken = []
        for number in range(2, times + 2):
            start = time.monotonic()
            action(number)
            taken.append((time.monotonic() - start) * 1000)
        taken.sort()
        print(f"{title:32} median {taken[len(taken) // 2]:6.1f} ms   "
              f"99 % {taken[int(len(taken) * 0.99)]:6.1f} ms   limit {limit} ms", flush=True)
    listener.unsubscribe()
    # What follows counts contacts and messages.
    for reference in [*contacts.list_documents(page_size=500), *map(messages.document, arrived)]:
        reference.delete()


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--part", type=float, default=1, help="of the full size, such as 0.1")
    options.add_argument("--configuration", default="release")
    options.add_argument("--only", choices=["migrate", "backfill", "speeds"])
    options.add_argument("--folder", help="keeps data and log there; else a temporary one")
    arguments = options.parse_args()
    trainers, users, messages = (int(n * arguments.part) for n in (1_000, 10_000, 100_000))
    folder = arguments.folder or tempfile.mkdtemp(prefix="hearth-scale-")
    pathlib.Path(folder).mkdir(exist_ok=True)
    suite = Suite(arguments.configuration, folder)
    try:
        stream, expected = documents(trainers, users, messages)
        with measured(suite, "write the documents") as note:
            note.append(f"{seed(suite.db, stream)} documents, {trainers} trainers, {users} users, "
                        f"{messages} messages")
        if arguments.only in (None, "speeds"):
            speeds(suite, trainers, users)
        if arguments.only in (None, "migrate"):
            migrate(suite, expected)
        if arguments.only in (None, "backfill"):
            backfill(suite, messages)
    finally:
        suite.stop()
        if not arguments.folder:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if check.failures else 0)


if __name__ == "__main__":
    main()
