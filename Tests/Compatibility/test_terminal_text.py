"""Names, paths and messages that others choose cannot steer a terminal or forge a line."""

import json
import subprocess

import conftest
import pytest
from conftest import PROJECT, client, started

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
ATTACK = "x\r\n07:00:00.000 ERROR hub: forged\x1b[2J\x7f\x9b31m\u202e\u2066\u200f\u061c\u2028end"
CONTROLS = set("\r\x1b\x7f\x9b\u202e\u2066\u200f\u061c\u2028\x07")
# Firestore's ids may hold any of these but the line ends that ATTACK has.
DOCUMENT = "d\x1b[2J\x9b31m\u202e\u2066\x7f"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A suite whose events, errors and log lines hold what terminals act upon."""
    folder = tmp_path_factory.mktemp("attacked")
    with open(folder / "stderr", "w", encoding="utf-8") as errors, started(
            folder, "--executable", SAMPLE, "--log-format", "text", stderr=errors) as suite:
        suite.log = folder / "stderr"
        database = client(suite)
        database.collection("things").document(DOCUMENT).set({"n": 1})
        database.collection("failAlways").document(DOCUMENT).set({"n": 1})
        assert suite.call("log", ATTACK).status_code == 200
        yield suite


def assert_safe(text):
    assert not CONTROLS & set(text), ascii(text)


def lines_that_begin_as_forged(text):
    return [line for line in text.splitlines() if line.startswith("07:00:00.000")]


def test_the_suites_own_log_is_safe(attacked):
    conftest.until(lambda: "forged" in attacked.log.read_text("utf-8"), "nothing was logged")
    with open(attacked.log, encoding="utf-8", newline="") as file:
        text = file.read()
    assert_safe(text)
    assert not lines_that_begin_as_forged(text)
    assert r"\u{1B}[2J" in text and r"\u{202E}" in text


@pytest.mark.parametrize("command", [
    ["events", "list"], ["logs", "log"], ["functions", "list"], ["functions", "stats"], ["doctor"],
    ["rules", "explain"], ["indexes"], ["top"],
])
def test_what_commands_print_is_safe(attacked, command):
    run = attacked.cli(*command)
    assert_safe(run.stdout + run.stderr)
    assert not lines_that_begin_as_forged(run.stdout + run.stderr)


def test_one_event_is_shown_safely(attacked):
    events = attacked.hub("GET", "/hearth/v1/events").json()
    assert any("\x1b" in event["document"] for event in events)
    for event in events:
        run = attacked.cli("events", "show", event["id"])
        assert run.returncode == 0, run.stderr
        assert_safe(run.stdout)


@pytest.mark.parametrize("command", [["events", "list"], ["logs", "log"]])
def test_json_is_safe_and_means_the_same(attacked, command):
    run = attacked.cli(*command, "--json")
    assert_safe(run.stdout)
    # `str.splitlines` would split at what JSON may hold.
    values = [json.loads(line) for line in run.stdout.strip().split("\n")]
    texts = json.dumps(values, ensure_ascii=False)
    assert json.dumps(ATTACK if command[0] == "logs" else DOCUMENT, ensure_ascii=False)[1:-1] in texts


def test_the_error_of_a_call_is_safe(attacked):
    run = attacked.cli("call", "failing", "--data",
                       json.dumps({"code": "ABORTED", "message": ATTACK, "details": ATTACK}))
    assert run.returncode == 1
    assert_safe(run.stderr)
    assert not lines_that_begin_as_forged(run.stderr)
    assert run.stderr.startswith("ABORTED: x")


def test_the_result_of_a_call_is_safe_and_means_the_same(attacked):
    run = attacked.cli("call", "echo", "--data", json.dumps(ATTACK))
    assert_safe(run.stdout)
    assert json.loads(run.stdout) == ATTACK


def test_a_wrong_argument_is_shown_safely(tmp_path):
    run = subprocess.run(
        [conftest.hearth(), "start", "--project", PROJECT, "--nonsense\x1b[2J\u202e"],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert run.returncode == 2
    assert_safe(run.stderr)
