"""Starts one suite for the session and hands out unmodified clients of it."""

import base64
import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
import uuid

import openai
import pytest
import requests
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = "demo-psst"
# Release, because that is what users run.
CONFIGURATION = os.environ.get("CONFIGURATION", "release")


def pytest_configure(config):
    """Gives each of the processes that run tests at once a temporary folder of its own.

    A suite leaves its address there, by the name of its project, and one folder can have one only.
    """
    config.addinivalue_line("markers", "nightly: only `make nightly` builds what the test runs")
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        os.environ["TMPDIR"] = tempfile.mkdtemp(prefix=f"{worker}-")
        # Some tests run programs as another user.
        os.chmod(os.environ["TMPDIR"], 0o755)
        tempfile.tempdir = None


def pytest_unconfigure():
    if "PYTEST_XDIST_WORKER" in os.environ:
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


class Suite:
    """A running suite: its addresses and the commands that people use."""

    def __init__(self, process, description):
        self.process = process
        self.services = description["services"]
        server = pathlib.Path(description["serverFile"])
        self.token = json.loads(server.read_text(encoding="utf-8"))["token"]

    def address(self, service):
        entry = self.services[service]
        return f"{entry['host']}:{entry['port']}"

    def url(self, function):
        return f"http://{self.address('functions')}/{PROJECT}/us-central1/{function}"

    def call(self, function, data, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return requests.post(self.url(function), json={"data": data}, headers=headers, timeout=60)

    def hub(self, method, path, **options):
        """Sends a request to the hub with the suite's token."""
        return requests.request(
            method, f"http://{self.address('hub')}{path}",
            **{"timeout": 60, "headers": {"Authorization": f"Bearer {self.token}"}, **options})

    def settle(self):
        """Waits until every event is delivered and nothing runs."""
        reply = self.hub("POST", "/hearth/v1/settle", timeout=90)
        assert reply.status_code == 200, reply.text

    def cli(self, *arguments):
        return subprocess.run(
            [hearth(), *arguments, "--hub", self.address("hub")],
            capture_output=True, text=True, timeout=120, check=False)


class OpenAIStub:
    """A running stub of OpenAI's API, and its control."""

    def __init__(self, port):
        self.origin = f"http://127.0.0.1:{port}"

    def client(self, **options):
        return openai.OpenAI(**{"base_url": f"{self.origin}/v1", "api_key": "sk-test", **options})

    def control(self, name, body):
        reply = requests.post(f"{self.origin}/stub/{name}", json=body, timeout=10)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def script(self, **script):
        return self.control("script", script)

    def fail(self, *faults):
        return self.control("faults", {"faults": list(faults)})

    def journal(self):
        return requests.get(f"{self.origin}/stub/journal", timeout=10).json()["entries"]

    def statuses(self):
        return [entry["status"] for entry in self.journal()]


def hearth():
    return str(ROOT / ".build" / CONFIGURATION / "hearth")


def token(uid, **claims):
    """An unsigned ID token, as the Auth emulator and the clients' test helpers make it."""

    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    payload = {"sub": uid, "user_id": uid, "aud": PROJECT, "iat": 0, "exp": 3600, **claims}
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(payload)}."


def free_port():
    """A port that stays free until the caller's server listens there.

    It lies below the ports that the system hands out by itself: one of these may go to any other
    test, or to the near end of a connection, a moment after it was found free.
    """
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as candidate, contextlib.suppress(OSError):
            candidate.bind(("127.0.0.1", port))
            return port
    raise OSError("no port from 20000 to 29999 is free")


def until(holds, complaint):
    """Asks until it holds; after a minute it never will."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, complaint
        time.sleep(0.02)


def start_openai_stub():
    return subprocess.Popen(
        [str(ROOT / ".build" / CONFIGURATION / "openai-stub"), "--port", "0", "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def limited(limits, command):
    """A command under the shell's `ulimit`; a `preexec_fn` would run gRPC's code after a fork."""
    return ["sh", "-c", f'{limits}; exec "$@"', "sh", *command] if limits else command


@contextlib.contextmanager
def started(folder, *options, ephemeral=True, limits="", **process_options):
    """A suite that serves the project in a folder; at the end it has to stop within seconds."""
    if ephemeral:
        options = ("--ephemeral", *options)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "PINECONE"))}
    process = subprocess.Popen(
        limited(limits, [hearth(), "start", "--json", "--project", PROJECT, "--free-ports",
                         *options]),
        stdout=subprocess.PIPE, cwd=folder, text=True, env=environment, **process_options)
    line = process.stdout.readline()
    assert line, "the suite ended before it was ready; its output is above"
    try:
        yield Suite(process, json.loads(line))
    finally:
        process.terminate()
    assert process.wait(timeout=5) == 0


@contextlib.contextmanager
def started_with_settings(folder, **settings):
    """A suite that serves Psst with settings of its own, in an empty folder; keys are secrets."""
    for name, value in settings.items():
        file = ".secret.local" if name.endswith("_KEY") else ".env"
        with open(folder / file, "a", encoding="utf-8") as lines:
            lines.write(f"{name}={value}\n")
    binary = str(ROOT / ".build" / CONFIGURATION / "psst-functions")
    with started(folder, "--executable", binary) as suite:
        yield suite


@contextlib.contextmanager
def started_sample(folder):
    """A suite with the sample functions in a folder; `output` is the file that they write to."""
    output = folder / "output"
    output.touch()
    (folder / ".env").write_text(f"SAMPLE_OUTPUT={output}\n", encoding="utf-8")
    binary = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
    with started(folder, "--executable", binary) as suite:
        suite.output = output
        yield suite


def started_psst():
    """A suite that serves Psst as the files of this project say, without rules."""
    return started(ROOT, "--no-build", "--no-rules", "--configuration", CONFIGURATION)


def client(suite):
    """Google's client of the suite's Firestore."""
    os.environ["FIRESTORE_EMULATOR_HOST"] = suite.address("firestore")
    return firestore.Client(project=PROJECT, credentials=AnonymousCredentials())


@pytest.fixture(scope="session")
def suite():
    with started_psst() as suite:
        yield suite


@pytest.fixture(scope="session")
def openai_stub():
    """One stub for all; reset it before use."""
    process = start_openai_stub()
    yield OpenAIStub(json.loads(process.stdout.readline())["port"])
    process.terminate()
    assert process.wait(timeout=10) == 0


@pytest.fixture(scope="session")
def db(suite):
    return client(suite)


@pytest.fixture
def collection(db):
    """A collection of its own for each test."""
    return db.collection(f"c-{uuid.uuid4().hex}")
