"""Functions on the lives of users, and functions that decide on sign-ups and sign-ins."""

import concurrent.futures
import json
import threading
import time
import uuid

import conftest
import pytest
import requests
from conftest import CONFIGURATION, PROJECT, ROOT
from test_auth import Client, address, claims


class Samples:
    """A suite with the sample functions, and the file in which they record what they see."""

    def __init__(self, suite, record):
        self.suite = suite
        self.record = record
        self.client = Client(suite.address("auth"))

    def lines(self, name):
        if not self.record.exists():
            return []
        lines = [line.split() for line in self.record.read_text().splitlines()]
        return [line[1:] for line in lines if line[0] == name]


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auth")
    record = folder / "record"
    (folder / ".env").write_text(f"SAMPLE_USERS=1\nSAMPLE_OUTPUT={record}\n")
    binary = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
    with conftest.started(folder, "--executable", binary) as suite:
        yield Samples(suite, record)


def test_events_of_a_user(samples):
    email = address()
    user = samples.client.sign_up(email)
    samples.client.ok("delete", {"idToken": user["idToken"]})
    samples.suite.settle()
    seen = [[user["localId"], email]]
    assert [line for line in samples.lines("recordCreated") if line[0] == user["localId"]] == seen
    assert [line for line in samples.lines("recordDeleted") if line[0] == user["localId"]] == seen
    shown = samples.suite.cli("events", "list", "--function", "recordDeleted").stdout
    assert "recordDeleted" in shown


def test_functions_decide_on_a_sign_up(samples):
    email = address()
    user = samples.client.sign_up(email)
    token = claims(user["idToken"])
    assert (token["name"], token["role"], token["method"]) == ("Checked", "client", "password")
    fresh = samples.client.refresh(user["refreshToken"]).json()["id_token"]
    assert claims(fresh)["method"] == "password", "session claims last as long as the session"
    assert [email, "password"] in samples.lines("decideOnCreation")


def test_a_refused_sign_up_leaves_nothing(samples):
    email = f"refused-{address()}"
    message = samples.client.error("signUp", {"email": email, "password": "secret1"})
    head, _, body = message.partition(" : HTTP Cloud Function returned an error: ")
    assert head == "BLOCKING_FUNCTION_ERROR_RESPONSE"
    assert json.loads(body)["error"] == {
        "message": "This address may not sign up.", "status": "PERMISSION_DENIED"}
    assert samples.client.error("signInWithPassword", {"email": email, "password": "secret1"}) == (
        "EMAIL_NOT_FOUND")
    samples.suite.settle()
    assert not [line for line in samples.lines("recordCreated") if line[1] == email]


def test_a_function_that_crashes_or_hangs_refuses(samples):
    begin = time.monotonic()
    for name in ("crash", "hang"):
        email = f"{name}-{address()}"
        message = samples.client.error("signUp", {"email": email, "password": "secret1"})
        assert message.startswith("BLOCKING_FUNCTION_ERROR_RESPONSE : ")
        assert samples.client.error(
            "signInWithPassword", {"email": email, "password": "secret1"}) == "EMAIL_NOT_FOUND"
    assert time.monotonic() - begin < 20, "Auth waits for seven seconds at most"
    samples.client.sign_up()


def test_a_refused_sign_in(samples):
    email = address()
    user = samples.client.sign_up(email)
    samples.client.ok("update", {"idToken": user["idToken"], "displayName": "Banned"})
    message = samples.client.error("signInWithPassword", {"email": email, "password": "secret1"})
    assert "You are banned." in message
    samples.client.ok("lookup", {"idToken": user["idToken"]})


def test_the_functions_are_listed(samples):
    listed = samples.suite.cli("functions", "list").stdout
    for text in ("decideOnCreation", "Auth's beforeCreate", "Auth's beforeSignIn",
                 "user created", "user deleted"):
        assert text in listed
    called = samples.suite.cli("call", "decideOnCreation")
    assert called.returncode == 1
    assert "when a user signs up or signs in" in called.stderr


def test_a_forged_request_to_a_blocking_function_is_refused(samples):
    reply = requests.post(samples.suite.url("decideOnCreation"), json={"data": {"jwt": "x"}},
                          timeout=30)
    assert reply.status_code == 401
    other = conftest.token("u", event_type="beforeSignIn", user_record={"uid": "u"})
    reply = requests.post(samples.suite.url("decideOnCreation"), json={"data": {"jwt": other}},
                          timeout=30)
    assert reply.status_code == 400
    assert PROJECT in samples.suite.url("decideOnCreation")


def test_nobody_gets_past_a_guard_while_the_suite_stops_and_starts(tmp_path):
    """Clients that retry, over the first and further starts, and once the functions are gone."""
    (tmp_path / ".env").write_text(
        "SAMPLE_USERS=1\nSAMPLE_START_MILLISECONDS=200\n", encoding="utf-8")
    binary = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
    ports = {service: conftest.free_port() for service in ("auth", "functions", "tasks")}
    options = [f"--{service}-port={port}" for service, port in ports.items()]
    options += ["--data", str(tmp_path / "data")]
    queue = (f"http://127.0.0.1:{ports['tasks']}/v2/projects/{PROJECT}/locations/us-central1/"
             "queues/countTask/tasks")
    function = f"http://127.0.0.1:{ports['functions']}/{PROJECT}/us-central1"
    client = Client(f"127.0.0.1:{ports['auth']}")
    statuses = {"signUp": set(), "call": set(), "enqueue": set()}
    requests_of = {
        "signUp": lambda: client.post(
            "signUp", {"email": f"refused-{uuid.uuid4()}@example.com", "password": "secret1"}),
        "call": lambda: requests.post(f"{function}/echo", json={"data": 1}, timeout=30),
        "enqueue": lambda: requests.post(
            queue, json={"task": {"httpRequest": {"body": "eyJkYXRhIjp7Im4iOjF9fQ=="}}},
            timeout=30),
    }
    has_ended = threading.Event()

    def retry(name):
        while not has_ended.is_set():
            try:
                statuses[name].add(requests_of[name]().status_code)
            except requests.ConnectionError:
                has_ended.wait(0.005)

    with concurrent.futures.ThreadPoolExecutor() as clients:
        running = [clients.submit(retry, name) for name in [*statuses, "signUp"]]
        try:
            with conftest.started(
                    tmp_path, "--executable", binary, *options, ephemeral=False) as suite:
                conftest.until(lambda: "decideOnCreation" in suite.cli("functions", "list").stdout,
                               "the functions are not deployed")
                conftest.until(lambda: all(400 in seen or 200 in seen
                                           for seen in statuses.values()),
                               "the clients get no answers")
            for _ in range(3):
                with conftest.started(tmp_path, "--no-functions", *options, ephemeral=False):
                    pass
            for binary in (tmp_path / "data" / "deployments").glob("*/functions"):
                binary.unlink()
            with conftest.started(tmp_path, "--no-functions", *options, ephemeral=False) as suite:
                message = client.error(
                    "signUp", {"email": address(), "password": "secret1"}, status=503)
                assert message.startswith("UNAVAILABLE : ") and "hearth deploy" in message
                for name in ("call", "enqueue"):
                    reply = requests_of[name]()
                    assert reply.status_code == 503 and "hearth deploy" in reply.text
                users = suite.cli("auth", "list", "--json")
                assert (users.returncode, users.stdout) == (0, ""), "nobody got past"
        finally:
            has_ended.set()
    for client_of in running:
        client_of.result()
    assert statuses["signUp"] == {400, 503}
    assert statuses["call"] == statuses["enqueue"] == {200, 503}


def test_a_suite_whose_first_deployment_failed_serves_without_functions(tmp_path):
    """There is no guard that anybody could get past, and no function that could come."""
    with conftest.started(tmp_path, "--executable", "/bin/false") as suite:
        client = Client(suite.address("auth"))
        conftest.until(
            lambda: client.post("signUp", {"email": address(), "password": "secret1"})
            .status_code == 200, "sign-ups are refused")
        assert requests.post(suite.url("echo"), json={"data": 1}, timeout=30).status_code == 404
