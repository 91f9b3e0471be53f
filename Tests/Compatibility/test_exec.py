"""`hearth exec`: a suite for one command, beside others of the same project."""

import json
import pathlib
import subprocess
import tempfile

import pytest
from conftest import CONFIGURATION, PROJECT, ROOT, hearth, started

SAMPLE = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
ENQUEUE = ("curl -sf http://$FUNCTIONS_EMULATOR_HOST/{project}/us-central1/enqueueTask"
           " -H 'content-type: application/json' -d '{data}'")


def run(folder, *options, command="true"):
    return subprocess.run(
        [hearth(), "exec", "--project", PROJECT, "--executable", SAMPLE, *options, "--", "sh", "-c",
         command], cwd=folder, capture_output=True, text=True, timeout=90, check=False)


@pytest.fixture()
def folder(tmp_path):
    (tmp_path / "output").touch()
    (tmp_path / ".env").write_text(f"SAMPLE_OUTPUT={tmp_path}/output\n", encoding="utf-8")
    return tmp_path


def test_the_locator_file_stays_that_of_a_suite_that_was_started(folder):
    locator = pathlib.Path(tempfile.gettempdir()) / f"hub-{PROJECT}.json"
    with started(folder, "--no-functions"):
        before = locator.read_text(encoding="utf-8")
        assert run(folder, command=f"cat {locator}").stdout == before
        assert locator.read_text(encoding="utf-8") == before


def test_a_function_that_waits_for_its_next_try_fails_a_strict_run(folder):
    order = {"data": {"job": {"text": "late", "failures": 1}}}
    failing = ENQUEUE.format(project=PROJECT, data=json.dumps(order))
    write = ("curl -sf -X PATCH -H 'authorization: Bearer owner' -d '{}' http://$FIRESTORE_EMULATOR_HOST"
             f"/v1/projects/{PROJECT}/databases/\\(default\\)/documents/failAlways/a")

    assert run(folder, "--strict", command=failing).returncode == 0
    for options, code in (((), 0), (("--strict",), 1)):
        done = run(folder, *options, command=write)
        assert done.returncode == code, done.stderr
        assert "1 event failed, to be tried again later" in done.stderr
        assert "failAlways" in done.stderr
