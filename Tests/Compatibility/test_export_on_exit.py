"""The export that a suite writes when it stops: what it may replace, its form, and what is kept."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import client, hearth, started

PORTS = [flag
         for name in ("hub", "functions", "firestore", "database", "auth", "tasks", "vectors", "ui")
         for flag in (f"--{name}-port", "0")]


@pytest.fixture
def export(tmp_path):
    """An export in the form of Firebase's tools, with one document."""
    with started(tmp_path) as suite:
        client(suite).document("users/tina").set({"name": "Tina"})
        assert suite.cli("export", str(tmp_path / "export"), "--format", "firebase").returncode == 0
    return tmp_path / "export"


def start_refused(folder, *options):
    tried = subprocess.run([hearth(), "start", "--ephemeral", *PORTS, *options], cwd=folder,
                           capture_output=True, text=True, timeout=30, check=False)
    assert tried.returncode == 1, tried.stderr
    return tried.stderr


def test_the_form_of_the_imported_export_is_kept(export, tmp_path):
    with started(tmp_path, "--import", str(export), "--export-on-exit") as suite:
        client(suite).document("users/carl").set({"name": "Carl"})

    assert (export / "firestore_export/all_namespaces/all_kinds/output-0").exists()
    with started(tmp_path, "--import", str(export)) as suite:
        assert {found.id for found in client(suite).collection("users").get()} == {"tina", "carl"}


@pytest.mark.parametrize("name", ["storage_export/blob", "dataconnect_export/a.tar", "README.md"])
def test_what_an_export_would_remove_stops_the_start(export, tmp_path, name):
    other = export / name
    other.parent.mkdir(exist_ok=True)
    other.write_text("mine", encoding="utf-8")

    refusal = start_refused(tmp_path, "--import", str(export), "--export-on-exit")

    assert name.split("/", maxsplit=1)[0] in refusal and "left alone" in refusal
    assert other.read_text(encoding="utf-8") == "mine"
    # Another folder takes the export.
    with started(tmp_path, "--import", str(export), "--export-on-exit", str(tmp_path / "new")):
        pass
    assert json.loads((tmp_path / "new/firebase-export-metadata.json").read_text(encoding="utf-8"))


def started_with_a_document(folder, *command):
    """An ephemeral suite with one document, which exports to the folder's `out` when it stops."""
    process = subprocess.Popen(
        [*command, hearth(), "start", "--json", "--ephemeral", "--project", "demo-psst", *PORTS,
         "--export-on-exit", str(folder / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True)
    suite = json.loads(process.stdout.readline())
    address = suite["services"]["firestore"]
    subprocess.run(
        ["curl", "-sfX", "PATCH", "-H", "Authorization: Bearer owner", "-d",
         '{"fields": {"name": {"stringValue": "Tina"}}}',
         f"http://{address['host']}:{address['port']}/v1/projects/demo-psst/databases/(default)"
         "/documents/users/tina"], check=True, timeout=20, stdout=subprocess.DEVNULL)
    return process


def assert_serves_the_document(folder, *options, ephemeral=True):
    with started(folder, *options, ephemeral=ephemeral) as again:
        assert client(again).document("users/tina").get().to_dict() == {"name": "Tina"}


def assert_keeps_the_document(folder, notes):
    kept, project = re.search(
        r"`hearth start --data (\S+) --project (\S+)` serves them", notes).groups()
    assert project == "demo-psst"
    try:
        assert_serves_the_document(folder, "--data", kept, ephemeral=False)
    finally:
        shutil.rmtree(kept)


@pytest.mark.parametrize("signals", [
    [signal.SIGTERM], [signal.SIGINT], [signal.SIGHUP], [signal.SIGQUIT],
    # Both arrive at once, because the process continues after both were sent.
    [signal.SIGINT, signal.SIGTERM], [signal.SIGHUP, signal.SIGINT],
], ids=lambda signals: "+".join(each.name for each in signals))
def test_each_signal_that_stops_a_suite_exports_and_signals_at_once_are_one(tmp_path, signals):
    process = started_with_a_document(tmp_path)
    process.send_signal(signal.SIGSTOP)
    for each in signals:
        process.send_signal(each)
    process.send_signal(signal.SIGCONT)
    _, notes = process.communicate(timeout=20)

    assert process.returncode == 0, notes
    assert_serves_the_document(tmp_path, "--import", str(tmp_path / "out"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the signals in /proc")
def test_under_nohup_a_suite_ignores_the_end_of_its_terminal(tmp_path):
    process = started_with_a_document(tmp_path, "nohup")
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    process.terminate()
    process.communicate(timeout=20)

    ignored = int(re.search(r"SigIgn:\s*(\w+)", status)[1], 16)
    assert ignored & 1 << signal.SIGHUP - 1


@pytest.mark.parametrize("command", [
    ["exec", "--no-functions", "--", "true"],
    # It fails, because no port has that address.
    ["start", "--host", "192.0.2.1"],
], ids=lambda command: command[0])
def test_the_next_start_keeps_the_data_of_a_suite_that_was_killed_before_its_export(
        tmp_path, command):
    process = started_with_a_document(tmp_path)
    process.kill()
    process.communicate(timeout=20)
    later = subprocess.run([hearth(), *command], cwd=tmp_path, capture_output=True, text=True,
                           timeout=60, check=False)

    assert_keeps_the_document(tmp_path, later.stderr)


def test_an_ephemeral_suite_whose_export_fails_keeps_its_data(tmp_path):
    process = started_with_a_document(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine", encoding="utf-8")
    process.terminate()
    _, notes = process.communicate(timeout=20)

    assert process.returncode == 1
    assert_keeps_the_document(tmp_path, notes)
