"""`hearth rules check` and `test` with the rules of the Realtime Database."""

import json
import subprocess

import conftest

RULES = """{
  // Members write.
  "rules": {
    "chats": {
      "$chat": {
        ".write": "data.child('members').hasChild(auth.uid)",
        "text": { ".validate": "newData.isString() &&
                                newData.val().length < 10" }
      }
    }
  }
}
"""
DATA = {"chats": {"1": {"members": {"alice": True}}}}


def hearth(folder, *arguments):
    return subprocess.run(
        [conftest.hearth(), "rules", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def write(name, uid, value, expect="allow"):
    return {"name": name, "expect": expect, "auth": {"uid": uid}, "method": "write",
            "path": "/chats/1/text", "value": value}


def test_check_finds_the_file_and_names_the_first_mistake(tmp_path):
    ended = hearth(tmp_path, "check", "--database")
    assert ended.returncode == 1 and "There is no database.rules.json" in ended.stderr
    file = tmp_path / "database.rules.json"
    file.write_text(RULES, encoding="utf-8")
    ended = hearth(tmp_path, "check", "--database")
    assert (ended.returncode, ended.stdout.strip()) == (0, "database.rules.json is in order.")
    file.write_text(RULES.replace("isString", "isText"), encoding="utf-8")
    ended = hearth(tmp_path, "check", "--database")
    assert ended.returncode == 1
    assert "database.rules.json:7:41: error: No such method/property 'isText'." in ended.stderr
    (tmp_path / "other.json").write_text(RULES, encoding="utf-8")
    (tmp_path / "firebase.json").write_text(
        json.dumps({"database": {"rules": "other.json"}}), encoding="utf-8")
    ended = hearth(tmp_path, "check", "--database")
    assert ended.stdout.strip() == "other.json is in order."
    ended = hearth(tmp_path, "check", "--database", "--storage")
    assert ended.returncode != 0 and "not both" in ended.stderr


def test_cases_that_come_out_otherwise_are_explained(tmp_path):
    (tmp_path / "database.rules.json").write_text(RULES, encoding="utf-8")
    cases = [write("hers", "alice", "Hello"), write("not his", "bob", "Hello", "deny")]
    (tmp_path / "cases.json").write_text(
        json.dumps({"data": DATA, "cases": cases}), encoding="utf-8")
    ended = hearth(tmp_path, "test", "--database", "cases.json", "--coverage", "seen.txt")
    assert (ended.returncode, ended.stdout.strip()) == (0, "2 of 2 cases are as expected.")
    seen = (tmp_path / "seen.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split()[:6] for line in seen[1:]] == [
        ["6", ".write", "of", "/chats/$chat", "1", "1"],
        ["7", ".validate", "of", "/chats/$chat/text", "1", "0"]]

    cases.append(write("too long", "alice", "Hello, everybody"))
    (tmp_path / "cases.json").write_text(
        json.dumps({"data": DATA, "cases": cases}), encoding="utf-8")
    ended = hearth(tmp_path, "test", "--database", "cases.json")
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        "FAILED  too long: expected allow",
        "        database.rules.json:6:20 .write of /chats/$chat at /chats/1: true",
        "        database.rules.json:7:33 .validate of /chats/$chat/text at /chats/1/text: false",
        "          newData.val().length < 10",
        "            newData.val().length = 16",
        "2 of 3 cases are as expected."]


def test_a_mistake_in_the_cases_names_its_place(tmp_path):
    (tmp_path / "database.rules.json").write_text(RULES, encoding="utf-8")
    (tmp_path / "cases.json").write_text(
        json.dumps({"cases": [write("x", "alice", {"a.b": 1})]}), encoding="utf-8")
    ended = hearth(tmp_path, "test", "--database", "cases.json")
    assert ended.returncode == 1 and "cases[0].value: cannot be stored" in ended.stderr
