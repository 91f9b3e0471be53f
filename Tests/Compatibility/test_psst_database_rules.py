"""Who may do what with Psst's presences and typing: psst_database_rules.json has a row for each sentence, both ways."""

import json
import pathlib
import subprocess

import conftest

FOLDER = pathlib.Path(__file__).parent
CASES = FOLDER / "psst_database_rules.json"


def test_each_case_comes_out_as_it_should(tmp_path):
    seen = tmp_path / "seen.txt"
    ended = subprocess.run(
        [conftest.hearth(), "rules", "test", "--database", "--coverage", str(seen), str(CASES)],
        cwd=FOLDER.parent.parent, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_each_sentence_has_a_case_that_is_allowed_and_one_that_is_not():
    answers = {}
    for case in json.loads(CASES.read_text(encoding="utf-8"))["cases"]:
        answers.setdefault(case["name"].rsplit(": ", 1)[0], set()).add(case["expect"])
    closed = answers.pop("everything else is closed")
    assert closed == {"deny"}
    assert all(answer == {"allow", "deny"} for answer in answers.values()), answers
