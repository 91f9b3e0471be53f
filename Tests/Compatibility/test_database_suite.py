"""The Realtime Database as a service of the suite: addresses, rules files, exports, faults."""

import json
import subprocess
import sys
import threading

import pytest
import requests
from conftest import PROJECT, hearth, started, token, until

FIRST = f"{PROJECT}-default-rtdb"
OPEN = '{"rules": {".read": true, ".write": true}}'
SIGNED_IN = '{"rules": {".read": "auth != null", ".write": "auth != null"}}'
CLOSED = '{"rules": {".read": false, ".write": false}}'


class Database:
    """REST requests to an instance of a suite."""

    def __init__(self, suite, name=FIRST):
        self.origin = f"http://{suite.address('database')}"
        self.name = name

    def request(self, method, path, user="owner", **options):
        headers = {"Authorization": f"Bearer {user}"} if user else {}
        return requests.request(
            method, f"{self.origin}{path}.json", timeout=20,
            params={"ns": self.name, **options.pop("params", {})},
            headers={**headers, **options.pop("headers", {})}, **options)

    def set(self, path, value):
        reply = self.request("PUT", path, data=json.dumps(value))
        assert reply.status_code == 200, reply.text

    def get(self, path, **parameters):
        reply = self.request("GET", path, params=parameters)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def status(self, user, path="/a", method="GET"):
        """The status of a request by nobody or by a user."""
        return self.request(method, path, user and token(user), **(
            {"json": 1} if method == "PUT" else {})).status_code


def settings(folder, database, **rules):
    (folder / "firebase.json").write_text(json.dumps({"database": database}), encoding="utf-8")
    for name, text in rules.items():
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def test_clients_find_it_by_the_hub_and_the_environment(tmp_path):
    with started(tmp_path, "--no-functions") as suite:
        emulators = suite.hub("GET", "/emulators", headers={}).json()
        assert emulators["database"]["name"] == "database"
        assert f"127.0.0.1:{emulators['database']['port']}" == suite.address("database")
        wrong = requests.get(f"http://{suite.address('firestore')}/.ws", timeout=10)
        assert wrong.status_code == 404
        assert f"Realtime Database answers at {suite.address('database')}" in wrong.text
    script = (f"import os, requests; print(requests.get("
              f"f'http://{{os.environ[\"FIREBASE_DATABASE_EMULATOR_HOST\"]}}/.json?ns={FIRST}',"
              "timeout=10).text)")
    ended = subprocess.run(
        [hearth(), "exec", "--no-functions", "--project", PROJECT, "--", sys.executable, "-c", script],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == "null"


# MARK: Rules


def test_the_rules_of_a_project_are_followed_while_it_runs(tmp_path):
    settings(tmp_path, {"rules": "r.json"}, r=SIGNED_IN)
    with open(tmp_path / "log", "w", encoding="utf-8") as log, started(
            tmp_path, "--no-functions", stderr=log) as suite:
        database = Database(suite)
        assert database.status(None) == 401 and database.status("tina") == 200
        # The file is that of the first instance alone.
        assert Database(suite, "another").status(None) == 200
        (tmp_path / "r.json").write_text("{", encoding="utf-8")
        until(lambda: "The former rules stay." in (tmp_path / "log").read_text(encoding="utf-8"),
              "the mistake is not told")
        assert f"{tmp_path}/r.json:1:" in (tmp_path / "log").read_text(encoding="utf-8")
        assert database.status("tina") == 200
        (tmp_path / "r.json").write_text(CLOSED, encoding="utf-8")
        until(lambda: database.status("tina") == 401, "the change is not taken")
        assert database.request("GET", "/a").status_code == 200


def test_a_stream_that_new_rules_do_not_allow_is_cancelled(tmp_path):
    settings(tmp_path, {"rules": "r.json"}, r=OPEN)
    with started(tmp_path, "--no-functions") as suite:
        with Database(suite).request("GET", "/a", None, stream=True,
                                     headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines(decode_unicode=True)
            assert next(lines) == "event: put"
            (tmp_path / "r.json").write_text(CLOSED, encoding="utf-8")
            assert "event: cancel" in list(lines)


def test_a_list_has_the_rules_of_instances_and_targets(tmp_path):
    settings(tmp_path, [{"instance": "one", "rules": "a.json"}, {"target": "t", "rules": "b.json"}],
             a=SIGNED_IN, b=CLOSED)
    (tmp_path / ".firebaserc").write_text(json.dumps(
        {"targets": {PROJECT: {"database": {"t": ["two", "three"]}}}}), encoding="utf-8")
    with started(tmp_path, "--no-functions") as suite:
        seen = {name: (Database(suite, name).status(None), Database(suite, name).status("tina"))
                for name in ("one", "two", "three", FIRST)}
    assert seen == {"one": (401, 200), "two": (401, 401), "three": (401, 401), FIRST: (200, 200)}
    with started(tmp_path, "--no-functions", "--no-rules") as suite:
        assert Database(suite, "two").status(None) == 200


@pytest.mark.parametrize("database, rules, complaint", [
    ({"rules": "r.json"}, "{}", "r.json:1:"),
    ({"rules": "r.json"}, '{"rules": {".read": "auth.uid =="}}', "r.json:1:"),
    ({"rules": "r.json"}, None, "which firebase.json names as database.rules"),
    ([{"rules": "r.json"}], OPEN, 'Must supply either "target" or "instance" in database config'),
    ([{"rules": "r.json", "target": "t"}], OPEN, "the target t of the database"),
])
def test_nothing_is_served_without_the_rules_that_are_named(tmp_path, database, rules, complaint):
    settings(tmp_path, database, **({"r": rules} if rules else {}))
    command = [hearth(), "start", "--ephemeral", "--free-ports", "--no-functions"]
    tried = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30,
                           check=False)
    assert tried.returncode == 1 and complaint in tried.stderr
    checked = subprocess.run([hearth(), "doctor"], cwd=tmp_path, capture_output=True, text=True,
                             timeout=60, check=False)
    line = next(line for line in checked.stdout.splitlines() if line.startswith("database rules"))
    assert " FIX " in line


@pytest.mark.parametrize("database, is_told", [({}, True), ({"rules": "r.json"}, False)])
def test_an_open_database_is_told_once(tmp_path, database, is_told):
    settings(tmp_path, database, r=CLOSED)
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        with started(tmp_path, "--no-functions", stderr=log):
            pass
    told = (tmp_path / "log").read_text(encoding="utf-8").count("everything in the Realtime Database")
    assert told == int(is_told)


# MARK: Exports


def test_trees_go_through_an_export_and_come_back(tmp_path):
    tree = {"a": {".value": 1, ".priority": 2}, "list": {"0": "x", "2": "y"}}
    with started(tmp_path, "--no-functions") as suite:
        Database(suite).set("/", tree)
        Database(suite, "other").set("/", "a leaf")
        made = suite.cli("export", str(tmp_path / "out"))
        assert made.returncode == 0 and "2 Realtime Databases" in made.stdout
    metadata = json.loads(
        (tmp_path / "out/firebase-export-metadata.json").read_text(encoding="utf-8"))
    assert metadata["database"]["path"] == "database_export"
    file = tmp_path / f"out/database_export/{FIRST}.json"
    assert json.loads(file.read_text(encoding="utf-8")) == tree
    with started(tmp_path, "--no-functions", "--import", "out", "--export-on-exit") as suite:
        assert Database(suite).get("/", format="export") == tree
        assert Database(suite, "other").get("/") == "a leaf"
        Database(suite).set("/a", None)
        Database(suite, "new").set("/", 3)
    assert json.loads(file.read_text(encoding="utf-8")) == {"list": tree["list"]}
    assert (tmp_path / "out/database_export/new.json").read_text(encoding="utf-8") == "3\n"


def test_an_official_export_is_read_by_a_running_suite(tmp_path):
    (tmp_path / "seed/database_export").mkdir(parents=True)
    (tmp_path / "seed/firebase-export-metadata.json").write_text(json.dumps({
        "version": "14.0.0", "database": {"version": "4.11.2", "path": "database_export"},
    }), encoding="utf-8")
    (tmp_path / f"seed/database_export/{FIRST}.json").write_text('{"new":1}', encoding="utf-8")
    with started(tmp_path, "--no-functions") as suite:
        database = Database(suite)
        database.set("/", {"old": 1})
        Database(suite, "other").set("/", 1)
        read = suite.cli("import", str(tmp_path / "seed"))
        assert read.returncode == 0 and "1 Realtime Database" in read.stdout, read.stderr
        assert database.get("/") == {"new": 1} and Database(suite, "other").get("/") == 1
        assert suite.cli("import", str(tmp_path / "seed"), "--replace").returncode == 0
        assert Database(suite, "other").get("/") is None


def test_a_file_of_json_is_read_as_a_tree(tmp_path):
    file = tmp_path / "tree.json"
    file.write_text('{"users": {"tina": {"online": true}}}', encoding="utf-8")
    with started(tmp_path, "--no-functions") as suite:
        read = suite.cli("import", str(file), "--database")
        assert read.returncode == 0 and "1 Realtime Database" in read.stdout, read.stderr
        assert Database(suite).get("/users/tina/online") is True
        assert suite.cli("import", str(file), "--instance", "other").returncode == 0
        assert Database(suite, "other").get("/users/tina/online") is True
        file.write_text('{"a.b": 1}', encoding="utf-8")
        refused = suite.cli("import", str(file), "--database")
        assert refused.returncode == 1 and "couldn't parse key beginning at 1:2" in refused.stderr
        assert Database(suite).get("/users/tina/online") is True


# MARK: Faults


def test_connections_are_cut_and_counted(tmp_path):
    with started(tmp_path, "--no-functions") as suite:
        with Database(suite).request("GET", "/a", stream=True,
                                     headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines(decode_unicode=True)
            assert next(lines) == "event: put"
            metrics = suite.hub("GET", "/metrics").text
            assert f'hearth_database_clients{{instance="{FIRST}"}} 1' in metrics
            assert f'hearth_database_listeners{{instance="{FIRST}"}} 1' in metrics
            ended = threading.Event()
            threading.Thread(target=lambda: (list(lines), ended.set()), daemon=True).start()
            cut = suite.cli("faults", "disconnect")
            assert "1 client of the Realtime Database" in cut.stdout, cut.stderr
            assert ended.wait(20)
        assert Database(suite).get("/a") is None
