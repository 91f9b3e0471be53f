"""Why a function failed, and the line in the log about each invocation."""

import json
import re
import urllib.error
import urllib.request

import pytest

from conftest import PROJECT, started_sample, until

HERE = r"Tests/SampleFunctions/\w+\.swift:\d+"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    with started_sample(tmp_path_factory.mktemp("failures")) as suite:
        yield suite


def write(sample, path):
    request = urllib.request.Request(
        f"http://{sample.address('firestore')}/v1/projects/{PROJECT}/databases/(default)/documents"
        f"/{path}", data=b'{"fields":{}}', method="PATCH",
        headers={"authorization": "Bearer owner"})
    urllib.request.urlopen(request, timeout=20).close()


def test_fire_says_what_the_handler_threw_and_where(sample):
    fired = sample.cli("fire", "failAlways", "--document", "failAlways/a", "--data", "{}")

    assert fired.returncode == 1
    assert "failAlways failed: PlainError" in fired.stderr
    assert re.search(rf"thrown at .*{HERE}", fired.stderr), fired.stderr


def test_an_event_keeps_what_the_handler_threw_and_where(sample):
    write(sample, "failWithoutRetry/a")
    sample.settle()
    events = json.loads(sample.cli("events", "list", "--json").stdout)
    event = next(e["id"] for e in events if e["function"] == "failWithoutRetry")

    shown = sample.cli("events", "show", event).stdout

    assert "The handler threw: PlainError" in shown
    assert re.search(rf"thrown at .*{HERE}", shown), shown


@pytest.mark.parametrize("options", [(), ("--stream",), ("--as", "tina"), ("--admin",)])
def test_call_says_what_the_log_knows_of_an_internal_error(sample, options):
    called = sample.cli("call", "failing", "--data", '{"code": "none", "message": "m"}', *options)

    assert called.returncode == 1
    assert called.stderr.startswith("INTERNAL: INTERNAL\nThe handler threw: PlainError")
    assert re.search(rf"thrown at .*{HERE}", called.stderr), called.stderr


def test_an_error_meant_for_the_client_stays_as_it_is(sample):
    called = sample.cli("call", "failing", "--data", '{"code": "NOT_FOUND", "message": "gone"}')

    assert called.stderr == "NOT_FOUND: gone\n"


def test_a_client_sees_no_more_than_in_production(sample):
    request = urllib.request.Request(
        sample.url("failing"), data=b'{"data":{"code":"none","message":"secret"}}',
        headers={"content-type": "application/json"})

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)

    answer = refused.value
    assert json.loads(answer.read()) == {"error": {"message": "INTERNAL", "status": "INTERNAL"}}
    assert not [name for name in answer.headers if name.lower().startswith("x-hearth")]


def lines(sample, *options):
    return sample.cli("logs", *options).stdout.splitlines()


def test_the_log_has_a_line_for_each_invocation_unless_it_is_quiet(sample):
    sample.cli("call", "echo", "--as", "tina", "--data", '{"text": "a"}')
    sample.cli("call", "echo", "--admin", "--data", '{"text": "a"}')
    write(sample, "failWithoutRetry/b")
    sample.settle()

    calls = [line for line in lines(sample, "echo") if "succeeded in " in line]
    assert any(re.search(r" INFO echo: succeeded in [\d.]+ ms  caller=tina invocation=", line)
               for line in calls), calls
    assert any("caller=administrator" in line for line in calls)
    failed = [line for line in lines(sample, "failWithoutRetry") if "failed with 500 in " in line]
    assert any('caller="created failWithoutRetry/b"' in line for line in failed), failed
    assert not [line for line in lines(sample, "--quiet") if " ms  " in line]


def test_a_flood_of_invocations_gets_a_line_that_counts_them(sample):
    for _ in range(60):
        request = urllib.request.Request(sample.url("count"), data=b'{"data":{}}',
                                         headers={"content-type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=20).close()
        except urllib.error.HTTPError as refused:
            refused.close()

    def counted():
        texts = lines(sample, "count")
        shown = len([line for line in texts if re.search(r" in [\d.]+ ms", line)])
        more = sum(int(n) for line in texts if "and more invocations" in line
                   for n in re.findall(r"(\d+) (?:succeeded|refused|failed)", line))
        return shown < 60 and shown + more == 60

    until(counted, "the lines do not add up to the invocations")


def test_after_a_jump_the_line_has_the_suites_time(tmp_path):
    with started_sample(tmp_path) as suite:
        suite.cli("clock", "advance", "24h")
        suite.cli("call", "echo", "--data", '{"text": "a"}')

        line = next(line for line in lines(suite, "echo") if "succeeded in" in line)
        assert re.search(r"suite-time=\d{4}-\d\d-\d\dT", line), line


def test_the_end_of_an_invocation_stands_after_its_own_lines(tmp_path):
    with started_sample(tmp_path) as suite:
        for number in range(10):
            assert suite.cli("call", "log", "--data", f'"line {number}"').returncode == 0
        until(lambda: lines_of(suite, "log").count("end") == 10,
              "the ends of ten invocations are not in the log")

        text = suite.cli("logs", "log", "--json").stdout
    kinds = {}
    for line in map(json.loads, text.splitlines()):
        # What a function prints names no invocation.
        if "invocation" in line:
            kinds.setdefault(line["invocation"], []).append("end" if "end" in line else "own")
    # Each of the ten invocations logs at least two lines.
    assert len(kinds) == 10
    for own in kinds.values():
        assert len(own) >= 3 and own.index("end") == len(own) - 1


def lines_of(suite, function):
    """The lines of a function in their order: "end" for the end of an invocation, else "own"."""
    text = suite.cli("logs", function, "--json").stdout
    return ["end" if "end" in json.loads(line) else "own" for line in text.splitlines()]
