"""api-changes.sh: which commit it compares with; the compiler is a script that prints its arguments."""

import os
import subprocess

import pytest
from conftest import ROOT
from test_subjects_check import commit, git

SCRIPT = ROOT / "Sources" / "Tooling" / "Scripts" / "api-changes.sh"


@pytest.fixture(name="compare")
def comparing(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "swift").write_text('#!/bin/sh\necho "$@"\nexit 3\n', encoding="utf-8")
    (tools / "swift").chmod(0o755)
    git(tmp_path, "init", "-qb", "main", "clone")
    commit(tmp_path / "clone", "First", "Second")

    def run(*arguments):
        return subprocess.run(
            ["sh", SCRIPT, *arguments], cwd=tmp_path / "clone", capture_output=True, text=True,
            timeout=30, check=False, env={"PATH": f"{tools}:{os.environ['PATH']}"})

    return tmp_path / "clone", run


def test_without_a_tag_it_says_what_to_do(compare):
    done = compare[1]()
    assert done.returncode == 0 and "make api-changes BASELINE=" in done.stdout


def test_it_compares_with_the_last_version_or_the_named_commit_and_exits_as_the_comparison(compare):
    clone, run = compare
    git(clone, "tag", "0.1.0", "HEAD^")
    git(clone, "tag", "other")
    last = run()
    git(clone, "tag", "v0.2.0")
    before = run()
    commit(clone, "Third")

    for done, baseline in [(last, "0.1.0"), (before, "0.1.0"), (run(), "v0.2.0"), (run("HEAD^"), "HEAD^")]:
        assert done.returncode == 3 and f"-changes {baseline} --products " in done.stdout, done


def test_a_commit_that_the_clone_lacks_is_named(compare):
    done = compare[1]("nowhere")
    assert done.returncode == 1 and "nowhere is no commit" in done.stderr
