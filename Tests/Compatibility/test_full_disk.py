"""A suite whose disk fills up, and gets room again."""

import contextlib
import json
import os
import subprocess

import pytest
from conftest import PROJECT, Suite, hearth
from google.api_core.exceptions import ResourceExhausted
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

DISK_BYTES = 8 << 20
PAGE_BYTES = 4096
BALLAST_BYTES = 5 << 20
TEXT_BYTES = 100_000
# More than the disk could ever hold.
WRITES_MAX = 2 * DISK_BYTES // TEXT_BYTES
# Without it the client tries a refused write again for a minute.
ONCE = {"retry": None, "timeout": 10}


@pytest.fixture
def disk(tmp_path):
    """A folder with a small disk of its own, part of which a ballast file takes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)],
            capture_output=True, text=True, timeout=10, check=False)
    except FileNotFoundError:
        pytest.skip("there is no command `mount` to make a small disk with")
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    try:
        (folder / "ballast").write_bytes(bytes(BALLAST_BYTES))
        yield folder
    finally:
        # Lazily, so that it goes even when something still has a file open on it.
        subprocess.run(["umount", "-l", str(folder)], timeout=10, check=True)


def start(data, log):
    """Starts a durable suite; its first line, or its end without one, says how that went."""
    with open(log, "w", encoding="utf-8") as errors:
        return subprocess.Popen(
            [hearth(), "start", "--data", str(data), "--json", "--no-functions",
             "--project", PROJECT,
             *[flag for name in ("hub", "functions", "firestore", "vectors", "ui")
               for flag in (f"--{name}-port", "0")]],
            stdout=subprocess.PIPE, stderr=errors, cwd=log.parent, text=True)


@contextlib.contextmanager
def started(data, log, ending="stopped"):
    """A client of a durable suite, which is killed or must stop cleanly at the end."""
    process = start(data, log)
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        with pytest.MonkeyPatch.context() as patch:
            address = Suite(process, json.loads(line)).address("firestore")
            patch.setenv("FIRESTORE_EMULATOR_HOST", address)
            yield firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
        if ending == "stopped":
            process.terminate()
            assert process.wait(timeout=30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def content(number, size=TEXT_BYTES):
    return {"n": number, "text": f"{number:06}" * (size // 6)}


def fill(db, documents, size=TEXT_BYTES):
    """Writes documents until one is refused, and notes those acknowledged; returns the refusal."""
    for _ in range(WRITES_MAX):
        number = len(documents)
        path, data = f"texts/{number:06}", content(number, size)
        try:
            db.document(path).set(data, **ONCE)
        except ResourceExhausted as refusal:
            return refusal
        documents[path] = data
    raise AssertionError("the disk never filled up")


def everything(db):
    return {snapshot.reference.path: snapshot.to_dict()
            for snapshot in db.collection("texts").stream(**ONCE)}


def assert_plain(refusal, folder):
    assert str(folder) in refusal.message, refusal.message
    assert "no space is left" in refusal.message and "free some" in refusal.message


def assert_no_trace(log):
    text = log.read_text()
    for word in ("Fatal error", "Crash", "Backtrace", " at /"):
        assert word not in text, text


def test_a_full_disk_refuses_writes_whole_and_takes_them_again(disk, tmp_path):
    data, documents = disk / "data", {}
    with started(data, tmp_path / "first.log") as db:
        # Large writes first and then small ones, so that hardly a page is left.
        for size in (TEXT_BYTES, 6_000, 60):
            assert_plain(fill(db, documents, size), data)
        assert len(documents) > 10
        assert everything(db) == documents
        path = next(iter(documents))
        assert db.document(path).get(**ONCE).to_dict() == documents[path]
        # A batch is refused as a whole, with the write that would have found room.
        batch = db.batch()
        batch.delete(db.document(path))
        batch.set(db.document("texts/refused"), content(0))
        with pytest.raises(ResourceExhausted):
            batch.commit(**ONCE)
        assert everything(db) == documents

        (disk / "ballast").unlink()
        for _ in range(5):
            path, more = f"texts/{len(documents):06}", content(len(documents))
            db.document(path).set(more, **ONCE)
            documents[path] = more
        assert everything(db) == documents
    assert_no_trace(tmp_path / "first.log")
    with started(data, tmp_path / "second.log") as db:
        assert everything(db) == documents
        db.document("texts/last").set({"n": 1}, **ONCE)


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_a_suite_that_ends_on_a_full_disk_loses_nothing(disk, tmp_path, ending):
    data, documents = disk / "data", {}
    with started(data, tmp_path / "first.log", ending) as db:
        for size in (TEXT_BYTES, 6_000, 60):
            fill(db, documents, size)
    # What the end gave back is taken by someone else.
    fill_rest(disk / "other")

    starts_or_says_why(data, tmp_path / "second.log", documents)

    (disk / "ballast").unlink()
    with started(data, tmp_path / "third.log") as db:
        assert everything(db) == documents
        db.document("texts/last").set(content(0), **ONCE)


@pytest.mark.parametrize("reserve", ["kept", "spent"])
def test_a_suite_killed_on_a_full_disk_starts_with_what_it_reserved(disk, tmp_path, reserve):
    data, documents = disk / "data", {}
    with started(data, tmp_path / "first.log", "killed") as db:
        for number in range(5):
            documents[f"texts/{number:06}"] = content(number)
            db.document(f"texts/{number:06}").set(content(number), **ONCE)
        fill_rest(disk / "other")
        if reserve == "spent":
            for size in (TEXT_BYTES, 6_000, 60):
                fill(db, documents, size)
    fill_rest(disk / "more")

    for attempt in ("second", "third"):
        log = tmp_path / f"{attempt}.log"
        with started(data, log, "killed") as db:
            assert everything(db) == documents
            assert_plain(fill(db, documents), data)
            assert everything(db) == documents
        text = log.read_text()
        assert f"no space is left on the disk of {data}" in text, text
        assert "bytes are missing" in text, text
        assert_no_trace(log)

    (disk / "ballast").unlink()
    with started(data, tmp_path / "last.log") as db:
        assert everything(db) == documents
        db.document("texts/last").set(content(0), **ONCE)
    assert "missing" not in (tmp_path / "last.log").read_text()


def test_a_new_suite_on_a_full_disk_says_so(disk, tmp_path):
    fill_rest(disk / "other")
    starts_or_says_why(disk / "data", tmp_path / "first.log", {})
    (disk / "ballast").unlink()
    # What the start left behind when it ran out of room is no obstacle.
    with started(disk / "data", tmp_path / "second.log") as db:
        db.document("texts/1").set(content(1), **ONCE)
        assert everything(db) == {"texts/1": content(1)}


# Nothing fits, then SQLite's shared memory but no more, then barely what a start writes.
@pytest.mark.parametrize("pages", [0, 8, 9, 20])
def test_a_start_with_hardly_any_room_serves_or_says_why(disk, tmp_path, pages):
    data, documents = disk / "data", {}
    with started(data, tmp_path / "first.log") as db:
        for number in range(3):
            documents[f"texts/{number}"] = content(number)
            db.document(f"texts/{number}").set(content(number), **ONCE)
    fill_rest(disk / "other", pages)

    starts_or_says_why(data, tmp_path / "second.log", documents)

    (disk / "ballast").unlink()
    with started(data, tmp_path / "third.log") as db:
        assert everything(db) == documents


def fill_rest(path, pages=0):
    """Takes all the room that the disk still has but for some pages."""
    with open(path, "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(PAGE_BYTES))
        file.truncate(file.tell() - pages * PAGE_BYTES)


def starts_or_says_why(data, log, documents):
    """Either is right on a full disk: to serve what is there, or to end with what to do."""
    process = start(data, log)
    try:
        line = process.stdout.readline()
        if line:
            with pytest.MonkeyPatch.context() as patch:
                address = Suite(process, json.loads(line)).address("firestore")
                patch.setenv("FIRESTORE_EMULATOR_HOST", address)
                db = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
            assert everything(db) == documents
            with pytest.raises(ResourceExhausted) as refusal:
                db.document("texts/refused").set(content(0), **ONCE)
            assert_plain(refusal.value, data)
            process.terminate()
        assert process.wait(timeout=30) == (0 if line else 1)
        text = log.read_text()
        assert '"level":"error"' not in text
        assert line or f"Cannot start: no space is left for {data}" in text, text
        assert line or "free some" in text, text
        assert_no_trace(log)
    finally:
        process.kill()
        process.wait()
