"""The project's folder and its `firebase.json`: found upward, with the addresses of the emulators."""

import contextlib
import json
import os
import subprocess
import urllib.request

import pytest

from conftest import ROOT, free_port, hearth


@contextlib.contextmanager
def begun(folder, *options):
    """A suite begun in a folder by its own settings; yields its description."""
    with open(folder / "notes", "wb") as notes:
        process = subprocess.Popen([hearth(), "start", "--json", "--ephemeral", *options],
                                   stdout=subprocess.PIPE, stderr=notes, cwd=folder, text=True)
    line = process.stdout.readline()
    try:
        yield json.loads(line) if line else None
    finally:
        process.terminate()
        process.wait(timeout=10)


def notes_of(folder):
    """All that a suite begun in a folder said beside its description."""
    return (folder / "notes").read_text(encoding="utf-8")


def settings(tmp_path, **emulators):
    (tmp_path / "firebase.json").write_text(json.dumps({"emulators": emulators}), encoding="utf-8")


def own_ports():
    names = ("firestore", "database", "auth", "functions", "tasks", "hub", "vectors", "ui")
    ports = set()
    while len(ports) < len(names):
        ports.add(free_port())
    return {name: {"port": port} for name, port in zip(names, ports)}


def test_every_service_listens_where_firebase_json_says(tmp_path):
    ports = own_ports()
    ports["firestore"]["host"] = "127.0.0.2"
    settings(tmp_path, singleProjectMode=True, **ports)

    with begun(tmp_path) as suite:
        assert {name: address["port"] for name, address in suite["services"].items()} == {
            name: address["port"] for name, address in ports.items()}
        assert suite["services"]["firestore"]["host"] == "127.0.0.2"
        assert suite["services"]["auth"]["host"] == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.2:{ports['firestore']['port']}/", timeout=10):
            pass


def test_a_flag_wins_over_firebase_json(tmp_path):
    settings(tmp_path, **own_ports())
    port = free_port()

    with begun(tmp_path, "--firestore-port", str(port), "--host", "127.0.0.3") as suite:
        assert suite["services"]["firestore"] == {"host": "127.0.0.3", "port": port}


def test_the_console_can_be_switched_off(tmp_path):
    settings(tmp_path, **{**own_ports(), "ui": {"enabled": False}})

    with begun(tmp_path) as suite:
        assert "ui" not in suite["services"]


def test_emulators_that_do_not_exist_are_named_once(tmp_path):
    settings(tmp_path, **own_ports(), storage={"port": 9199}, pubsub={"port": 8085})

    with begun(tmp_path):
        pass
    named = [line for line in notes_of(tmp_path).splitlines() if "does not have" in line]
    assert len(named) == 1
    assert "pubsub, storage" in named[0]


@pytest.mark.parametrize("emulators, text", [
    ({"firestore": {"port": 70000}}, "emulators.firestore.port is 70000; set 0 to 65535"),
    ({"auth": {"host": "http://x"}}, "emulators.auth.host"),
    ({"auth": {"host": "0.0.0.0:1"}}, "emulators.auth.host"),
    ({"auth": {"host": "a b"}}, "emulators.auth.host"),
    ({"auth": {"host": "::z"}}, "emulators.auth.host"),
    ({"auth": {"host": ""}}, "emulators.auth.host"),
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


def test_a_host_that_the_machine_does_not_know_is_named(tmp_path):
    settings(tmp_path, **{**own_ports(), "auth": {"host": "no.such.host.invalid", "port": 0}})

    refusal = start_refused(tmp_path)

    assert "no.such.host.invalid is not a host that this machine knows" in refusal
    assert "SocketAddressError" not in refusal


@pytest.mark.parametrize("mode, warns", [(True, True), (False, False)])
def test_other_projects_are_warned_of_in_single_project_mode_only(tmp_path, mode, warns):
    settings(tmp_path, singleProjectMode=mode, **own_ports())

    with begun(tmp_path) as suite:
        address = suite["services"]["firestore"]
        url = (f"http://127.0.0.1:{address['port']}/v1/projects/other/databases/(default)"
               "/documents/a/b")
        request = urllib.request.Request(url, data=b'{"fields":{}}', method="PATCH",
                                         headers={"authorization": "Bearer owner"})
        urllib.request.urlopen(request, timeout=10).close()
    assert ("Requests for project other" in notes_of(tmp_path)) == warns


def start_refused(folder, *options):
    tried = subprocess.run([hearth(), "start", "--ephemeral", *options], cwd=folder,
                           capture_output=True, text=True, timeout=30, check=False)
    assert tried.returncode == 1, tried.stderr
    return tried.stderr


def test_all_taken_ports_are_named_at_once_with_the_suite_that_has_them(tmp_path):
    ports = own_ports()
    settings(tmp_path, **ports)
    (tmp_path / ".firebaserc").write_text('{"projects": {"default": "demo-first"}}',
                                          encoding="utf-8")

    with begun(tmp_path) as suite:
        refusal = start_refused(tmp_path)
    for name in ("firestore", "database", "auth", "functions", "tasks", "hub", "vectors", "ui"):
        assert f"127.0.0.1:{ports[name]['port']} (" in refusal
    assert f"A suite of project demo-first runs there, process {suite['pid']}." in refusal
    assert "hearth start --free-ports" in refusal


def test_a_second_suite_runs_on_free_ports_and_is_found_from_its_folder(tmp_path):
    ports = own_ports()
    chosen = free_port()
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        settings(folder, **ports)
    with begun(folders[0]) as first, \
            begun(folders[1], "--free-ports", "--firestore-port", str(chosen)) as second:
        first_ports, second_ports = (
            {name: entry["port"] for name, entry in suite["services"].items()}
            for suite in (first, second))
        assert second_ports["firestore"] == chosen
        assert not set(first_ports.values()) & set(second_ports.values())
        shown = subprocess.run([hearth(), "clock"], cwd=folders[1], capture_output=True, text=True,
                               timeout=30, check=False)
        assert shown.returncode == 0, shown.stderr


def test_commands_reach_the_ephemeral_suite_of_their_folder_whichever_began_last(tmp_path):
    """Otherwise an import with --replace would empty the suite of another folder."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        settings(folder)
    with begun(folders[0], "--free-ports"), begun(folders[1], "--free-ports"):
        for folder, hours in zip(folders, (1, 2)):
            moved = subprocess.run([hearth(), "clock", "advance", f"{hours}h"], cwd=folder,
                                   capture_output=True, text=True, timeout=30, check=False)
            assert f"{hours}h ahead" in moved.stdout, moved.stderr


@pytest.mark.parametrize("has_project", [True, False])
def test_a_new_package_inside_a_project_says_how_to_have_one_project(tmp_path, has_project):
    if has_project:
        settings(tmp_path)
    done = subprocess.run([hearth(), "init", "backend/functions", "--hearth-path", str(ROOT)],
                          cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert (f"{tmp_path}/firebase.json is there already" in done.stderr) == has_project
    assert ('"functions": {"source": "backend/functions"}' in done.stderr) == has_project


def test_two_services_cannot_have_one_port(tmp_path):
    settings(tmp_path, **{**own_ports(), "firestore": {"port": 18080}, "auth": {"port": 18080}})

    refusal = start_refused(tmp_path)

    assert "Firestore and Auth would both listen on 127.0.0.1:18080" in refusal
    assert "--auth-port" in refusal


@pytest.mark.parametrize("text, warning", [
    ('{"function": {"source": "."}}', "function is no setting. Did you mean functions?"),
    ('{"functions": {"sorce": "."}}', "functions.sorce is no setting. Did you mean source?"),
    ('{"emulators": {"firestore": {"prot": 1}}}',
     "emulators.firestore.prot is no setting. Did you mean port?"),
    ('{"emulators": {"firestor": {}}}', "emulators.firestor is no setting. Did you mean firestore?"),
])
def test_a_misspelt_setting_is_named_at_the_start_and_by_doctor(tmp_path, text, warning):
    (tmp_path / "firebase.json").write_text(text, encoding="utf-8")
    flags = [flag for name in ("hub", "functions", "firestore", "database", "auth", "tasks",
                               "vectors", "ui")
             for flag in (f"--{name}-port", "0")]

    with begun(tmp_path, "--no-functions", *flags):
        pass
    doctor = subprocess.run([hearth(), "doctor"], cwd=tmp_path, capture_output=True, text=True,
                            timeout=60, check=False)

    assert warning in notes_of(tmp_path)
    assert warning in doctor.stdout


@pytest.mark.parametrize("name, text, words", [
    (".firebaserc", '{"projects": {"default": "demo book"}}', "projects.default is \"demo book\""),
    ("firebase.json", '{"functions": {"source": "."},}', "not JSON"),
    ("firebase.json", '{"functions": "."}', '"functions" must be an object in braces'),
    ("firebase.json", '{"emulators": {"auth": {"port": "9099"}}}', "must be a whole number"),
    ("firebase.json", '{"emulators": {"ui": {"enabled": "no"}}}', "must be true or false"),
    ("firebase.json", '{"firestore": {"rules": 1}}', "must be a text in quotes"),
])
def test_a_setting_that_cannot_be_is_refused_with_what_it_must_be(tmp_path, name, text, words):
    (tmp_path / name).write_text(text, encoding="utf-8")

    refusal = start_refused(tmp_path)

    assert words in refusal and name in refusal


def test_a_deployment_names_a_mistake_made_in_firebase_json_since_the_start(tmp_path):
    settings(tmp_path)
    with begun(tmp_path, "--free-ports"):
        (tmp_path / "firebase.json").write_text('{"functions": {"source": ".",}}', encoding="utf-8")
        deployed = subprocess.run([hearth(), "deploy"], cwd=tmp_path, capture_output=True, text=True,
                                  timeout=60, check=False)
    assert deployed.returncode == 1
    assert "firebase.json" in deployed.stderr and "not JSON" in deployed.stderr


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


# No user has these ids.
OTHER, ANOTHER = 54321, 54322
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture
def foreign(tmp_path):
    """A folder below a project whose firebase.json is another user's."""
    settings(tmp_path, **own_ports())
    os.chown(tmp_path / "firebase.json", OTHER, -1)
    (tmp_path / "inner").mkdir()
    return tmp_path / "inner"


@as_root
@pytest.mark.parametrize("command, code", [
    (("start", "--ephemeral"), 1), (("logs",), 1), (("functions", "config"), 1), (("doctor",), 1),
])
@pytest.mark.parametrize("owner", [0, ANOTHER])
def test_another_users_firebase_json_in_a_parent_folder_is_refused(foreign, command, code, owner):
    os.chown(foreign, owner, -1)

    tried = subprocess.run([hearth(), *command], cwd=foreign, capture_output=True, text=True,
                           timeout=30, check=False)

    assert tried.returncode == code, tried.stdout + tried.stderr
    assert f"{foreign.parent}/firebase.json belongs to the user {OTHER}" in tried.stderr
    assert "chown" in tried.stderr and "the project's own folder" in tried.stderr
    assert not (foreign.parent / ".hearth").exists()


@as_root
def test_another_users_link_to_a_file_of_ones_own_is_refused(foreign):
    (foreign.parent / "firebase.json").rename(foreign / "settings.json")
    os.chown(foreign / "settings.json", 0, -1)
    (foreign.parent / "firebase.json").symlink_to(foreign / "settings.json")
    os.chown(foreign.parent / "firebase.json", OTHER, -1, follow_symlinks=False)

    assert f"belongs to the user {OTHER}" in start_refused(foreign)


@as_root
@pytest.mark.parametrize("of_file, of_folder", [(OTHER, OTHER), (0, OTHER), (0, 0)])
def test_a_parents_firebase_json_of_root_or_of_the_folders_owner_counts(
        foreign, of_file, of_folder):
    os.chown(foreign.parent / "firebase.json", of_file, -1)
    os.chown(foreign, of_folder, -1)

    with begun(foreign, "--ephemeral") as suite:
        assert suite, notes_of(foreign)
        assert "There is no firebase.json" not in notes_of(foreign)


@as_root
def test_another_users_firebase_json_in_the_folder_itself_counts(foreign):
    (foreign.parent / "firebase.json").rename(foreign / "firebase.json")

    with begun(foreign, "--ephemeral") as suite:
        assert suite, notes_of(foreign)


def test_a_link_to_nowhere_is_a_mistake_and_not_a_project_further_up(tmp_path):
    settings(tmp_path, **own_ports())
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "firebase.json").symlink_to("missing.json")

    tried = subprocess.run([hearth(), "start", "--ephemeral"], cwd=inner, capture_output=True,
                           text=True, timeout=30, check=False)

    assert tried.returncode == 1
    assert f"{inner}/firebase.json is a link to a file that is missing" in tried.stderr


def test_a_folder_without_a_project_says_so_and_points_to_init(tmp_path):
    flags = [flag for name in ("hub", "functions", "firestore", "database", "auth", "tasks",
                               "vectors", "ui")
             for flag in (f"--{name}-port", "0")]

    with begun(tmp_path, *flags) as suite:
        assert suite["project"] == "demo-no-project"
    text = notes_of(tmp_path)
    assert "There is no firebase.json here or in a parent folder" in text
    assert "hearth init" in text


@pytest.mark.parametrize("command", [("functions", "config"), ("rules", "check")])
def test_a_command_of_a_project_says_that_there_is_none(tmp_path, command):
    tried = subprocess.run([hearth(), *command], cwd=tmp_path, capture_output=True, text=True,
                           timeout=30, check=False)

    assert tried.returncode == 1
    assert "There is no firebase.json here or in a parent folder" in tried.stderr
