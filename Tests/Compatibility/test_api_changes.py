"""api-changes.sh: which commit it compares with, and what of it; a script stands in for Swift."""

import os
import subprocess

import pytest
from conftest import ROOT
from test_subjects_check import commit, git

SCRIPT = ROOT / "Sources" / "Tooling" / "Scripts" / "api-changes.sh"
# Lists the declarations of a baseline that it does not find, prints what it compares, and fails.
SWIFT = """#!/bin/sh
folder=$6/$4
if [ ! -e "$folder" ]; then
  mkdir -p "$folder" "$folder-checkout"
  echo '{"a": [{"b": 1}, {"b": 2, "isInternal": true}]}' >"$folder/FunctionsRuntime.json"
fi
cat "$folder/FunctionsRuntime.json"
exit 3
"""


@pytest.fixture(name="compare")
def comparing(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "swift").write_text(SWIFT, encoding="utf-8")
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


def test_it_compares_with_the_last_version_or_the_named_commit(compare):
    clone, run = compare
    git(clone, "tag", "0.1.0", "HEAD^")
    git(clone, "tag", "other")
    last = run()
    git(clone, "tag", "v0.2.0")
    before = run()
    commit(clone, "Third")

    for done, baseline in [(last, "0.1.0"), (before, "0.1.0"), (run(), "v0.2.0"), (run("HEAD^"), "HEAD^")]:
        assert f"with those of {baseline} ...\n" in done.stdout, done


def test_it_compares_what_is_public_and_exits_as_the_comparison(compare):
    clone, run = compare
    first, again = run("HEAD"), run("HEAD")

    assert first.returncode == again.returncode == 3
    assert first.stdout.endswith('\n{"a": [{"b": 1}]}') and again.stdout in first.stdout
    assert not list(clone.glob(".build/api-baselines/*-checkout"))


def test_a_commit_that_the_clone_lacks_is_named(compare):
    done = compare[1]("nowhere")
    assert done.returncode == 1 and "nowhere is no commit" in done.stderr
