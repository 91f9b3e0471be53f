"""The suite's clock as functions see it, in workers that were started before and after its jumps."""

import datetime

import pytest
import requests
from conftest import started_sample


@pytest.fixture()
def suite(tmp_path):
    with started_sample(tmp_path) as suite:
        yield suite


def call(suite, name, data=None):
    reply = suite.call(name, data)
    assert reply.status_code == 200, reply.text
    return reply.json()["result"]


def seconds_ahead(suite):
    """The lead of a function's clock over the machine's."""
    time = datetime.datetime.fromisoformat(call(suite, "currentTime"))
    return (time - datetime.datetime.now(datetime.timezone.utc)).total_seconds()


def test_functions_follow_the_clock_in_running_and_in_new_workers(suite):
    assert abs(seconds_ahead(suite)) < 60
    assert suite.cli("clock", "advance", "2h").returncode == 0
    assert 7140 < seconds_ahead(suite) < 7260
    # The worker of another function is new, and has the time from its first request on.
    call(suite, "enqueueTask", {"job": {"text": "soon"}})
    suite.settle()
    assert "soon" in suite.output.read_text()


def test_a_task_of_a_function_waits_for_its_time_by_the_suite_after_a_jump(suite):
    assert suite.cli("clock", "advance", "2h").returncode == 0
    order = {"job": {"text": "late"}, "id": "late", "delayMilliseconds": 3_600_000}
    assert call(suite, "enqueueTask", order) == "late"
    suite.settle()
    assert "late" not in suite.output.read_text()
    assert suite.cli("clock", "advance", "61m").returncode == 0
    assert suite.output.read_text().count("late late") == 1


def test_a_negative_jump_is_refused_also_where_it_looks_like_a_request_for_help(suite):
    for jump in ("-1h", "-30s"):
        refused = suite.cli("clock", "advance", jump)
        assert refused.returncode == 2
        assert f"{jump} would turn the time back" in refused.stderr


def test_a_caller_cannot_move_the_clock_of_functions(suite):
    reply = requests.post(suite.url("currentTime"), json={"data": None}, timeout=10,
                          headers={"x-hearth-clock-lead": "7200000000"})
    assert reply.status_code == 200
    assert abs(seconds_ahead(suite)) < 60
