"""Many connections and few descriptors: whoever merely holds connections keeps nobody else out."""

import contextlib
import socket
import subprocess
import threading

import conftest
import pytest
import requests

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
FILES = 1024


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A suite that may have no more files open than Linux usually allows."""
    folder = tmp_path_factory.mktemp("connections")
    with conftest.started(folder, "--executable", SAMPLE, limits=f"ulimit -n {FILES}",
                          stderr=open(folder / "log", "w", encoding="utf-8")) as suite:
        suite.log = folder / "log"
        yield suite


@contextlib.contextmanager
def held(address, count, text=b""):
    """Connections that send the beginning of a request, and then nothing."""
    host, port = address.split(":")
    connections = []
    try:
        for _ in range(count):
            # Past the system's backlog a connection waits until there is room for it.
            connection = socket.create_connection((host, int(port)), timeout=30)
            connection.sendall(text)
            connections.append(connection)
        yield connections
    finally:
        for connection in connections:
            connection.close()


def assert_all_serve(suite):
    assert suite.call("echo", {"text": "x"}).status_code < 500
    documents = f"/v1/projects/{conftest.PROJECT}/databases/(default)/documents"
    reply = requests.get(f"http://{suite.address('firestore')}{documents}/things", timeout=30,
                         headers={"Authorization": "Bearer owner"})
    assert reply.status_code == 200
    assert suite.hub("GET", "/hearth/v1/suite").status_code == 200
    assert requests.get(f"http://{suite.address('vectors')}/indexes", timeout=30).status_code == 200


@pytest.mark.parametrize("service", ["functions", "firestore", "hub", "vectors", "tasks"])
@pytest.mark.parametrize("text", [b"", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-"])
def test_held_connections_of_one_port_lock_nobody_out(suite, service, text):
    with held(suite.address(service), 1100, text):
        assert_all_serve(suite)
    assert "too many connections" in suite.log.read_text(encoding="utf-8")


def test_six_hundred_calls_at_once_are_all_answered(suite):
    statuses = []

    def call():
        statuses.append(suite.call("slowEcho", {"milliseconds": 200, "text": "x"}).status_code)

    threads = [threading.Thread(target=call) for _ in range(600)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 600
    # What no worker can be had for in time is refused, and nothing is left unanswered.
    assert set(statuses) <= {200, 429, 503}, set(statuses)
    assert statuses.count(200) >= 300
    assert_all_serve(suite)


def test_the_limit_is_raised_as_far_as_the_system_allows(tmp_path):
    with conftest.started(tmp_path, "--no-functions",
                          limits=f"ulimit -Sn {FILES}; ulimit -Hn 4096") as suite:
        limits = subprocess.run(["cat", f"/proc/{suite.process.pid}/limits"], capture_output=True,
                                text=True, check=True).stdout
        [line] = [line for line in limits.splitlines() if line.startswith("Max open files")]
        assert line.split()[3:5] == ["4096", "4096"]
