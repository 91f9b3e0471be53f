"""Runs the phones' dialogues against another server and tells where it departs from them.

    .build/venv/bin/python Tests/Compatibility/differential.py [HOST:PORT]

Without an address it starts the official emulator that gcloud brings. Each departure that is known
stands below with what that server does instead; an unknown one, and a known one that is no more,
make the run fail.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid

import phones
from conftest import free_port
from phone_dialogues import DIALOGUES
from phones import Conversation, GRPCTransport, restart_server

# How long the other server has for an answer; most departures are an answer that never comes.
phones.WAIT = 4
# The official emulator answers nearly every change by a reset and all documents anew.
phones.CHECKS_WHAT_IS_TOLD = False

# What the official emulator does instead, by dialogue.
DEPARTURES = {
    name: what
    for what, names in {
        "it ignores what is wrong with a token, and tells everything anew": [
            "resume by a read time of the future",
            "resume with a token that is cut in half",
            "resume with a token that is garbage",
            "resume with a token that is too long",
            "resume with a token of another database",
        ],
        "it ends the stream with UNKNOWN instead of refusing the target": [
            "an id in use is replaced",
            "bad target: neither a query nor documents",
            "bad target: a negative limit",
            "bad target: a negative offset",
            "bad target: an id in use is replaced by it",
            "bad target: it is removed all the same",
        ],
        "it takes a target that production refuses": [
            "bad target: no documents",
            "bad target: a query's parent of another project",
            "bad target: no structured query",
            "bad target: a name that is compared to a text",
            "bad target: a document of another project",
        ],
        "it takes the database from the header and does not look at the message's": [
            "bad stream: no database",
            "bad stream: a database that is none",
            "bad stream: a database's id that is none",
            "bad stream: another database later",
        ],
        "it answers UNKNOWN": [
            "bad stream: neither add nor remove",
            "bad stream: neither add nor remove later",
        ],
        "it never answers": [
            "an unknown id is removed",
            "once ends after its documents",
            "once ends after a missing document",
            "write: a document of another database",
            "write: a token that is none",
        ],
        "it sends no existence filter": [
            "resume: a phone that has lost a document starts over",
            "resume: the documents of a filter's target are all gone",
        ],
        "it never tells of the new document": [
            "everything below a document",
        ],
        "it never tells the first snapshot": [
            "names in descending order",
        ],
        "its listeners heed a selection, which no client sends": [
            "a selection of fields is not heeded",
        ],
        "its messages are at most 4 MiB": [
            "twelve megabytes are one snapshot",
        ],
        "its deletions and verifications have an update time": [
            "a document that is deleted and created in one commit is told once",
            "write: verify",
            "transaction: what was only read is verified",
            "transaction: a verified document is not told",
            "transaction: nothing but reads",
        ],
        "its listeners do not see a reset": [
            "many documents are reset under a listener",
        ],
        "it answers FAILED_PRECONDITION with words of its own": [
            "bad target: two array-contains",
        ],
        "a stream that is resumed gets INVALID_ARGUMENT, in production ABORTED": [
            "write: a stream is not resumed",
            "write: a stream is not resumed by its token alone",
            "write: an id without a token is a fresh handshake",
        ],
        "its answer to no writes has no commit time, without which SDKs assert": [
            "write: nothing to write has a commit time",
        ],
    }.items()
    for name in names
}


class Server:
    """A server that somebody else has started."""

    def __init__(self, address):
        self.own_address = address

    def address(self, _service):
        return self.own_address


@contextlib.contextmanager
def official():
    """The official emulator on a free port; skipped in words when it is not installed."""
    address = f"127.0.0.1:{free_port()}"
    command = ["gcloud", "emulators", "firestore", "start", f"--host-port={address}", "--quiet"]
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    except FileNotFoundError:
        sys.exit("gcloud is not installed; name the address of a server to compare with.")
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError):
                host, port = address.split(":")
                socket.create_connection((host, int(port)), timeout=1).close()
                break
            time.sleep(0.2)
        else:
            sys.exit(f"{' '.join(command)} did not come up")
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


class PrefixedTransport(GRPCTransport):
    """Names the database beside the messages too, as phones do and the official emulator needs."""

    def metadata(self, database):
        return (("google-cloud-resource-prefix", database),)


def departure(steps, server):
    """How the server departs from a dialogue; None when it does not."""
    conversation = Conversation(server, f"phones-{uuid.uuid4().hex[:12]}", PrefixedTransport)
    try:
        conversation.run(steps)
    except (AssertionError, phones.Ended) as error:
        step = next((note for note in error.__notes__ if note.startswith("at ")), "")
        return " ".join(f"{error} {step}".split())[:200]
    return None


def run(address, only):
    server = Server(address)
    counts = {"agrees": 0, "departs as known": 0, "departs": 0, "departs no more": 0}
    for name, steps in DIALOGUES.items():
        if only and only not in name:
            continue
        if any(step.function is restart_server.__wrapped__ for step in steps):
            continue
        found = departure(steps, server)
        if name in DEPARTURES:
            outcome = "departs as known" if found else "departs no more"
        else:
            outcome = "departs" if found else "agrees"
        counts[outcome] += 1
        if outcome != "agrees":
            print(f"{outcome}: {name}: {DEPARTURES.get(name, found)}", flush=True)
    print(", ".join(f"{outcome}: {count}" for outcome, count in counts.items()))
    return 1 if counts["departs"] or counts["departs no more"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("address", nargs="?", help="HOST:PORT of a running server")
    parser.add_argument("--only", help="dialogues whose name has this text")
    options = parser.parse_args()
    if options.address:
        return run(options.address, options.only)
    with official() as address:
        return run(address, options.only)


if __name__ == "__main__":
    sys.exit(main())
