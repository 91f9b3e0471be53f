"""Exports and imports, as Firebase's tools and people order them."""

import json
import pathlib
import subprocess

import pytest
import requests
from conftest import PROJECT, Suite, hearth, limited
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.vector import Vector

OWNER = {"Authorization": "Bearer owner"}
DATABASE = f"projects/{PROJECT}/databases/(default)"


@pytest.fixture
def start(tmp_path):
    """Starts further suites, each with data of its own."""
    running = []

    def start(*arguments, limits=""):
        folder = tmp_path / f"suite-{len(running)}"
        folder.mkdir()
        process = subprocess.Popen(
            limited(limits, [hearth(), "start", "--ephemeral", "--json", "--no-functions",
                             "--project", PROJECT, "--free-ports", *map(str, arguments)]),
            stdout=subprocess.PIPE, stderr=open(folder / "log", "w"), cwd=folder, text=True)
        running.append(process)
        line = process.stdout.readline()
        assert line, (folder / "log").read_text()
        suite = Suite(process, json.loads(line))
        suite.log = folder / "log"
        return suite

    yield start
    for process in running:
        process.kill()
        process.wait()


def client(suite, monkeypatch):
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", suite.address("firestore"))
    return firestore.Client(project=PROJECT, credentials=AnonymousCredentials())


def everything(db):
    def walk(collections):
        for collection in collections:
            for snapshot in collection.stream():
                yield (snapshot.reference.path, snapshot.to_dict(), snapshot.create_time,
                       snapshot.update_time)
                yield from walk(snapshot.reference.collections())
    return sorted(walk(db.collections()), key=lambda entry: entry[0])


def seed(db):
    db.document("a/é").set({
        "text": "Grüße", "least": -(2**63), "minusZero": -0.0, "bytes": b"\x00\xff",
        "point": firestore.GeoPoint(1.5, -2.5), "time": firestore.SERVER_TIMESTAMP,
        "map": {"a.b": [1, {"x": None}]}, "vector": Vector([1.0, 2.5])})
    db.document("a/é/b/c").set({"n": 1})
    db.document("a/é/b/c").set({"n": 2})
    db.document("a/__id7__").set({})
    batch = db.batch()
    for number in range(400):
        batch.set(db.document(f"many/{number}"), {"n": number})
    batch.commit()


def export(suite, body, **headers):
    return requests.post(
        f"http://{suite.address('firestore')}/emulator/v1/projects/{PROJECT}:export",
        json=body, headers=headers, timeout=60)


def test_a_second_suite_has_what_the_first_exported(start, monkeypatch, tmp_path):
    first = start()
    db = client(first, monkeypatch)
    seed(db)
    reply = export(first, {"database": DATABASE, "export_directory": str(tmp_path / "out"),
                           "export_name": "firestore_export"}, **OWNER)
    assert reply.status_code == 200, reply.text
    folder = pathlib.Path(reply.json()["exportPath"])
    assert folder == tmp_path / "out" / "firestore_export"
    lines = (folder / "documents-00000.jsonl").read_text().splitlines()
    assert len(lines) == 403
    assert {"name", "createTime", "updateTime"} <= json.loads(lines[0]).keys()

    second = start("--import", folder)
    assert everything(client(second, monkeypatch)) == everything(db)


def test_the_hub_takes_firebases_order(start, monkeypatch, tmp_path):
    first = start()
    db = client(first, monkeypatch)
    seed(db)
    url = f"http://{first.address('hub')}/_admin/export"
    order = {"path": str(tmp_path / "seed"), "initiatedBy": "test", "targets": ["firestore"]}
    assert requests.post(url, json=order, headers={"Origin": "http://localhost:4000"},
                         timeout=60).status_code == 403
    reply = requests.post(url, json=order, timeout=60)
    assert (reply.status_code, reply.json()) == (200, {"message": "OK"})
    metadata = json.loads((tmp_path / "seed" / "firebase-export-metadata.json").read_text())
    assert (tmp_path / "seed" / metadata["firestore"]["metadata_file"]).exists()

    second = start("--import", tmp_path / "seed")
    assert everything(client(second, monkeypatch)) == everything(db)


@pytest.mark.parametrize("body, headers, status", [
    ({"database": "(default)", "export_directory": "x"}, OWNER, "INVALID_ARGUMENT"),
    ({"database": "projects/other/databases/(default)", "export_directory": "x"}, OWNER,
     "INVALID_ARGUMENT"),
    ({"database": DATABASE, "export_directory": "../x"}, OWNER, "INVALID_ARGUMENT"),
    ({"database": DATABASE, "export_directory": "x", "export_name": "a/b"}, OWNER,
     "INVALID_ARGUMENT"),
    ({"database": DATABASE}, OWNER, "INVALID_ARGUMENT"),
    ({"database": DATABASE, "export_directory": "x"}, {}, "PERMISSION_DENIED"),
    ({"database": DATABASE, "export_directory": "x"}, {**OWNER, "Origin": "http://evil.example"},
     "PERMISSION_DENIED"),
])
def test_orders_that_are_refused(suite, body, headers, status):
    reply = export(suite, body, **headers)
    assert reply.json()["error"]["status"] == status


def test_a_relative_directory_lies_in_the_data_folder(suite):
    reply = export(suite, {"database": DATABASE, "export_directory": "backups/1"}, **OWNER)
    path = reply.json()["exportPath"]
    assert path.endswith("/exports/backups/1/firestore_export") and pathlib.Path(path).is_dir()


def test_a_full_disk_fails_the_export_and_keeps_the_old_one(start, monkeypatch, tmp_path):
    folder = tmp_path / "seed"
    suite = start("--export-on-exit", folder, limits="trap '' XFSZ; ulimit -f 8192")
    db = client(suite, monkeypatch)
    db.document("a/b").set({"n": 1})
    assert suite.cli("export", str(folder)).returncode == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    # A number takes two bytes in the data folder and twenty times that in JSON.
    for number in range(4):
        db.document(f"large/{number}").set({"array": [1] * 60_000})

    result = suite.cli("export", str(folder), "--force")
    assert result.returncode == 1 and "no room" in result.stderr
    suite.process.terminate()
    assert suite.process.wait(timeout=30) == 1
    assert "no room" in suite.log.read_text()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir() if "hearth-export" in path.name] == []
