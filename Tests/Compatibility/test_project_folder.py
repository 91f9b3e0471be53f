"""The project's folder and its `firebase.json`: found upward, with the addresses of the emulators."""

import contextlib
import json
import subprocess
import urllib.request

import pytest

from conftest import free_port, hearth


@contextlib.contextmanager
def begun(folder, *options):
    """A suite begun in a folder by its own settings; yields the description and the notes so far."""
    notes = open(folder / "notes", "w+", encoding="utf-8")
    process = subprocess.Popen([hearth(), "start", "--json", "--ephemeral", *options],
                               stdout=subprocess.PIPE, stderr=notes, cwd=folder, text=True)
    line = process.stdout.readline()
    notes.seek(0)
    try:
        yield json.loads(line) if line else None, notes
    finally:
        process.terminate()
        process.wait(timeout=10)
        notes.close()


def settings(tmp_path, **emulators):
    (tmp_path / "firebase.json").write_text(json.dumps({"emulators": emulators}), encoding="utf-8")


def own_ports():
    return {name: {"port": free_port()} for name in
            ("firestore", "auth", "functions", "tasks", "hub", "vectors", "ui")}


def test_every_service_listens_where_firebase_json_says(tmp_path):
    ports = own_ports()
    ports["firestore"]["host"] = "127.0.0.2"
    settings(tmp_path, singleProjectMode=True, **ports)

    with begun(tmp_path) as (suite, _):
        assert {name: address["port"] for name, address in suite["services"].items()} == {
            name: address["port"] for name, address in ports.items()}
        assert suite["services"]["firestore"]["host"] == "127.0.0.2"
        assert suite["services"]["auth"]["host"] == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.2:{ports['firestore']['port']}/", timeout=10):
            pass


def test_a_flag_wins_over_firebase_json(tmp_path):
    settings(tmp_path, **own_ports())
    port = free_port()

    with begun(tmp_path, "--firestore-port", str(port), "--host", "127.0.0.3") as (suite, _):
        assert suite["services"]["firestore"] == {"host": "127.0.0.3", "port": port}


def test_the_console_can_be_switched_off(tmp_path):
    settings(tmp_path, **{**own_ports(), "ui": {"enabled": False}})

    with begun(tmp_path) as (suite, _):
        assert "ui" not in suite["services"]


def test_emulators_that_do_not_exist_are_named_once(tmp_path):
    settings(tmp_path, **own_ports(), storage={"port": 9199}, pubsub={"port": 8085})

    with begun(tmp_path):
        pass
    with open(tmp_path / "notes", encoding="utf-8") as notes:
        named = [line for line in notes if "does not have" in line]
    assert len(named) == 1
    assert "pubsub, storage" in named[0]


@pytest.mark.parametrize("emulators, text", [
    ({"firestore": {"port": 70000}}, "emulators.firestore.port is 70000; set 0 to 65535"),
    ({"auth": {"host": "http://x"}}, "emulators.auth.host"),
    ({"auth": {"port": "9099"}}, "emulators.auth.port"),
    ({"hub": 4400}, "emulators.hub"),
    ({"firestore": {"port": 8080.5}}, "such as a port with a fraction"),
])
def test_an_address_that_is_none_is_refused_by_name(tmp_path, emulators, text):
    settings(tmp_path, **emulators)

    tried = subprocess.run([hearth(), "start", "--ephemeral"], cwd=tmp_path, capture_output=True,
                           text=True, timeout=30, check=False)

    assert tried.returncode == 1
    assert text in tried.stderr
    assert "firebase.json" in tried.stderr


@pytest.mark.parametrize("mode, warns", [(True, True), (False, False)])
def test_other_projects_are_warned_of_in_single_project_mode_only(tmp_path, mode, warns):
    settings(tmp_path, singleProjectMode=mode, **own_ports())

    with begun(tmp_path) as (suite, notes):
        address = suite["services"]["firestore"]
        url = (f"http://127.0.0.1:{address['port']}/v1/projects/other/databases/(default)"
               "/documents/a/b")
        request = urllib.request.Request(url, data=b'{"fields":{}}', method="PATCH",
                                         headers={"authorization": "Bearer owner"})
        urllib.request.urlopen(request, timeout=10).close()
    with open(tmp_path / "notes", encoding="utf-8") as lines:
        assert ("Requests for project other" in lines.read()) == warns


def test_commands_find_the_project_in_a_parent_folder(tmp_path):
    settings(tmp_path, **own_ports())
    (tmp_path / ".firebaserc").write_text('{"projects": {"default": "demo-upward"}}',
                                          encoding="utf-8")
    inner = tmp_path / "Sources" / "Functions"
    inner.mkdir(parents=True)
    process = subprocess.Popen([hearth(), "start", "--json"], stdout=subprocess.PIPE, cwd=inner,
                               text=True)
    try:
        assert json.loads(process.stdout.readline())["project"] == "demo-upward"
        assert (tmp_path / ".hearth" / "server.json").exists()
        clock = subprocess.run([hearth(), "clock"], cwd=inner, capture_output=True, text=True,
                               timeout=30, check=False)
        assert clock.returncode == 0, clock.stderr
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_a_folder_without_a_project_says_so_and_points_to_init(tmp_path):
    flags = [flag for name in ("hub", "functions", "firestore", "auth", "tasks", "vectors", "ui")
             for flag in (f"--{name}-port", "0")]

    with begun(tmp_path, *flags) as (suite, notes):
        assert suite["project"] == "demo-no-project"
    with open(tmp_path / "notes", encoding="utf-8") as lines:
        text = lines.read()
    assert "There is no firebase.json here or in a parent folder" in text
    assert "hearth init" in text


@pytest.mark.parametrize("command", [("functions", "config"), ("rules", "check")])
def test_a_command_of_a_project_says_that_there_is_none(tmp_path, command):
    tried = subprocess.run([hearth(), *command], cwd=tmp_path, capture_output=True, text=True,
                           timeout=30, check=False)

    assert tried.returncode == 1
    assert "There is no firebase.json here or in a parent folder" in tried.stderr
