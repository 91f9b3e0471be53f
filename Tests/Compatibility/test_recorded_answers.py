"""What production answered to requests over REST, put to Hearth.

`recorded_answers.json` has one answer a line. A request is its method, what follows `…/documents` in
its path, and its body; `{docs}` stands for the documents' root and `{docs+3}` for a number, that many
more than the root's length. An answer without a message is only of that status.
"""

import itertools
import json
import pathlib
import re

import pytest
import requests

FILE = json.loads(
    pathlib.Path(__file__).with_name("recorded_answers.json").read_text(encoding="utf-8"))
NUMBERS = itertools.count()


class Database:
    """A project of its own with documents."""

    def __init__(self, suite, documents):
        self.address = f"http://{suite.address('firestore')}/v1"
        self.project = f"recorded-{next(NUMBERS)}"
        self.root = f"projects/{self.project}/databases/(default)/documents"
        if documents:
            writes = [{"update": {"name": f"{{docs}}/{path}", "fields": fields}}
                      for path, fields in FILE["documents"][documents].items()]
            assert self.send("POST", ":commit", {"writes": writes}).status_code == 200

    def filled(self, text):
        text = text.replace("{docs}", self.root).replace("{project}", self.project)
        return re.sub(r"\{docs\+(\d+)\}", lambda m: str(len(self.root) + int(m[1])), text)

    def send(self, method, path, body):
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        return requests.request(
            method, f"{self.address}/{self.root}{path}", timeout=30,
            headers={"Authorization": "Bearer owner"},
            data=None if body is None else self.filled(body).encode())


@pytest.mark.parametrize("answer", FILE["answers"], ids=lambda answer: answer["name"])
def test_answers_are_those_of_production(suite, answer):
    database = Database(suite, answer.get("documents"))
    reply = database.send(*answer["request"])
    assert reply.status_code == answer["status"], reply.text
    if reply.status_code == 200:
        assert isinstance(reply.json(), list) == answer["isArray"]
        return
    error = reply.json()
    if "isArray" in answer:
        assert isinstance(error, list) == answer["isArray"]
    error = (error[0] if isinstance(error, list) else error)["error"]
    message = database.filled(answer["message"])
    assert (error["status"], error["message"]) == (answer["code"], message)
    if "field" in answer:
        violation = {"description": message}
        if answer["field"]:
            violation["field"] = answer["field"]
        [detail] = error["details"]
        assert detail == {
            "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}
    if "reason" in answer:
        [detail] = error["details"]
        assert (detail["reason"], detail["domain"]) == (answer["reason"], "firestore.googleapis.com")
