"""What the suite counts, and the trace that a chain of calls and events shares."""

import re
import subprocess
import time

import conftest
import pytest
import requests

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
DOCUMENTS = f"/v1/projects/{conftest.PROJECT}/databases/(default)/documents"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    (folder / ".env").write_text(f"SAMPLE_OUTPUT={folder}/output\n", encoding="utf-8")
    with conftest.started(folder, "--executable", SAMPLE) as suite:
        yield suite


def metrics(suite):
    """The samples of /metrics by name and labels."""
    reply = requests.get(f"http://{suite.address('hub')}/metrics", timeout=10)
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    samples, types = {}, {}
    for line in reply.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"{name} is described twice"
            types[name] = kind
        elif not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            pairs = tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")))
            assert (name, pairs) not in samples, line
            samples[name, pairs] = float(value)
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in types or types[family] == "histogram"
    return samples


def value(samples, name, **labels):
    return samples.get((name, tuple(sorted(labels.items()))), 0)


def write(suite, path, headers=None):
    collection, document = path.split("/")
    reply = requests.post(
        f"http://{suite.address('firestore')}{DOCUMENTS}/{collection}",
        params={"documentId": document}, json={"fields": {}}, timeout=30,
        headers={"Authorization": "Bearer owner", **(headers or {})})
    assert reply.status_code == 200, reply.text


def test_calls_and_deliveries_are_counted_by_outcome(sample):
    for _ in range(3):
        sample.call("echo", 1)
    sample.call("failing", {"code": "NOT_FOUND"})
    sample.call("failing", {"code": "INTERNAL"})
    sample.call("crash", None)
    write(sample, "failOnce/a")
    write(sample, "failForGood/a")
    tries = "hearth_delivery_attempts_total"
    end = time.monotonic() + 30
    # The second try of `failOnce` comes a moment after the first.
    while not value(metrics(sample), tries, function="failOnce", state="succeeded"):
        assert time.monotonic() < end
    sample.settle()
    found = metrics(sample)
    ended = "hearth_invocations_total"
    assert value(found, ended, function="echo", outcome="ok") == 3
    assert value(found, ended, function="failing", outcome="refused") == 1
    assert value(found, ended, function="failing", outcome="failed") == 1
    assert value(found, ended, function="crash", outcome="crashed") == 1
    assert value(found, "hearth_worker_crashes_total", function="crash") == 1
    assert value(found, "hearth_worker_starts_total", function="echo") == 1
    assert value(found, "hearth_worker_crashes_total", function="echo") == 0
    assert value(found, tries, function="failOnce", state="pending") == 1
    assert value(found, tries, function="failOnce", state="succeeded") == 1
    assert value(found, tries, function="failForGood", state="dead") == 1
    assert value(found, "hearth_deliveries_pending", function="failOnce") == 0
    times = "hearth_invocation_duration_seconds"
    assert value(found, times + "_count", function="echo") == 3
    assert value(found, times + "_bucket", function="echo", le="+Inf") == 3
    assert 0 < value(found, times + "_sum", function="echo") < 60
    assert value(found, "hearth_commits_total") >= 2
    for name in ("hearth_connections", "hearth_connections_max", "hearth_storage_bytes",
                 "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds",
                 "process_start_time_seconds"):
        assert value(found, name) > 0, name


def test_what_is_not_settled_is_pending(sample):
    write(sample, "failAlways/a")
    found = metrics(sample)
    assert value(found, "hearth_deliveries_pending", function="failAlways") == 1


def test_the_commands_show_the_same_numbers(sample):
    sample.call("echo", 1)
    stats = {f["name"]: f for f in sample.hub("GET", "/hearth/v1/functions/stats").json()}
    assert stats["echo"]["outcomes"]["ok"] == stats["echo"]["invocations"]
    assert stats["echo"]["p50Seconds"] <= stats["echo"]["p99Seconds"]
    table = sample.cli("functions", "stats").stdout
    row = next(line.split() for line in table.splitlines() if line.startswith("echo "))
    assert row[1] == str(stats["echo"]["invocations"])
    assert next(line.split() for line in table.splitlines() if line.startswith("failing "))[2] == "1"
    top = subprocess.run(
        [conftest.hearth(), "top", "--every", "0.2", "--hub", sample.address("hub")],
        capture_output=True, text=True, timeout=60, check=False)
    assert top.returncode == 0 and "RUNS/S" in top.stdout and "echo" in top.stdout


def test_a_head_request_for_metrics_has_no_body(sample):
    reply = requests.head(f"http://{sample.address('hub')}/metrics", timeout=10)
    assert reply.status_code == 200 and reply.content == b""


def test_metrics_are_not_for_pages_of_other_sites(sample):
    reply = requests.get(f"http://{sample.address('hub')}/metrics", timeout=10,
                         headers={"Origin": "https://evil.example"})
    assert reply.status_code == 403


def traces(suite, *functions):
    """The traces of the last lines that functions have logged."""
    lines = suite.hub("GET", "/hearth/v1/logs?limit=1000").text.splitlines()
    entries = [conftest.json.loads(line) for line in lines]
    return {name: [e.get("trace") for e in entries
                   if e["function"] == name and "invocation" in e and "end" not in e] for name in functions}


def test_one_trace_shows_a_chain_of_events(sample):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    write(sample, "hop1/traced", {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    sample.settle()
    assert traces(sample, "hop1", "hop2", "hop3") == {
        "hop1": [trace], "hop2": [trace], "hop3": [trace]}
    write(sample, "hop1/own")
    sample.settle()
    found = traces(sample, "hop1", "hop2", "hop3")
    own = {name: seen[-1] for name, seen in found.items()}
    assert len(set(own.values())) == 1 and re.fullmatch("[0-9a-f]{32}", own["hop1"])
    assert own["hop1"] != trace


def test_a_call_without_a_trace_begins_one(sample):
    seen = {requests.get(sample.url("inspect"), timeout=30).json()["traceID"] for _ in range(3)}
    assert len(seen) == 3 and all(re.fullmatch("[0-9a-f]{32}", trace) for trace in seen)


def test_a_malformed_trace_is_replaced(sample):
    for parent in ("00-nonsense-01", f"00-{'A' * 32}-00f067aa0ba902b7-01", f"00-{'0' * 32}-00f067aa0ba902b7-01"):
        reply = requests.get(sample.url("inspect"), timeout=30, headers={"traceparent": parent})
        trace = reply.json()["traceID"]
        assert re.fullmatch("[0-9a-f]{32}", trace) and trace not in parent


def test_a_function_that_crashes_again_at_once_gets_no_second_report(sample):
    for _ in range(3):
        assert sample.call("trap", {"kind": "index"}).status_code == 500

    def logged():
        lines = sample.hub("GET", "/hearth/v1/logs?function=trap&limit=1000").text.splitlines()
        return [conftest.json.loads(line) for line in lines]

    def reported():
        return [e for e in logged() if "closure #1 in SampleFaults.trap" in e["message"]]

    # The callers did not wait for it.
    conftest.until(reported, "the first crash has no report")
    entries, reports = logged(), reported()
    ends = [e["message"] for e in entries if e["level"] == "critical"]
    assert len(reports) == 1 and len(ends) == 3
    assert "ended by signal" in ends[0]
    assert all("it crashed again" in end for end in ends[1:])


def fire(sample, name, *options):
    return sample.cli("fire", name, *options)


def test_fired_events_have_ids_and_traces_of_their_own(sample):
    for number in range(2):
        # It fails the first time that it sees an event.
        run = fire(sample, "failOnce", "--document", f"failOnce/fired{number}", "--data", "{}")
        assert run.returncode == 1 and "failed as asked" not in run.stdout
    seen = traces(sample, "failOnce")["failOnce"][-2:]
    assert len(set(seen)) == 2


def test_cloud_events_are_fired_from_a_file_and_refused_by_type(sample, tmp_path):
    functions = sample.hub("GET", "/hearth/v1/functions").json()
    event = tmp_path / "event.json"
    event.write_text('{"type": "com.example.signup", "data": {"a": 1}}', encoding="utf-8")
    run = fire(sample, "writeEvent", "--event", str(event))
    assert run.returncode == 0, run.stderr
    event.write_text('{"data": {"a": 1}}', encoding="utf-8")
    run = fire(sample, "writeEvent", "--event", str(event))
    assert run.returncode != 0 and "has no type" in run.stderr
    event.write_text("nonsense", encoding="utf-8")
    run = fire(sample, "writeEvent", "--event", str(event))
    assert run.returncode == 2 and "Correct it" in run.stderr
    run = fire(sample, "recordWrite", "--event", str(event.with_name("none.json")))
    assert run.returncode == 2 and "cannot be read" in run.stderr
    event.write_text("{}", encoding="utf-8")
    assert "--document PATH" in fire(sample, "recordWrite", "--event", str(event)).stderr
    assert {f["name"] for f in functions} >= {"writeEvent", "recordWrite"}


@pytest.mark.parametrize("name, way", [
    ("echo", "hearth call echo"), ("inspect", "curl "), ("countTask", "hearth enqueue countTask")])
def test_who_fires_what_takes_no_events_is_told_the_way_in(sample, name, way):
    run = fire(sample, name, "--document", "a/b", "--data", "{}")
    assert run.returncode == 1 and way in run.stderr
    other = sample.cli("call", name, "--data", "{}")
    assert "hearth fire" not in other.stderr
