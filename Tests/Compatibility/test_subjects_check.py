"""check-subjects.sh on the commits of a change, and on clones that lack what it compares with."""

import subprocess

import pytest
from conftest import ROOT

SCRIPT = ROOT / "Sources" / "Tooling" / "Scripts" / "check-subjects.sh"
WRONG = "The old subject of a commit before the change that nobody can reword any more."


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com", *arguments],
        cwd=folder, check=True, capture_output=True, timeout=30)


def commit(folder, *subjects):
    for subject in subjects:
        git(folder, "commit", "--allow-empty", "-qm", subject)


def check(folder, *arguments, **variables):
    return subprocess.run(
        ["sh", SCRIPT, *arguments], cwd=folder, capture_output=True, text=True, timeout=30,
        check=False, env={"PATH": "/usr/local/bin:/usr/bin:/bin", **variables})


@pytest.fixture(name="clone")
def cloned(tmp_path):
    """A clone with a wrong subject in the history that the change begins with."""
    git(tmp_path, "init", "-qb", "main", "origin")
    commit(tmp_path / "origin", WRONG, "Add the second")
    git(tmp_path, "clone", "-q", "origin", "clone")
    return tmp_path / "clone"


def test_the_commits_of_the_change_are_checked_and_none_before(clone):
    commit(clone, "Embed ä" + "x" * 65, "Pass it")
    done = check(clone)

    assert done.returncode == 0, done.stdout
    assert done.stdout == "subjects: no findings; those since origin/main were checked\n"


@pytest.mark.parametrize("subject, problem", [
    ("Add " + "x" * 69, "73 characters, at most 72"),
    *[(subject, "does not begin with an imperative") for subject in [
        "Added it", "Adding it", "Adds it", "A thing", "add it", "Docs: it", "fixup! Add it"]],
    ("Add it.", "ends with a period"),
])
def test_a_wrong_subject_of_the_change_is_named(clone, subject, problem):
    commit(clone, subject, "Add the last")
    done = check(clone)

    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert problem in line and line.endswith(subject)


def test_without_a_base_only_the_last_commit_is_checked(clone, tmp_path):
    even = check(clone)
    unknown = check(clone, BASE="0" * 40)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{clone}", "shallow")
    commit(tmp_path / "shallow", "Add a third")
    shallow = check(tmp_path / "shallow", "HEAD~5")
    outside = check(tmp_path)

    for done, reason in [(even, "nothing is ahead of origin/main"), (unknown, "is not in this clone"),
                         (shallow, "HEAD~5 is not in this clone"), (outside, "no commits here")]:
        assert done.returncode == 0 and reason in done.stdout, done.stdout + done.stderr


def test_a_merge_is_not_checked_and_neither_is_what_was_before_it(tmp_path):
    git(tmp_path, "init", "-qb", "main")
    commit(tmp_path, WRONG)
    git(tmp_path, "switch", "-qc", "branch")
    commit(tmp_path, "Wrong too.")
    git(tmp_path, "switch", "-q", "main")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "Merged", "branch")

    assert check(tmp_path).returncode == 0
