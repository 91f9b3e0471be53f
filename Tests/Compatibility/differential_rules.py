"""Puts users' random requests under random rules to Hearth and to another server and tells where
only one of them allows what is asked.

    .build/venv/bin/python Tests/Compatibility/differential_rules.py [--seed N] [HOST:PORT]

Without an address it starts the official emulator that gcloud brings; without `--hearth HOST:PORT`
it starts .build/release/hearth, or that of CONFIGURATION. A departure that is known stands below; an
unknown one makes the run fail and is shown with the smallest condition that still departs.
"""

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import time

import grpc
import requests
from conftest import PROJECT, started, token
from differential import official
from google.cloud.firestore_v1 import types
from differential_queries import brief
from random_rules import (
    USERS, BatchRequest, CommitRequest, DocumentRequest, Draw, QueryRequest, rules)

DATABASE = f"projects/{PROJECT}/databases/(default)"
METHODS = {
    BatchRequest: ("BatchGetDocuments", types.BatchGetDocumentsResponse.pb()),
    CommitRequest: ("Commit", types.CommitResponse.pb()),
    DocumentRequest: ("GetDocument", types.Document.pb()),
    QueryRequest: ("RunQuery", types.RunQueryResponse.pb()),
}
OWNER = "owner"
# How often an unknown departure is put anew to make it smaller.
REDUCTIONS_MAX = 150


class Server:
    """A server over gRPC that has rules."""

    def __init__(self, address):
        self.origin = f"http://{address}"
        self.channel = grpc.insecure_channel(address)

    def answer(self, user, request):
        """The status that the server answers with, and its text."""
        method, response = METHODS[type(request)]
        call = self.channel.unary_stream(
            f"/google.firestore.v1.Firestore/{method}", type(request).SerializeToString,
            response.FromString)
        bearer = user if user == OWNER else user and token(
            user, iat=int(time.time()), exp=int(time.time()) + 3600, **USERS[user])
        try:
            for _ in call(request, timeout=20, metadata=(
                    [("authorization", f"Bearer {bearer}")] if bearer else [])):
                pass
        except grpc.RpcError as error:
            return error.code().name, error.details()
        return "OK", ""

    def load(self, text):
        """Puts rules in the place of those before; in words why they are refused."""
        reply = requests.put(
            f"{self.origin}/emulator/v1/projects/{PROJECT}:securityRules", timeout=20,
            json={"rules": {"files": [{"name": "firestore.rules", "content": text}]}})
        return None if reply.status_code == 200 else reply.text

    def store(self, documents):
        """Leaves just these documents, given by path."""
        reply = requests.delete(
            f"{self.origin}/emulator/v1/{DATABASE}/documents", timeout=20)
        assert reply.status_code == 200, reply.text
        request = CommitRequest(database=DATABASE)
        for path, fields in documents.items():
            document = request.writes.add().update
            document.name = f"{DATABASE}/documents/{path}"
            for name, value in fields.items():
                document.fields[name].CopyFrom(value)
        code, words = self.answer(OWNER, request)
        assert code == "OK", f"documents are refused: {code} {words}"


class Comparison:
    """Two servers, and what has come out so far."""

    def __init__(self, hearth, other):
        self.servers = Server(hearth), Server(other)
        self.counts = {"allowed": 0, "refused": 0, "departs": 0}

    def load(self, conditions):
        """Whether both take the rules."""
        text = rules(conditions)
        refusals = [server.load(text) for server in self.servers]
        if any(refusals):
            self.counts["departs"] += 1
            print(f"rules are refused: {refusals}\n{text}", flush=True)
        return not any(refusals)

    def ask(self, user, request):
        return [server.answer(user, request) for server in self.servers]

    def store(self, documents):
        for server in self.servers:
            server.store(documents)

    def round(self, seed, count):
        draw = Draw(seed, DATABASE)
        conditions = draw.conditions()
        if not self.load(conditions):
            return
        changed = True
        for number in range(count):
            if changed:
                self.store(draw.documents)
            user, request = draw.request()
            ours, theirs = self.ask(user, request)
            changed = isinstance(request, CommitRequest) and "OK" in (ours[0], theirs[0])
            if ours[0] == theirs[0]:
                self.counts["refused" if ours[0] == "PERMISSION_DENIED" else "allowed"] += 1
            else:
                self.tell(f"seed {seed}, request {number}", draw, conditions, user, request)
                self.load(conditions)
                changed = True

    def tell(self, where, draw, conditions, user, request):
        def departs(candidate, asked):
            if any(server.load(rules(candidate)) for server in self.servers):
                return None
            self.store(draw.documents)
            ours, theirs = self.ask(user, asked)
            return (ours, theirs) if (ours[0], theirs[0]) == wanted else None

        self.load(conditions)
        self.store(draw.documents)
        found = self.ask(user, request)
        wanted = (found[0][0], found[1][0])
        if wanted[0] == wanted[1]:
            print(f"departs: {where}: only once: {found}", flush=True)
            self.counts["departs"] += 1
            return
        budget = REDUCTIONS_MAX
        smallest, asked = conditions, request
        while budget > 0:
            for candidate, other in self.smaller(smallest, asked):
                budget -= 1
                outcome = departs(candidate, other)
                if outcome:
                    smallest, asked, found = candidate, other, outcome
                    break
                if budget == 0:
                    break
            else:
                break
        self.counts["departs"] += 1
        told = {f"{of} {method}": str(condition) for (of, method), condition in smallest.items()}
        stored = {
            path: brief_fields(fields) for path, fields in draw.documents.items()
            if path in str(asked) or any(path in text for text in told.values())}
        print(f"departs: {where}: {user}: {brief(asked)}\n  rules:  {told}\n  stored: {stored}\n"
              f"  Hearth: {found[0]}\n  other:  {found[1]}", flush=True)

    @staticmethod
    def smaller(conditions, request):
        if len(conditions) > 10:
            used = {key: condition for key, condition in conditions.items()
                    if f"/{key[0]}/" in str(request) or f'"{key[0]}"' in str(request)}
            yield used, request
        if isinstance(request, CommitRequest) and len(request.writes) > 1:
            for index in range(len(request.writes)):
                copy = CommitRequest()
                copy.CopyFrom(request)
                del copy.writes[index]
                yield conditions, copy
        for key in conditions:
            yield {other: value for other, value in conditions.items() if other != key}, request
        for key, condition in conditions.items():
            for other in condition.smaller():
                yield {**conditions, key: other}, request


def brief_fields(fields):
    return {name: re.sub(r"_value: ", " ", brief(value)) for name, value in fields.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("address", nargs="?", help="HOST:PORT of a running server")
    parser.add_argument("--hearth", help="HOST:PORT of a running Hearth")
    parser.add_argument("--seed", type=int, help="of the first round; another one follows")
    parser.add_argument("--rounds", type=int, default=20, help="rules (default: 20)")
    parser.add_argument("--requests", type=int, default=150, help="under each (default: 150)")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    with contextlib.ExitStack() as stack:
        hearth = options.hearth
        if not hearth:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            suite = stack.enter_context(
                started(folder, "--no-functions", stderr=subprocess.DEVNULL))
            hearth = suite.address("firestore")
        comparison = Comparison(hearth, options.address or stack.enter_context(official()))
        for round_ in range(options.rounds):
            comparison.round(seed + round_, options.requests)
    print(f"seeds {seed} to {seed + options.rounds - 1}: "
          + ", ".join(f"{outcome}: {count}" for outcome, count in comparison.counts.items()))
    return 1 if comparison.counts["departs"] else 0


if __name__ == "__main__":
    sys.exit(main())
