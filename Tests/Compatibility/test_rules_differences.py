"""Each difference from Firebase's own emulator that the rules' page lists, as it behaves."""

import json
import re
import subprocess

import conftest
import pytest
import requests
from test_rules import RULES, Rules, value

PAGE = conftest.ROOT / "docs" / "security-rules.md"
OPEN = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /c/{id} { allow read, write: if CONDITION; }
  }
}
"""


def listed():
    """The left side of each row of the page's table of differences."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.split("## Differences from Firebase's emulator", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [row.split(" | ")[0].removeprefix("| ").strip() for row in rows[1:]]


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("differences")
    (folder / "firestore.rules").write_text(RULES, encoding="utf-8")
    with conftest.started(folder, "--no-functions") as suite:
        yield Rules(suite, folder)


def load(rules, condition):
    reply = rules.upload(OPEN.replace("CONDITION", condition))
    assert reply.status_code == 200, reply.text
    return reply.json().get("issues", [])


def holds(rules, condition):
    """Whether a user may read a document of these rules."""
    load(rules, condition)
    return rules.get("c/1", "alice") in (200, 404)


def listing(rules, condition, *filters):
    """The status of a user's query with filters of a field, an operator and a value."""
    load(rules, condition)
    where = {"compositeFilter": {"op": "AND", "filters": [
        {"fieldFilter": {"field": {"fieldPath": path}, "op": op, "value": given}}
        for path, op, given in filters]}}
    query = {"from": [{"collectionId": "c"}]} | ({"where": where} if filters else {})
    return requests.post(
        f"{rules.origin}/v1/{rules.documents}:runQuery", timeout=10, json={"structuredQuery": query},
        headers={"Authorization": f"Bearer {conftest.token('alice')}"}).status_code


def unproven(rules, _):
    # The rule alone would let each document without the field pass.
    assert listing(rules, "!(resource.data.f in [1, 2])") == 403
    assert listing(rules, "resource.data.get('f', 1) == 1") == 403
    assert listing(rules, "resource.data.get('f', 1) == 1", ("f", "EQUAL", {"integerValue": 1})) == 200


def ranges(rules, _):
    above = ("f", "GREATER_THAN", {"doubleValue": 4.5})
    assert listing(rules, "resource.data.f > 4", above) == 200
    assert listing(rules, "!(resource.data.f <= 4)", above) == 200
    assert listing(rules, "resource.data.f > 5", above) == 403


def text_order(rules, _):
    assert holds(rules, "'\\uffff' < '😀'")


def broken_rules(rules, _):
    assert holds(rules, "true")
    for options in ({}, {"ignore_errors": True}):
        reply = rules.upload("service cloud.firestore {", **options)
        assert reply.status_code == (200 if options else 400)
        assert rules.get("c/1", "alice") == 404


def databases(rules, _):
    scope = f"projects/{conftest.PROJECT}/databases/other"
    assert holds(rules, "true")
    assert rules.upload(OPEN.replace("CONDITION", "false"), scope).status_code == 200
    path = f"{rules.origin}/v1/{scope}/documents/c/1"
    headers = {"Authorization": f"Bearer {conftest.token('alice')}"}
    assert requests.get(path, headers=headers, timeout=10).status_code == 403
    assert rules.get("c/1", "alice") == 404


def empty_file(_, folder):
    (folder / "firestore.rules").write_text("", encoding="utf-8")
    ports = [flag for name in ("hub", "functions", "firestore", "database", "auth", "tasks",
                               "vectors", "ui")
             for flag in (f"--{name}-port", "0")]
    ended = subprocess.run(
        [conftest.hearth(), "start", "--ephemeral", "--no-functions", *ports],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and "The file has no rules" in ended.stderr


def tokens(rules, _):
    load(rules, "request.auth.uid == 'alice'")
    for claims in ({"exp": 1}, {"aud": "another-project"}, {"iss": "nobody"}):
        bearer = conftest.token("alice", **claims)
        reply = requests.get(
            f"{rules.origin}/v1/{rules.documents}/c/1", timeout=10,
            headers={"Authorization": f"Bearer {bearer}"})
        assert reply.status_code == 404, claims


def patch(rules, _):
    rules.upload(OPEN.replace("allow read, write: if CONDITION", "allow write"))
    rules.put("c/patched", owner="bob", secret="of bob")
    reply = requests.patch(
        f"{rules.origin}/v1/{rules.documents}/c/patched?updateMask.fieldPaths=title", timeout=10,
        json={"fields": {"title": value("new")}},
        headers={"Authorization": f"Bearer {conftest.token('alice')}"})
    assert reply.status_code == 200 and reply.json()["fields"] == {"title": value("new")}


def values_order(rules, _):
    assert holds(rules, "{'b': 1, 'a': 2}.values() == [2, 1]")


def conversions(rules, _):
    for call in ("int(' 1') == 1", "int('٣') == 3", "float('1f') == 1.0", "float('0x1p3') == 8.0"):
        assert not holds(rules, call) and not holds(rules, f"!({call})"), call


def members(rules, _):
    for member in ("request.headers", "request.inTransaction", "request.fields"):
        assert not holds(rules, f"{member} == null || {member} != null"), member


def spellings(rules, _):
    for condition in ("exists(/a/{x})", "exists(/a/$x)", "/a /b == /a/b"):
        assert rules.upload(OPEN.replace("CONDITION", condition)).status_code == 400, condition


def member_warnings(rules, _):
    for condition, part in [
            ("request.auth.uuid == 'a'", "Did you mean 'uid'?"),
            ("request.time > 1", "cannot be ordered"),
            ("request.auth", "expect a boolean value")]:
        issues = load(rules, condition)
        assert [issue["severity"] for issue in issues] == ["WARNING"]
        assert part in issues[0]["description"]


CASES = {
    "`!(resource.data.f in [...])` and `resource.data.get('f', d)` do not allow a query"
    " without a filter on `f`": unproven,
    "a range proves a rule with a number of the other type, and proves its negation": ranges,
    "text is ordered by its UTF-8, as queries order it": text_order,
    "broken rules never replace the current rules": broken_rules,
    "rules uploaded for a database apply to that database only": databases,
    "an empty or broken file prevents the start": empty_file,
    "a token's `exp`, `aud` and signature are not checked on the emulator": tokens,
    "the response to a `PATCH` by a user who may write but not `get` the document has only the"
    " fields of the mask": patch,
    "`values()` of a map are in the order of its keys": values_order,
    "`int(' 1')`, `int('٣')`, `float('1f')` and `float('0x1p3')` are errors": conversions,
    "`request.headers`, `request.inTransaction` and `request.fields` do not exist": members,
    "`/a/{x}`, `/a/$x` and spaces within a path are not valid expressions": spellings,
    "members of `request` and `resource` that do not exist, and types that never fit, are"
    " warnings": member_warnings,
}


def test_the_page_lists_the_differences_that_are_tested():
    assert listed() == list(CASES)


@pytest.mark.parametrize("difference", CASES, ids=lambda text: re.sub(r"\W+", " ", text)[:60])
def test_a_listed_difference_is_as_the_page_says(rules, tmp_path, difference):
    CASES[difference](rules, tmp_path)


def test_the_page_s_surprises_are_as_it_says(rules):
    # A filter also finds the equal number of the other type, and proves the type all the same.
    reply = requests.patch(
        f"{rules.origin}/v1/{rules.documents}/c/float", timeout=10,
        json={"fields": {"f": {"doubleValue": 1.0}}}, headers={"Authorization": "Bearer owner"})
    assert reply.status_code == 200
    assert listing(
        rules, "resource.data.f is int", ("f", "EQUAL", {"integerValue": 1})) == 200


def test_the_page_s_cases_of_storage_come_out_as_expected(tmp_path):
    text = PAGE.read_text(encoding="utf-8").split("### Cloud Storage", 1)[1]
    rules, cases = (block.split("\n", 1)[1] for block in text.split("```")[1:4:2])
    (tmp_path / "storage.rules").write_text(rules, encoding="utf-8")
    (tmp_path / "cases.json").write_text(cases, encoding="utf-8")
    ended = subprocess.run(
        [conftest.hearth(), "rules", "test", "--storage", "cases.json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    count = len(json.loads(cases)["cases"])
    assert ended.stdout.strip() == f"{count} of {count} cases are as expected."
