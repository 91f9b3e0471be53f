"""Logs that nobody reads: they hold up neither events nor calls nor the stop."""

import fcntl
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

import conftest
import pytest
from conftest import PROJECT, client, started, until

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
# More than a pipe holds and than the suite keeps of a log that nobody reads.
FLOOD = {"lines": 1500, "lineBytes": 2000}
STOP_SECONDS = 2


def assert_everything_works(suite):
    """Calls are answered and events delivered, whatever becomes of the log."""
    assert suite.call("echo", "hello").json() == {"result": "hello"}
    database = client(suite)
    for number in range(20):
        database.document(f"things/{number}").set({"n": number})
    suite.settle()
    events = suite.hub("GET", "/hearth/v1/events", params={"function": "recordWrite"}).json()
    assert [event["state"] for event in events] == ["succeeded"] * 20 or events == []


def stop(process):
    began = time.monotonic()
    process.terminate()
    assert process.wait(timeout=STOP_SECONDS) == 0
    return time.monotonic() - began


def messages(text):
    return [json.loads(line)["message"] for line in text.splitlines() if line.startswith("{")]


def flooded_numbers(text):
    """The numbers of the flood's lines, in the order in which they were written."""
    return [int(words[0]) for message in messages(text)
            if len(words := message.split(" ")) == 2 and words[0].isdigit()]


def test_a_log_that_nobody_reads_holds_up_neither_events_nor_the_stop(tmp_path):
    with started(tmp_path, "--executable", SAMPLE, stderr=subprocess.PIPE) as suite:
        assert suite.call("flood", FLOOD).json() == {"result": FLOOD["lines"]}
        assert_everything_works(suite)
        stop(suite.process)
        # What the pipe took before it was full.
        numbers = flooded_numbers(suite.process.stderr.read())
        assert numbers and numbers == list(range(len(numbers)))


def test_whoever_reads_the_log_again_learns_how_many_lines_were_dropped(tmp_path):
    with started(tmp_path, "--executable", SAMPLE, stderr=subprocess.PIPE) as suite:
        assert suite.call("flood", FLOOD).json() == {"result": FLOOD["lines"]}
        # The suite may read a worker's output later than its answer.
        last = f'"message":"{FLOOD["lines"] - 1} x'
        until(lambda: last in suite.hub(
            "GET", "/hearth/v1/logs", params={"function": "flood", "limit": 1, "quiet": "true"}).text,
            "the log lacks the flood's last line")
        assert suite.call("log", "the end").status_code == 200
        text = ""
        while '"the end"' not in text:
            line = suite.process.stderr.readline()
            assert line, text[-1000:]
            text += line
        numbers = flooded_numbers(text)
        [report] = [m for m in messages(text) if "dropped because they were not read" in m]
        assert numbers == sorted(numbers) and numbers[0] == 0
        assert numbers[-1] == FLOOD["lines"] - 1
        assert int(report.split(" ")[0]) >= FLOOD["lines"] - len(numbers) > 0
        # The rest goes to the test's own output, for the case that the stop fails.
        rest = threading.Thread(target=shutil.copyfileobj, args=(suite.process.stderr, sys.stderr))
        rest.start()
    rest.join()


def test_a_reader_that_has_gone_does_not_end_the_suite(tmp_path):
    with started(tmp_path, "--executable", SAMPLE, stderr=subprocess.PIPE) as suite:
        suite.process.stderr.close()
        assert suite.call("flood", FLOOD).json() == {"result": FLOOD["lines"]}
        assert_everything_works(suite)
        stop(suite.process)


def test_a_stdout_that_nobody_reads_does_not_hold_up_the_stop(tmp_path):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writer, True)
    data = tmp_path / "data"
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [conftest.hearth(), "start", "--json", "--project", PROJECT, "--data", str(data),
             "--executable", SAMPLE,
             *[flag for name in ("hub", "functions", "firestore", "database", "auth", "tasks", "vectors", "ui")
               for flag in (f"--{name}-port", "0")]],
            stdout=writer, stderr=log, cwd=tmp_path)
    try:
        server = pathlib.Path(data / "server.json")
        until(server.exists, "the suite did not start")
        suite = conftest.Suite(
            process, {**json.loads(server.read_text(encoding="utf-8")), "serverFile": str(server)})
        until(lambda: suite.hub("GET", "/hearth/v1/functions").json(), "nothing was deployed")
        assert_everything_works(suite)
        stop(process)
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)


def test_a_follower_that_reads_nothing_holds_up_neither_events_nor_the_stop(tmp_path):
    with started(tmp_path, "--executable", SAMPLE, stderr=subprocess.DEVNULL) as suite:
        host, port = suite.address("hub").split(":")
        with socket.socket() as follower:
            follower.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            follower.connect((host, int(port)))
            follower.sendall(
                "GET /hearth/v1/logs?follow=true HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {suite.token}\r\n\r\n".encode())
            for _ in range(2):
                assert suite.call("flood", FLOOD).json() == {"result": FLOOD["lines"]}
            assert follower.recv(15) == b"HTTP/1.1 200 OK"
            assert_everything_works(suite)
            stop(suite.process)


def test_exec_ends_though_nobody_reads_its_log(tmp_path):
    script = """if True:
        import json, os, urllib.request
        def call(name, data):
            url = f"http://{os.environ['FUNCTIONS_EMULATOR_HOST']}/demo-psst/us-central1/{name}"
            body = json.dumps({"data": data}).encode()
            headers = {"content-type": "application/json"}
            with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
                print(json.load(reply)["result"], flush=True)
        call("flood", {"lines": 1500, "lineBytes": 2000})
    """
    with subprocess.Popen(
            [conftest.hearth(), "exec", "--project", PROJECT, "--verbose", "--executable", SAMPLE,
             "--", sys.executable, "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, text=True) as process:
        try:
            assert process.wait(timeout=60) == 0
            assert process.stdout.read() == "1500\n"
        finally:
            process.kill()


@pytest.fixture
def unread_terminal():
    """A terminal that is stopped, as by Ctrl-S, and the other end of it."""
    keyboard, screen = os.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    termios.tcflow(screen, termios.TCOOFF)
    yield screen
    os.close(keyboard)
    os.close(screen)


def test_a_stopped_terminal_holds_up_nothing(tmp_path, unread_terminal):
    with started(tmp_path, "--executable", SAMPLE, stderr=unread_terminal) as suite:
        assert suite.call("flood", FLOOD).json() == {"result": FLOOD["lines"]}
        assert_everything_works(suite)
        stop(suite.process)
