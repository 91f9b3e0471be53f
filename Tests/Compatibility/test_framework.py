"""A functions binary as a Functions Framework: the conformance cases, from our own client.

The cases are those of googlecloudplatform/functions-framework-conformance, whose client is a Go
program. The CloudEvents are built by CloudEvents' own SDK for Python.
"""

import base64
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest
import requests
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from conftest import CONFIGURATION, ROOT, free_port

BINARY = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
TIME = "2020-09-29T11:32:00Z"
EVENT_ID = "aaaaaa-1111-bbbb-2222-cccccccccccc"


class Worker:
    """A running binary, its address and what its functions wrote."""

    def __init__(self, process, port, output):
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self.output = output

    def records(self):
        return self.output.read_text().splitlines() if self.output.exists() else []

    def post(self, body=None, path="/", timeout=30, **options):
        return requests.post(f"{self.url}{path}", data=body, timeout=timeout, **options)


@contextlib.contextmanager
def worker(folder, target=None, **settings):
    """A binary that listens on a port of its own, ended by SIGTERM."""
    port = free_port()
    output = folder / "function_output.json"
    environment = {"PATH": os.environ["PATH"], "PORT": str(port), "SAMPLE_OUTPUT": str(output),
                   "LOG_LEVEL": "debug"}
    if target:
        environment["FUNCTION_TARGET"] = target
    process = subprocess.Popen(
        [BINARY], env=environment | settings, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            if "The worker listens" in line:
                break
        yield Worker(process, port, output)
    finally:
        process.terminate()
        assert process.wait(timeout=15) == 0


def written_event(worker):
    """The event that `writeEvent` was given, its data as JSON where it is."""
    [line] = worker.records()
    event = json.loads(line)
    event["data"] = json.loads(base64.b64decode(event.pop("data_base64")))
    return event


# HTTP and typed functions


def test_http_the_function_gets_the_body(tmp_path):
    with worker(tmp_path, "writeBody", FUNCTION_SIGNATURE_TYPE="http") as framework:
        reply = framework.post(json.dumps({"res": "PASS"}), path="/any/path?q=1")

        assert reply.status_code == 200, reply.text
        assert [json.loads(line) for line in framework.records()] == [{"res": "PASS"}]


def test_typed_json_goes_in_and_comes_out(tmp_path):
    with worker(tmp_path, "wrapTyped", FUNCTION_SIGNATURE_TYPE="typed") as framework:
        message = {"message": "Hello, wörld!", "n": 1.5, "list": [True, None]}
        reply = framework.post(json.dumps(message))

        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("application/json")
        assert "etag" not in reply.headers
        assert reply.json() == {"payload": message}
        assert framework.post("{").status_code == 400


@pytest.mark.parametrize("path", ["/robots.txt", "/favicon.ico"])
def test_what_browsers_ask_for_by_themselves_is_not_there(tmp_path, path):
    with worker(tmp_path, "wrapTyped") as framework:
        assert requests.get(framework.url + path, timeout=10).status_code == 404


def test_ten_requests_run_at_once(tmp_path):
    with worker(tmp_path, "meet") as framework:
        body = json.dumps({"people": 10})
        with concurrent.futures.ThreadPoolExecutor(10) as people:
            replies = list(people.map(lambda _: framework.post(body), range(10)))

        assert [reply.json() for reply in replies] == [10] * 10


# CloudEvents, and the events of the first generation that become them


def legacy(event_type, resource, data, **more):
    return {"eventId": EVENT_ID, "timestamp": TIME, "eventType": event_type,
            "resource": resource, "data": data, **more}


def with_context(event_type, resource, data):
    event = legacy(event_type, resource, data)
    return {"data": event.pop("data"), "context": event}


def document(fields):
    return {"name": DOCUMENT, "fields": fields, "createTime": "2020-04-23T09:58:53.211035Z",
            "updateTime": "2020-04-23T12:00:27.247187Z"}


DOCUMENT = "projects/project-id/databases/(default)/documents/gcf-test/2Vm2mI1d0wIaK2Waj5to"
DATABASE_TYPE = "providers/google.firebase.database/eventTypes/ref"
USER = {"email": "test@nowhere.com", "uid": "UUpby3s4spZre6kHsgVSPetzQ8l2",
        "providerData": [{"email": "test@nowhere.com", "providerId": "password"}]}
SIMPLE = {"oldValue": document({"count": {"integerValue": "3"}}),
          "updateMask": {"fieldPaths": ["count"]},
          "value": document({"count": {"integerValue": "4"}})}
COMPLEX = {"oldValue": {}, "updateMask": {}, "value": document({
    "arrayValue": {"arrayValue": {"values": [{"integerValue": "1"}, {"integerValue": "2"}]}},
    "booleanValue": {"booleanValue": True}, "doubleValue": {"doubleValue": 5.5},
    "geoPointValue": {"geoPointValue": {"latitude": 51.4543, "longitude": -0.9781}},
    "integerValue": {"integerValue": "9007199254740993"}, "nullValue": {"nullValue": None},
    "mapValue": {"mapValue": {"fields": {"field1": {"stringValue": "x"}}}},
    "referenceValue": {"referenceValue": DOCUMENT}, "stringValue": {"stringValue": "text"},
    "timestampValue": {"timestampValue": "2020-04-23T14:23:53.241Z"}})}
PUBSUB = "type.googleapis.com/google.pubsub.v1.PubsubMessage"
TOPIC = {"service": "pubsub.googleapis.com", "name": "projects/sample-project/topics/gcf-test",
         "type": PUBSUB}
OBJECT = {"bucket": "some-bucket", "contentType": "text/plain", "generation": "1587627537231057",
          "kind": "storage#object", "name": "folder/Test.cs", "size": "352"}


def database(number, change, data, delta, domain="firebaseio.com", location="us-central1"):
    data = {"data": data, "delta": delta}
    return (f"database {number}",
            legacy(f"{DATABASE_TYPE}.{change}", "projects/_/instances/my-id/refs/gcf-test/xyz",
                   data, domain=domain, params={"child": "xyz"}, auth={"admin": True}),
            "google.firebase.database.ref.v1."
            + {"write": "written", "create": "created", "update": "updated",
               "delete": "deleted"}[change],
            f"//firebasedatabase.googleapis.com/projects/_/locations/{location}/instances/my-id",
            "refs/gcf-test/xyz", data)


def message(number, data):
    sent = {"@type": PUBSUB, "attributes": {"attr1": "attr1-value"}, "data": data}
    return (f"pubsub {number}", with_context("google.pubsub.topic.publish", TOPIC, sent),
            "google.cloud.pubsub.topic.v1.messagePublished",
            "//pubsub.googleapis.com/projects/sample-project/topics/gcf-test", None,
            {"message": sent | {"messageId": EVENT_ID, "publishTime": TIME}})


# name, event of the first generation, and of the CloudEvent type, source, subject and data
EVENTS = [
    ("auth",
     legacy("providers/firebase.auth/eventTypes/user.create", "projects/my-project-id",
            USER | {"metadata": {"createdAt": "2020-05-26T10:42:27Z",
                                 "lastSignedInAt": "2020-10-24T11:00:00Z"}}),
     "google.firebase.auth.user.v1.created",
     "//firebaseauth.googleapis.com/projects/my-project-id",
     "users/UUpby3s4spZre6kHsgVSPetzQ8l2",
     USER | {"metadata": {"createTime": "2020-05-26T10:42:27Z",
                          "lastSignInTime": "2020-10-24T11:00:00Z"}}),
    database(1, "write", None, {"grandchild": "other"}),
    database(2, "write", {"grandchild": "other"}, {"grandchild": "other changed"}),
    database(3, "write", {"grandchild": "other"}, None),
    database(4, "create", None, "value"),
    database(5, "update", {"a": 1}, {"a": 2, "b": {"c": [1, 2]}}),
    database(6, "write", None, 10),
    database(7, "write", "text", True, "europe-west1.firebasedatabase.app", "europe-west1"),
    database(8, "write", {}, {"deep": {"er": None}}),
    database("delete", "delete", {"grandchild": "other"}, None),
    ("firestore simple",
     legacy("providers/cloud.firestore/eventTypes/document.write", DOCUMENT, SIMPLE,
            params={"doc": "2Vm2mI1d0wIaK2Waj5to"}),
     "google.cloud.firestore.document.v1.written",
     "//firestore.googleapis.com/projects/project-id/databases/(default)",
     "documents/gcf-test/2Vm2mI1d0wIaK2Waj5to", SIMPLE),
    ("firestore complex",
     legacy("providers/cloud.firestore/eventTypes/document.create", DOCUMENT, COMPLEX),
     "google.cloud.firestore.document.v1.created",
     "//firestore.googleapis.com/projects/project-id/databases/(default)",
     "documents/gcf-test/2Vm2mI1d0wIaK2Waj5to", COMPLEX),
    message("text", base64.b64encode(b"test message 3").decode()),
    message("binary", base64.b64encode(b"\x01\x02\x03\x00\xff").decode()),
    ("pubsub legacy",
     {"subscription": "projects/p/subscriptions/s",
      "message": {"messageId": EVENT_ID, "publishTime": TIME, "data": "eA=="}},
     "google.cloud.pubsub.topic.v1.messagePublished",
     "//pubsub.googleapis.com/projects/sample-project/topics/gcf-test", None,
     {"subscription": "projects/p/subscriptions/s",
      "message": {"messageId": EVENT_ID, "publishTime": TIME, "data": "eA=="}}),
    ("storage",
     with_context("google.storage.object.finalize",
                  {"service": "storage.googleapis.com", "type": "storage#object",
                   "name": "projects/_/buckets/some-bucket/objects/folder/Test.cs"}, OBJECT),
     "google.cloud.storage.object.v1.finalized",
     "//storage.googleapis.com/projects/_/buckets/some-bucket", "objects/folder/Test.cs", OBJECT),
]
NAMES = [event[0] for event in EVENTS]


def cloud_event(event_type, source, subject, data):
    from datetime import datetime

    attributes = {"id": EVENT_ID, "specversion": "1.0", "type": event_type, "source": source,
                  "time": datetime.fromisoformat(TIME), "datacontenttype": "application/json"}
    return CloudEvent(attributes | ({"subject": subject} if subject else {}), data)


def check(worker, event_type, source, subject, data):
    event = written_event(worker)
    assert event["id"] == EVENT_ID
    assert event["type"] == event_type
    assert event["source"] == source
    assert event.get("subject") == subject
    assert event["time"] == TIME
    assert event["datacontenttype"].startswith("application/json")
    assert event["data"] == data


@pytest.mark.parametrize("event", EVENTS, ids=NAMES)
@pytest.mark.parametrize("mode", [to_binary_event, to_structured_event], ids=["binary", "structured"])
def test_cloudevent_every_event_arrives_as_it_was_sent(tmp_path, event, mode):
    _, _, event_type, source, subject, data = event
    with worker(tmp_path, "writeEvent", FUNCTION_SIGNATURE_TYPE="cloudevent") as framework:
        request = mode(cloud_event(event_type, source, subject, data))
        reply = framework.post(request.body, headers=dict(request.headers))

        assert reply.status_code == 204, reply.text
        check(framework, event_type, source, subject, data)


@pytest.mark.parametrize("event", EVENTS, ids=NAMES)
def test_events_of_the_first_generation_become_cloudevents(tmp_path, event):
    _, old, event_type, source, subject, data = event
    with worker(tmp_path, "writeEvent", FUNCTION_SIGNATURE_TYPE="event") as framework:
        reply = framework.post(
            json.dumps(old), path="/projects/sample-project/topics/gcf-test",
            headers={"Content-Type": "application/json"})

        assert reply.status_code == 204, reply.text
        check(framework, event_type, source, subject, data)


def test_malformed_events_are_400(tmp_path):
    with worker(tmp_path, "writeEvent") as framework:
        binary = {"ce-specversion": "1.0", "ce-type": "t", "ce-source": "s", "ce-id": "1",
                  "Content-Type": "application/json"}
        cases = [({name: value for name, value in binary.items() if name != missing}, "{}")
                 for missing in ("ce-specversion", "ce-type", "ce-source", "ce-id")]
        cases += [(binary | {"ce-specversion": "9"}, "{}"), ({}, "text"),
                  ({"Content-Type": "application/json"}, "{}"),
                  ({"Content-Type": "application/cloudevents+json"}, "{"),
                  ({"Content-Type": "application/cloudevents+json"}, '{"specversion":"1.0"}')]
        for headers, body in cases:
            reply = framework.post(body, headers=headers)
            assert reply.status_code == 400, (headers, body)
            assert reply.text.endswith(".\n")
        assert requests.get(framework.url, timeout=10).status_code == 400
        assert framework.records() == []


# Life of the process


def test_the_manifest_is_served_and_written_and_the_control_api_ends_the_process(tmp_path):
    with worker(tmp_path, FUNCTIONS_CONTROL_API="true") as framework:
        served = requests.get(f"{framework.url}/__/functions.yaml", timeout=10)
        assert requests.get(f"{framework.url}/__/health", timeout=10).status_code == 200
        assert requests.get(f"{framework.url}/__/quitquitquit", timeout=10).status_code == 200
        assert framework.process.wait(timeout=15) == 0
    assert served.headers["content-type"].startswith("text/yaml")
    path = tmp_path / "functions.yaml"
    subprocess.run(
        [BINARY], env={"FUNCTIONS_MANIFEST_OUTPUT_PATH": str(path)}, timeout=30, check=True)
    manifest = json.loads(path.read_text())

    assert served.json() == manifest
    assert manifest["specVersion"] == "v1alpha1"
    endpoints = manifest["endpoints"]
    assert endpoints["recordTick"]["scheduleTrigger"] == {
        "schedule": "0 3 * * *", "timeZone": "Europe/Berlin",
        "retryConfig": {"retryCount": 2, "minBackoffSeconds": 0.01}}
    assert endpoints["recordTask"]["taskQueueTrigger"]["rateLimits"] == {
        "maxConcurrentDispatches": 4}
    assert endpoints["recordCreator"]["eventTrigger"]["eventType"].endswith(
        "created.withAuthContext")


def test_without_the_control_api_nobody_ends_the_process(tmp_path):
    with worker(tmp_path) as framework:
        assert requests.get(f"{framework.url}/__/quitquitquit", timeout=10).status_code == 404
        assert framework.process.poll() is None


def test_sigterm_lets_running_requests_end(tmp_path):
    with worker(tmp_path, "slowEcho", FUNCTIONS_EMULATOR="true") as framework:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            body = json.dumps({"data": {"milliseconds": 300, "text": "done"}})
            running = pool.submit(
                framework.post, body, headers={"Content-Type": "application/json"})
            for line in framework.process.stdout:
                if "Begun" in line:
                    break
            framework.process.send_signal(signal.SIGTERM)

            assert running.result().json() == {"result": "done"}
        assert framework.process.wait(timeout=15) == 0


def test_a_request_past_its_time_is_504(tmp_path):
    with worker(tmp_path, "meet", CLOUD_RUN_TIMEOUT_SECONDS="1") as framework:
        reply = framework.post(json.dumps({"people": 2}))

        assert reply.status_code == 504
        assert reply.headers["X-Google-Status"] == "error"


def test_a_failing_function_is_told_apart_from_a_crashed_one(tmp_path):
    with worker(tmp_path, "failing") as framework:
        reply = framework.post(
            json.dumps({"data": {"code": "plain", "message": "secret"}}),
            headers={"Content-Type": "application/json"})

        assert reply.status_code == 500
        assert reply.headers["X-Google-Status"] == "error"
        assert "secret" not in reply.text


@pytest.mark.parametrize("settings, problem", [
    ({"FUNCTION_TARGET": "writeEvent", "FUNCTION_SIGNATURE_TYPE": "http"}, "set cloudevent"),
    ({"FUNCTION_TARGET": "echo", "FUNCTION_SIGNATURE_TYPE": "cloudevent"}, "set http"),
    ({"FUNCTION_SIGNATURE_TYPE": "grpc"}, "set one of http, event, cloudevent, typed"),
    ({"FUNCTION_TARGET": "nobody"}, "no function has that name"),
    ({"PORT": "many"}, "PORT is"),
    ({"CLOUD_RUN_TIMEOUT_SECONDS": "-1"}, "CLOUD_RUN_TIMEOUT_SECONDS is"),
])
def test_settings_that_make_no_sense_end_the_process_with_a_sentence(settings, problem):
    ended = subprocess.run(
        [BINARY], env={"PORT": "0"} | settings, capture_output=True, text=True, timeout=30,
        check=False)

    assert ended.returncode == 1
    assert problem in ended.stderr


def test_in_production_a_log_line_is_cloud_loggings(tmp_path):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with worker(tmp_path, "log", K_SERVICE="log", GOOGLE_CLOUD_PROJECT="my-project") as framework:
        headers = {"Content-Type": "application/json", "function-execution-id": "exec-1"}
        for more in ({"traceparent": f"00-{trace}-00f067aa0ba902b7-01"},
                     {"X-Cloud-Trace-Context": f"{trace}/255;o=1"}):
            reply = framework.post(json.dumps({"data": "hello"}), headers=headers | more)
            assert reply.status_code == 200, reply.text
        lines = []
        for line in framework.process.stdout:
            if line.startswith("{") and '"hello"' in line:
                lines.append(json.loads(line))
            if len(lines) == 4:
                break

    assert [line["severity"] for line in lines] == ["INFO", "WARNING"] * 2
    for line in lines:
        assert line["message"] == "hello"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["time"])
        assert line["logging.googleapis.com/trace"] == f"projects/my-project/traces/{trace}"
        assert line["logging.googleapis.com/labels"] == {"execution_id": "exec-1"}
    assert [line["logging.googleapis.com/spanId"] for line in lines] == (
        ["00f067aa0ba902b7"] * 2 + ["00000000000000ff"] * 2)


# Schedules and tasks


def test_a_scheduled_run_is_a_plain_post(tmp_path):
    with worker(tmp_path, "recordTick") as framework:
        reply = framework.post(headers={
            "X-CloudScheduler-ScheduleTime": "2026-07-01T03:00:00+02:00",
            "X-CloudScheduler-JobName": "firebase-schedule-recordTick"})

        assert reply.status_code == 204, reply.text
        assert framework.records() == ["recordTick 2026-07-01T01:00:00Z 1"]


def test_a_task_is_a_callable_that_answers_204(tmp_path):
    with worker(tmp_path, "recordTask") as framework:
        body = json.dumps({"data": {"text": "x", "failures": 1}})
        headers = {"Content-Type": "application/json", "X-CloudTasks-TaskName": "t1"}
        first = framework.post(body, headers=headers | {"X-CloudTasks-TaskRetryCount": "0"})
        second = framework.post(body, headers=headers | {"X-CloudTasks-TaskRetryCount": "1"})

        assert first.status_code == 500
        assert first.json()["error"]["status"] == "INTERNAL"
        assert second.status_code == 204
        assert framework.records() == ["recordTask x t1 1", "recordTask x t1 2"]
