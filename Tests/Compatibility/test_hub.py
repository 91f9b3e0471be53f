"""The hub and the functions' port as Firebase's own tools speak to them, and our control API."""

import base64
import json
import pathlib
import tempfile
import time

import conftest
import pytest
import requests

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
WRITTEN = "google.cloud.firestore.document.v1.written"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A suite of its own with the sample functions, and the file that they write to."""
    folder = tmp_path_factory.mktemp("hub")
    with conftest.started_sample(folder) as suite:
        yield suite


def hub(suite, method, path, headers=None, **options):
    headers = {"Authorization": f"Bearer {suite.token}", **(headers or {})}
    return suite.hub(method, path, headers=headers, **options)


def functions(suite, method, path, **options):
    url = f"http://{suite.address('functions')}{path}"
    return requests.request(method, url, timeout=60, **options)


def write(suite, path, n=1):
    reply = requests.patch(
        f"http://{suite.address('firestore')}/v1/projects/{conftest.PROJECT}"
        f"/databases/(default)/documents/{path}",
        json={"fields": {"n": {"integerValue": str(n)}}},
        headers={"Authorization": "Bearer owner"}, timeout=10)
    assert reply.status_code == 200, reply.text


def records(suite, document):
    lines = [line.split(" ") for line in suite.output.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line[2] == document]


def test_the_hub_describes_itself_and_the_emulators(sample):
    description = hub(sample, "GET", "/").json()
    assert set(description) == {"version", "origins", "pid", "host", "port"}
    assert description["origins"] == [f"http://{sample.address('hub')}"]
    assert description["pid"] == sample.process.pid

    emulators = hub(sample, "GET", "/emulators").json()
    assert {"hub", "firestore", "functions"} <= set(emulators)
    firestore = emulators["firestore"]
    assert firestore["name"] == "firestore"
    assert firestore["listen"] == [
        {"address": firestore["host"], "family": "IPv4", "port": firestore["port"]}]

    locator = pathlib.Path(tempfile.gettempdir()) / f"hub-{conftest.PROJECT}.json"
    assert {"version", "origins", "pid"} == set(json.loads(locator.read_text(encoding="utf-8")))


def test_an_export_asked_for_by_a_page_does_nothing(sample, tmp_path):
    target = tmp_path / "export"
    for origin in ("https://evil.example", "http://localhost:3000"):
        reply = hub(sample, "POST", "/_admin/export", json={"path": str(target)},
                    headers={"Origin": origin})
        assert reply.status_code == 403
    assert not target.exists()

    reply = hub(sample, "POST", "/_admin/export", json={"path": str(target)})
    assert reply.status_code == 200 and reply.json() == {"message": "OK"}
    assert target.exists()


def test_disabled_triggers_miss_what_happens_and_are_back_at_once(sample):
    write(sample, "things/before")
    began = time.monotonic()
    reply = hub(sample, "PUT", "/functions/disableBackgroundTriggers")
    assert reply.status_code == 200 and reply.json() == {"enabled": False}
    write(sample, "things/during")
    sample.settle()
    reply = hub(sample, "PUT", "/functions/enableBackgroundTriggers")
    assert reply.json() == {"enabled": True}
    assert time.monotonic() - began < 30
    write(sample, "things/after")
    sample.settle()

    assert [len(records(sample, name)) for name in ("before", "during", "after")] == [1, 0, 1]


def test_backends_list_the_functions_for_pages_and_no_setting(sample):
    reply = functions(sample, "GET", "/backends", headers={"Origin": "http://localhost:4000"})

    assert reply.status_code == 200
    assert reply.headers["Access-Control-Allow-Origin"] == "http://localhost:4000"
    [backend] = reply.json()["backends"]
    assert backend["env"] == {}
    triggers = {trigger["name"]: trigger for trigger in backend["functionTriggers"]}
    assert triggers["echo"]["httpsTrigger"] == {}
    assert triggers["recordWrite"]["eventTrigger"]["eventType"] == WRITTEN
    assert triggers["recordWrite"]["id"] == "us-central1-recordWrite"
    preflight = functions(sample, "OPTIONS", "/backends", headers={
        "Origin": "http://localhost:4000", "Access-Control-Request-Method": "GET"})
    assert preflight.status_code == 204


def event(sample, key, document, **options):
    name = f"projects/{conftest.PROJECT}/databases/(default)/documents/things/{document}"
    headers = {
        "ce-specversion": "1.0", "ce-id": f"e-{document}", "ce-type": WRITTEN,
        "ce-source": f"//firestore.googleapis.com/projects/{conftest.PROJECT}/databases/(default)",
        "ce-subject": f"documents/things/{document}", "ce-time": "2026-11-21T07:00:00Z",
        "ce-project": conftest.PROJECT, "ce-location": "us-central1", "ce-database": "(default)",
        "ce-namespace": "(default)", "ce-document": f"things/{document}",
        "Content-Type": "application/json", **options.pop("headers", {})}
    body = {"value": {"name": name, "fields": {"n": {"integerValue": "1"}},
                      "createTime": "2026-11-21T07:00:00Z", "updateTime": "2026-11-21T07:00:00Z"}}
    return functions(sample, "POST", f"/functions/projects/{conftest.PROJECT}/triggers/{key}",
                     data=options.pop("data", json.dumps(body)), headers=headers)


def test_an_event_that_another_emulator_posts_runs_its_function(sample):
    for key in ("us-central1-recordWrite", "us-central1-recordWrite-0",
                "us-central1-recordWrite-12-channel"):
        reply = event(sample, key, key)
        assert reply.status_code < 300, reply.text
        assert len(records(sample, key)) == 1


def test_an_unknown_trigger_is_404_with_the_names_and_a_disabled_one_204(sample):
    for key in ("us-central1-nonsense", "us-central1-recordWriteX", "us-central1-echo",
                "us-central1-recordWrite-x"):
        reply = event(sample, key, "unknown")
        assert reply.status_code == 404
        assert reply.text.startswith(f"Function {key} does not exist, valid functions are: ")
        assert "recordWrite" in reply.text
    hub(sample, "PUT", "/functions/disableBackgroundTriggers")
    assert event(sample, "us-central1-recordWrite", "disabled").status_code == 204
    hub(sample, "PUT", "/functions/enableBackgroundTriggers")
    assert records(sample, "disabled") == records(sample, "unknown") == []


def test_a_page_of_another_site_can_neither_post_events_nor_control(sample):
    evil = {"Origin": "https://evil.example"}
    assert event(sample, "us-central1-recordWrite", "evil", headers=evil).status_code == 403
    for method, path in (("PUT", "/functions/disableBackgroundTriggers"),
                         ("POST", "/hearth/v1/deployments"), ("GET", "/hearth/v1/logs"),
                         ("POST", "/hearth/v1/clock"), ("DELETE", "/hearth/v1/functions")):
        assert hub(sample, method, path, headers=evil).status_code == 403
        host = {"Host": "evil.example"}
        assert hub(sample, method, path, headers=host).status_code == 403
    assert records(sample, "evil") == []


def test_events_for_many_are_acknowledged_before_they_run(sample):
    path = f"/functions/projects/{conftest.PROJECT}/trigger_multicast"
    created = {"eventId": "1", "eventType": "providers/firebase.auth/eventTypes/user.create",
               "data": {"uid": "tina"}}
    reply = functions(sample, "POST", path, json=created)
    assert reply.status_code == 200 and reply.json() == {"status": "multicast_acknowledged"}
    cloud = {"specversion": "1.0", "id": "2", "source": "//storage", "data": {"bucket": "b"},
             "type": "google.cloud.storage.object.v1.finalized"}
    reply = functions(sample, "POST", path, data=json.dumps(cloud),
                      headers={"Content-Type": "application/cloudevents+json"})
    assert reply.json() == {"status": "multicast_acknowledged"}
    assert functions(sample, "POST", path, json={"no": "type"}).status_code == 400


def test_time_jumps_over_retries_and_never_back(sample):
    before = hub(sample, "GET", "/hearth/v1/clock").json()
    write(sample, "failAlways/late")
    began = time.monotonic()
    reply = hub(sample, "POST", "/hearth/v1/clock", json={"advanceSeconds": 3 * 86400})
    assert reply.status_code == 200, reply.text
    # The machine's time goes on while the suite's jumps.
    assert reply.json()["aheadSeconds"] >= 3 * 86400 - 1 - (time.monotonic() - began)
    assert reply.json()["now"] > before["now"]
    assert time.monotonic() - began < 50
    settled = hub(sample, "GET", "/hearth/v1/events?function=failAlways").json()
    assert [found["state"] for found in settled] in (["failed"], ["dead"])
    for bad in ({"advanceSeconds": -1}, {"to": "2020-01-01T00:00:00Z"}, {"to": "soon"}, {},
                {"advanceSeconds": 1, "to": "2030-01-01T00:00:00Z"}):
        assert hub(sample, "POST", "/hearth/v1/clock", json=bad).status_code == 400

    # The dead one is retried, discarded and forgotten.
    assert sample.cli("events", "show", settled[0]["id"]).stdout.startswith("event ")
    reply = hub(sample, "POST", "/hearth/v1/events/discard")
    assert reply.status_code == 400
    gone = sample.cli("events", "discard", settled[0]["id"])
    assert gone.returncode == 0, gone.stderr
    assert hub(sample, "GET", f"/hearth/v1/events/{settled[0]['id']}").status_code == 404


def test_faults_are_set_shown_and_cleared(sample):
    assert hub(sample, "GET", "/hearth/v1/faults").json() is None
    done = sample.cli("faults", "set", "--seed", "7", "--duplicates", "1", "--reordering")
    assert done.returncode == 0 and "--seed 7" in done.stdout
    assert hub(sample, "GET", "/hearth/v1/faults").json() == {
        "seed": 7, "duplicates": 1, "drops": 0, "reordering": True}
    write(sample, "things/twice")
    sample.settle()
    assert len(records(sample, "twice")) == 2
    assert hub(sample, "PUT", "/hearth/v1/faults", json={"seed": 1, "drops": 2}).status_code == 400
    assert hub(sample, "DELETE", "/hearth/v1/faults").status_code == 200
    assert hub(sample, "GET", "/hearth/v1/faults").json() is None


@pytest.mark.parametrize("flags, tried", [((), 1), (("--unordered-events",), 2)])
def test_an_event_waits_behind_a_retry_of_its_document_unless_told_not_to(tmp_path, flags, tried):
    with conftest.started(tmp_path, "--executable", SAMPLE, *flags) as suite:
        url = (f"http://{suite.address('firestore')}/v1/projects/{conftest.PROJECT}"
               "/databases/(default)/documents/failAlways/one")
        write(suite, "failAlways/one")
        assert requests.delete(
            url, headers={"Authorization": "Bearer owner"}, timeout=10).status_code == 200
        write(suite, "failAlways/one")
        suite.settle()
        events = hub(suite, "GET", "/hearth/v1/events?function=failAlways").json()
        assert len(events) == 2
        assert sum(event["attempts"] > 0 for event in events) == tried


@pytest.mark.parametrize("method, query", [
    ("POST", "settle?timeoutSeconds=nan"), ("POST", "settle?timeoutSeconds=inf"),
    ("POST", "settle?timeoutSeconds=-1"), ("POST", "settle?timeoutSeconds=soon"),
    ("GET", "logs?limit=-1"), ("GET", "logs?limit=many"), ("GET", "events?limit=0"),
    ("GET", "events?limit=99999999999999999999"),
])
def test_a_strange_number_is_refused_with_its_bounds(sample, method, query):
    reply = hub(sample, method, f"/hearth/v1/{query}")
    assert reply.status_code == 400
    assert "give " in reply.json()["error"]["message"]


def test_the_log_of_no_function_is_refused_with_the_functions_there_are(sample):
    shown = sample.cli("logs", "nosuch")
    assert shown.returncode != 0 and "recordWrite" in shown.stderr


def test_an_event_names_the_trace_of_its_log_lines(sample):
    write(sample, "things/traced")
    sample.settle()
    events = hub(sample, "GET", "/hearth/v1/events?function=recordWrite&limit=100").json()
    key = next(event["id"] for event in events if event["document"] == "things/traced")
    trace = hub(sample, "GET", f"/hearth/v1/events/{key}").json()["trace"]
    lines = hub(sample, "GET", f"/hearth/v1/logs?trace={trace}").text.splitlines()
    assert lines and all(json.loads(line)["trace"] == trace for line in lines)
    assert hub(sample, "GET", "/hearth/v1/logs?trace=0").text == ""


def test_changes_after_a_commit_are_listed(sample):
    def changes(after=None):
        query = "" if after is None else f"?after={after}"
        reply = hub(sample, "GET", f"/hearth/v1/changes{query}")
        assert reply.status_code == 200
        return reply.json()

    sample.settle()
    start = changes()
    assert start["changes"] == [] and start["isComplete"]
    write(sample, "silent/changed")
    later = changes(start["sequence"])
    assert {"path": "silent/changed", "kind": "created"} in later["changes"]
    assert later["isComplete"] and later["sequence"] > start["sequence"]
    assert changes(later["sequence"])["changes"] == []
    # A commit of the future: of a suite that has lost its data since.
    assert not changes(later["sequence"] + 1000)["isComplete"]
    assert hub(sample, "GET", "/hearth/v1/changes?after=x").status_code == 400


def test_logs_are_filtered_by_level_and_time(sample):
    write(sample, "things/logged")
    sample.settle()
    reply = hub(sample, "GET", "/hearth/v1/logs?function=recordWrite&level=info")
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert lines and all(line["function"] == "recordWrite" for line in lines)
    assert hub(sample, "GET", "/hearth/v1/logs?function=recordWrite&level=error").text == ""
    assert hub(sample, "GET", "/hearth/v1/logs?since=2999-01-01T00:00:00Z").text == ""
    last = lines[-1]["time"]
    since = hub(sample, "GET", f"/hearth/v1/logs?function=recordWrite&since={last}").text
    assert json.loads(since.splitlines()[-1]) == lines[-1]
    assert hub(sample, "GET", "/hearth/v1/logs?level=loud").status_code == 400
    assert hub(sample, "GET", "/hearth/v1/logs?since=soon").status_code == 400


def test_protobuf_that_came_as_text_is_decoded(sample):
    # DocumentEventData { value { name: "…/things/text" fields { "n": 1 } } }, in base64.
    name = f"projects/{conftest.PROJECT}/databases/(default)/documents/things/text".encode()

    def field(number, body):
        return bytes([number << 3 | 2, len(body)]) + body

    document = field(1, name) + field(2, field(1, b"n") + field(2, b"\x10\x01"))
    data = field(1, document) if len(document) < 128 else (
        bytes([10, len(document) & 127 | 128, len(document) >> 7]) + document)
    reply = event(sample, "us-central1-recordWrite", "text", data=base64.b64encode(data),
                  headers={"Content-Type": "application/protobuf"})

    assert reply.status_code < 300, reply.text
    assert len(records(sample, "text")) == 1


def test_the_doctor_tells_each_setting_and_what_is_stuck(sample):
    report = sample.cli("doctor").stdout
    rows = {line.split("  ")[0]: line for line in report.splitlines()}
    assert "v1alpha1" in rows["worker protocol"] and " ok " in rows["worker protocol"]
    assert "takes writes" in rows["storage"]
    assert "written things/{thingId}" in rows["recordWrite"]
    assert {"swift", "libraries", "project", "data folder", "version", "deployment",
            "failed events", "dead events", "stuck events"} <= set(rows)

    write(sample, "failWithoutRetry/doctor")
    sample.settle()
    sick = sample.cli("doctor")
    assert sick.returncode == 1
    assert "hearth events retry --all --state failed" in sick.stdout
    retried = sample.cli("events", "retry", "--all", "--state", "failed")
    assert retried.stdout.endswith("pending again\n"), retried.stderr
    sample.settle()
    assert sample.cli("events", "discard", "--all", "--state", "failed").returncode == 0
