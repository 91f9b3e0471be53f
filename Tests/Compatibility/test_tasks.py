"""Task queues as firebase-admin and Google's own client fill them, delivered to real workers."""

import base64
import contextlib
import datetime
import http.server
import json
import threading
import time

import firebase_admin
import pytest
import requests
from conftest import CONFIGURATION, PROJECT, ROOT, started
from firebase_admin import exceptions, functions
from google.api_core import exceptions as google_exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksRestTransport
from google.protobuf import duration_pb2, timestamp_pb2

PARENT = f"projects/{PROJECT}/locations/us-central1/queues"


class Samples:
    """A suite with the sample functions, and the file in which they record what they were given."""

    def __init__(self, suite, record):
        self.suite = suite
        self.record = record
        self.url = f"http://{suite.address('tasks')}"

    def lines(self, name):
        """What a function was given under a task's name: the other words of each line."""
        if not self.record.exists():
            return []
        lines = [line.split() for line in self.record.read_text().splitlines()]
        return [line[2:] for line in lines if line[1] == name]

    def wait(self, name, count=1):
        deadline = time.monotonic() + 20
        while len(self.lines(name)) < count:
            assert time.monotonic() < deadline, f"{name} did not run {count} times"
            time.sleep(0.02)
        return self.lines(name)

    def tasks(self, queue):
        reply = requests.get(f"{self.url}/v2/{PARENT}/{queue}/tasks", timeout=10)
        assert reply.status_code == 200, reply.text
        return [task["name"].split("/")[-1] for task in reply.json()["tasks"]]


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    (folder / ".env").write_text(f"SAMPLE_OUTPUT={folder}/record\n")
    binary = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
    with started(folder, "--executable", binary) as suite:
        yield Samples(suite, folder / "record")


@pytest.fixture()
def admin(samples, monkeypatch):
    monkeypatch.setenv("CLOUD_TASKS_EMULATOR_HOST", samples.suite.address("tasks"))
    app = firebase_admin.initialize_app(
        firebase_admin.credentials.ApplicationDefault(), {"projectId": PROJECT}, name="tasks")
    yield lambda queue: functions.task_queue(queue, app=app)
    firebase_admin.delete_app(app)


@pytest.fixture()
def google(samples):
    class Plain(CloudTasksRestTransport):
        """Google's REST transport, without the TLS that a machine of one's own does not need."""

    transport = Plain(
        host=samples.suite.address("tasks"), credentials=AnonymousCredentials(), url_scheme="http")
    return tasks_v2.CloudTasksClient(
        transport=transport, client_options=None if transport else ClientOptions())


def test_admin_enqueues_and_the_function_runs(samples, admin):
    task = admin("countTask").enqueue({"data": {"n": 7}})
    assert "/" not in task
    assert samples.wait(task) == [["7", "0"]]


def test_admin_enqueues_for_later_and_deletes(samples, admin):
    queue = admin("countTask")
    task = queue.enqueue({"data": {"n": 8}}, functions.TaskOptions(schedule_delay_seconds=3600))
    assert task in samples.tasks("countTask")
    queue.delete(task)
    assert task not in samples.tasks("countTask")
    with pytest.raises(exceptions.NotFoundError):
        queue.delete(task)
    assert samples.lines(task) == []


def test_a_delay_is_honoured(samples, admin):
    due = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
    task = admin("countTask").enqueue(
        {"data": {"n": 9}}, functions.TaskOptions(schedule_time=due.replace(tzinfo=None)))
    assert samples.wait(task) == [["9", "0"]]
    assert datetime.datetime.now(datetime.timezone.utc) >= due


def test_an_id_can_be_used_once(samples):
    def enqueue():
        body = base64.b64encode(json.dumps({"data": {"n": 1}}).encode()).decode()
        return requests.post(
            f"{samples.url}/{PARENT}/countTask/tasks", timeout=10,
            json={"task": {"name": f"{PARENT}/countTask/tasks/once",
                           "httpRequest": {"url": "", "body": body}}})

    assert enqueue().status_code == 200
    samples.wait("once")
    again = enqueue()
    assert again.status_code == 409
    assert again.json()["error"]["status"] == "ALREADY_EXISTS"
    assert len(samples.lines("once")) == 1


def test_admin_maps_a_used_id(samples, admin):
    options = functions.TaskOptions(task_id="twice", schedule_delay_seconds=3600)
    assert admin("countTask").enqueue({"data": {"n": 1}}, options) == "twice"
    assert "twice" in samples.tasks("countTask")
    with pytest.raises(exceptions.AlreadyExistsError):
        admin("countTask").enqueue({"data": {"n": 1}}, options)


def test_an_unknown_queue_names_those_there_are(samples, admin):
    with pytest.raises(exceptions.NotFoundError) as caught:
        admin("nowhere").enqueue({"data": {}})
    assert "countTask" in str(caught.value.http_response.text)


def test_three_attempts_are_three(samples, admin):
    task = admin("failTask").enqueue({"data": {"n": 3}})
    assert samples.wait(task, 3) == [["3", "0"], ["3", "1"], ["3", "2"]]
    samples.suite.settle()
    assert len(samples.lines(task)) == 3
    assert task not in samples.tasks("failTask")


def test_googles_client(samples, google):
    parent = f"{PARENT}/countTask"
    names = [queue.name for queue in google.list_queues(parent=PARENT.removesuffix("/queues"))]
    assert parent in names and f"{PARENT}/failTask" in names
    assert google.get_queue(name=parent).state == tasks_v2.Queue.State.RUNNING
    assert google.pause_queue(name=parent).state == tasks_v2.Queue.State.PAUSED

    later = timestamp_pb2.Timestamp()
    later.FromDatetime(datetime.datetime.now() + datetime.timedelta(hours=2))
    task = google.create_task(parent=parent, task=tasks_v2.Task(
        name=f"{parent}/tasks/g1", schedule_time=later,
        dispatch_deadline=duration_pb2.Duration(seconds=30),
        http_request=tasks_v2.HttpRequest(
            url=f"https://us-central1-{PROJECT}.cloudfunctions.net/countTask",
            http_method=tasks_v2.HttpMethod.POST,
            headers={"Content-Type": "application/json"}, body=b'{"data": {"n": 5}}')))
    assert task.name == f"{parent}/tasks/g1"
    with pytest.raises(google_exceptions.Conflict):
        google.create_task(parent=parent, task=tasks_v2.Task(
            name=task.name, http_request=tasks_v2.HttpRequest(url="")))
    full = google.get_task(tasks_v2.GetTaskRequest(
        name=task.name, response_view=tasks_v2.Task.View.FULL))
    assert full.http_request.body == b'{"data": {"n": 5}}'
    assert full.dispatch_deadline.seconds == 30
    assert "g1" in [found.name.split("/")[-1] for found in google.list_tasks(parent=parent)]

    assert google.resume_queue(name=parent).state == tasks_v2.Queue.State.RUNNING
    google.run_task(name=task.name)
    assert samples.wait("g1") == [["5", "0"]]
    samples.suite.settle()
    with pytest.raises(google_exceptions.NotFound):
        google.get_task(name=task.name)
    google.purge_queue(name=parent)
    assert samples.tasks("countTask") == []


@contextlib.contextmanager
def server():
    """A server of this machine that notes what it is sent, and refuses the first request."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, dict(self.headers), body))
            self.send_response(503 if len(seen) == 1 else 204)
            self.end_headers()

        def log_message(self, *args):
            pass

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{listening.server_port}", seen
    finally:
        listening.shutdown()
        listening.server_close()


def test_a_task_for_a_server_of_this_machine_goes_there_until_it_is_taken(samples, google):
    with server() as (url, seen):
        task = google.create_task(parent=f"{PARENT}/countTask", task=tasks_v2.Task(
            http_request=tasks_v2.HttpRequest(
                url=f"{url}/hook?a=b", headers={"X-Own": "1"}, body=b"{}")))
        assert task.http_request.url == f"{url}/hook?a=b"
        deadline = time.monotonic() + 20
        while len(seen) < 2:
            assert time.monotonic() < deadline, "the refused task did not come again"
            time.sleep(0.02)
        samples.suite.settle()
        assert [path for path, _, _ in seen] == ["/hook?a=b", "/hook?a=b"]
        _, headers, body = seen[1]
        assert body == b"{}"
        headers = {name.lower(): value for name, value in headers.items()}
        assert headers["user-agent"] == "Google-Cloud-Tasks"
        assert headers["x-own"] == "1"
        assert headers["x-cloudtasks-queuename"] == "countTask"
        assert headers["x-cloudtasks-taskretrycount"] == "1"
        assert headers["x-cloudtasks-taskpreviousresponse"] == "503"


def test_a_task_for_another_function_gets_there_with_its_headers(samples, google):
    functions_url = f"http://{samples.suite.address('functions')}/{PROJECT}/us-central1"
    before = len(samples.record.read_text()) if samples.record.exists() else 0
    google.create_task(parent=f"{PARENT}/countTask", task=tasks_v2.Task(
        http_request=tasks_v2.HttpRequest(url=f"{functions_url}/writeBody", body=b"from a task")))
    samples.suite.settle()
    assert "from a task" in samples.record.read_text()[before:]


def test_tasks_do_not_leave_this_machine(samples, google):
    with pytest.raises(google_exceptions.BadRequest) as caught:
        google.create_task(parent=f"{PARENT}/countTask", task=tasks_v2.Task(
            http_request=tasks_v2.HttpRequest(url="https://example.com/hook")))
    assert "tasks do not leave this machine" in caught.value.message


@pytest.mark.parametrize("host", [
    "[::ffff:127.0.0.1%25.localhost]", "[::ffff:7f00:1%25x.localhost]", "127.+0.0.1", "127.0.0.08",
    "example.com%00.localhost", "[localhost]", "localhost:99999999999999999999",
])
def test_a_host_that_could_mean_another_is_refused(samples, host):
    with server() as (url, seen):
        port = url.rsplit(":", 1)[1]
        reply = requests.post(
            f"{samples.url}/v2/{PARENT}/countTask/tasks", timeout=10,
            json={"task": {"httpRequest": {"url": f"http://{host}:{port}/"}}})
        assert reply.status_code == 400, reply.text
        assert not seen


def test_pages_of_tasks_are_bounded_in_memory(samples):
    body = base64.b64encode(b"x" * (1 << 20)).decode()
    later = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).isoformat()
    for number in range(7):
        reply = requests.post(
            f"{samples.url}/v2/{PARENT}/countTask/tasks", timeout=30, json={"task": {
                "name": f"{PARENT}/countTask/tasks/large{number}", "scheduleTime": later,
                "httpRequest": {"body": body}}})
        assert reply.status_code == 200, reply.text
    found, token = [], ""
    while True:
        page = requests.get(
            f"{samples.url}/v2/{PARENT}/countTask/tasks", timeout=30,
            params={"responseView": "FULL", "pageToken": token})
        assert len(page.content) < 8 << 20
        found += [task["name"].split("/")[-1] for task in page.json()["tasks"]]
        token = page.json().get("nextPageToken")
        if not token:
            break
    assert [name for name in found if name.startswith("large")] == [f"large{n}" for n in range(7)]
    requests.post(f"{samples.url}/v2/{PARENT}/countTask:purge", timeout=10)


def test_a_purge_takes_what_was_enqueued_a_moment_before(samples, admin):
    options = functions.TaskOptions(schedule_delay_seconds=3600)
    for number in range(20):
        added = admin("countTask").enqueue({"data": {"n": number}}, options)
        assert added in samples.tasks("countTask")
    reply = requests.post(f"{samples.url}/v2/{PARENT}/countTask:purge", timeout=10)
    assert reply.status_code == 200, reply.text
    assert samples.tasks("countTask") == []


def test_queue_figures(samples):
    figures = requests.get(f"{samples.url}/queueStats", timeout=10).json()
    assert figures[f"queue:{PROJECT}-us-central1-countTask"]["isPaused"] is False


def test_a_wrong_port_is_named(samples):
    reply = requests.post(
        f"http://{samples.suite.address('functions')}/{PARENT}/countTask/tasks",
        json={"task": {}}, timeout=10)
    assert reply.status_code == 404
    assert samples.suite.address("tasks") in reply.json()["error"]["message"]
