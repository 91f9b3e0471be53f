"""Functions on the lives of users, and functions that decide on sign-ups and sign-ins."""

import json
import time

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
