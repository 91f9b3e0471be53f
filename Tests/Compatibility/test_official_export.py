"""Exports of the official emulator, read and written; skipped where gcloud is not installed."""

import contextlib
import datetime
import math
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest
import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.vector import Vector

from conftest import PROJECT, client, free_port, started

pytestmark = pytest.mark.skipif(not (shutil.which("gcloud") and shutil.which("java")),
                                reason="the official emulator is not installed")


@contextlib.contextmanager
def official(*options):
    """The official emulator on a free port; yields its address."""
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        ["gcloud", "emulators", "firestore", "start", f"--host-port={address}", "--quiet",
         *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert process.poll() is None, "the official emulator ended"
            with contextlib.suppress(OSError), socket.create_connection(
                    address.rsplit(":", 1), timeout=1):
                break
            time.sleep(0.2)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


def connected(address, project):
    os.environ["FIRESTORE_EMULATOR_HOST"] = address
    try:
        return firestore.Client(project=project, credentials=AnonymousCredentials())
    finally:
        del os.environ["FIRESTORE_EMULATOR_HOST"]


def values(db):
    """A value of every type, at the borders of each."""
    other = db.document("users/tina")
    instant = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    return {
        "null": None, "true": True, "false": False, "zero": 0, "negative": -7,
        "most": 2**63 - 1, "least": -2**63, "double": 1.5, "nan": math.nan, "infinity": math.inf,
        "minus infinity": -math.inf, "minus zero": -0.0, "zero double": 0.0, "time": instant,
        "first time": datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc),
        "last time": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999,
                                       tzinfo=datetime.timezone.utc),
        "text": "h\u00e4llo \U0001f600", "empty text": "", "long text": "x" * 40_000,
        "bytes": b"\0\1\xff", "no bytes": b"", "long bytes": b"\7" * 40_000, "reference": other,
        "place": firestore.GeoPoint(1.25, -2.5), "array": [1, "a", None, True, 1.5, b"q", instant],
        "empty array": [], "one": [5], "map": {"a": 1, "b": {"c": "d", "t": instant}},
        "empty map": {}, "maps": [{"x": 1}, {"y": [1, 2]}, {}],
        "deep": {"list": [{"k": [{"z": 1, "p": firestore.GeoPoint(0, 0)}]}]},
        "vector": Vector([1.0, 2.5, -3.0]), "inner vector": {"v": [{"w": Vector([1.0])}]},
        "references": [other, db.document("a/b/c/d")], "dotted.name": 1, "`quoted`": 2,
    }


def fill(db):
    everything = values(db)
    db.document("all/values").set(everything)
    for name, value in everything.items():
        db.document(f"each/{name}").set({"value": value})
    for path in ("nothing/here", "a/b/c/d/e/f", "sp ecial/\u00fc.\u00f1 ~!", "ids/__id7__",
                 "ids/123", "below/missing/only/child"):
        db.document(path).set({"x": 1} if path != "nothing/here" else {})


def plain(value):
    """A value in a form that tells types apart, and compares NaN and zeros."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, Vector):
        return ("vector", list(value))
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, firestore.DocumentReference):
        return ("reference", value.path)
    if isinstance(value, firestore.GeoPoint):
        return ("place", value.latitude, value.longitude)
    return (type(value).__name__, str(value))


def documents(db):
    found = {}

    def walk(collections):
        for collection in collections:
            for reference in collection.list_documents():
                snapshot = reference.get()
                if snapshot.exists:
                    found[reference.path] = plain(snapshot.to_dict())
                walk(reference.collections())

    walk(db.collections())
    return found


@pytest.mark.timeout(180)
def test_what_the_official_emulator_exports_is_imported_value_by_value(tmp_path):
    with official() as address, started(tmp_path) as suite:
        db = connected(address, "demo-official")
        fill(db)
        (tmp_path / "seed").mkdir()
        reply = requests.post(
            f"http://{address}/emulator/v1/projects/demo-official:export",
            json={"database": "projects/demo-official/databases/(default)",
                  "export_directory": str(tmp_path / "seed"), "export_name": "firestore_export"},
            timeout=60)
        assert reply.status_code == 200, reply.text

        imported = suite.cli("import", str(tmp_path / "seed" / "firestore_export"))

        assert imported.returncode == 0, imported.stderr
        expected = documents(db)
        assert len(expected) > 40
        assert documents(client(suite)) == expected


@pytest.mark.timeout(180)
def test_the_official_emulator_imports_what_is_exported_for_it(tmp_path):
    with started(tmp_path) as suite:
        db = client(suite)
        fill(db)
        exported = suite.cli("export", str(tmp_path / "out"), "--format", "firebase")
        assert exported.returncode == 0, exported.stderr
        metadata = tmp_path / "out/firestore_export/firestore_export.overall_export_metadata"

        with official(f"--import-data={metadata}") as address:
            assert documents(connected(address, PROJECT)) == documents(db)


def test_an_export_of_firebase_is_read_at_the_start(tmp_path):
    with started(tmp_path) as suite:
        client(suite).document("users/tina").set({"name": "Tina"})
        assert suite.cli("export", str(tmp_path / "out"), "--format", "firebase").returncode == 0
    (tmp_path / "other").mkdir()

    with started(tmp_path / "other", "--import", str(tmp_path / "out")) as suite:
        assert client(suite).document("users/tina").get().to_dict() == {"name": "Tina"}


def test_a_format_that_does_not_exist_is_refused(suite):
    tried = suite.cli("export", "/tmp/never", "--format", "csv")

    assert tried.returncode == 2
    assert "hearth" in tried.stderr and "firebase" in tried.stderr
