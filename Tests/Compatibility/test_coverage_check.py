"""check-coverage.sh on pages that are right, and on pages with one mistake."""

import subprocess

import pytest
from conftest import ROOT

CODE = "`functions/EmbedMessage.swift`"
SWIFT = '`Tests/PsstTests/EmbedMessageTests.swift` "A deleted message\'s vector is deleted"'
PYTHON = '`Tests/Compatibility/test_coverage_check.py` "test_a_page_that_is_right_passes"'
CASES = '`Tests/Compatibility/psst_rules.json` "users: nobody deletes"'
GOOD = f"| It embeds | {CODE} · {SWIFT} · {PYTHON} · {CASES} |"
COUNTS = "1 stand, 1 not yet, 1 the phone's."


def check(tmp_path, line=GOOD, counts=COUNTS, head="| what the app asks | where it stands |"):
    page = tmp_path / "page.md"
    lines = [counts, "", head, "|---|---|", line, "| It waits | not yet: the wait |", "| It shows | the phone's |"]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return subprocess.run(
        ["sh", "Sources/Tooling/Scripts/check-coverage.sh", str(page)],
        cwd=ROOT, capture_output=True, text=True, timeout=30)


def test_a_page_that_is_right_passes(tmp_path):
    done = check(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("line, problem", [
    (GOOD.replace("EmbedMessage.swift", "EmbedMessages.swift"), "no such file"),
    (GOOD.replace("functions/EmbedMessage.swift", "functions"), "no such file"),
    (GOOD.replace("functions/EmbedMessage.swift", "../README.md"), "not a path of the repository"),
    (GOOD.replace("functions/EmbedMessage.swift", "a; exit"), "not a path of the repository"),
    (GOOD.replace("vector is deleted", "vector stays"), "no such test"),
    # The name of a function in Swift, a helper in Python, and a part of a case's name.
    (GOOD.replace("A deleted message's vector is deleted", "deletion"), "no such test"),
    (GOOD.replace("test_a_page_that_is_right_passes", "check"), "no such test"),
    (GOOD.replace("users: nobody deletes", "users: nobody"), "no such test"),
    (f'| It embeds | {CODE} "It embeds" |', "not a test"),
    (f"| It embeds | {SWIFT} |", "no code is named"),
    (f"| It embeds | {CODE} |", "no test is named"),
    (f"| It embeds | {CODE}, {SWIFT} |", "malformed place"),
    ("| It embeds | probably |", "malformed place"),
    (f"| It embeds | {CODE} · {SWIFT}", "malformed line"),
    (f"| It embeds | {CODE} | {SWIFT} |", "malformed line"),
    (f"|  | {CODE} · {SWIFT} |", "malformed line"),
    (GOOD.replace("It embeds", "It waits"), "asked twice"),
])
def test_a_line_with_a_mistake_is_named(tmp_path, line, problem):
    done = check(tmp_path, line)
    assert done.returncode == 1 and problem in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("line, problem", [
    ("| It embeds | not yet |", "say what is missing"), ("| It embeds | not yet: |", "say what is missing")])
def test_what_is_missing_is_said(tmp_path, line, problem):
    done = check(tmp_path, line, "0 stand, 2 not yet, 1 the phone's.")
    assert done.returncode == 1 and problem in done.stdout


@pytest.mark.parametrize("counts", [
    "2 stand, 1 not yet, 1 the phone's.", "1 stand, 0 not yet, 1 the phone's.",
    "1 stand, 1 not yet, 11 the phone's.", "Nearly everything stands."])
def test_wrong_counts_are_named(tmp_path, counts):
    done = check(tmp_path, counts=counts)
    assert done.returncode == 1 and "counts" in done.stdout


def test_a_table_has_its_head(tmp_path):
    done = check(tmp_path, head="| what | where |")
    assert done.returncode == 1 and "malformed head" in done.stdout
