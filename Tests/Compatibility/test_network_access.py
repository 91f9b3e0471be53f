"""Who may use which port: pages of other sites, names that anybody can point here, and tokens."""

import pathlib
import stat
import subprocess
import tempfile

import conftest
import pytest
import requests

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
DOCUMENTS = f"/v1/projects/{conftest.PROJECT}/databases/(default)/documents"
TASKS = f"/v2/projects/{conftest.PROJECT}/locations/us-central1/queues/recordTask/tasks"
# A request to each port that reads or changes something.
REQUESTS = [
    ("firestore", "GET", f"{DOCUMENTS}/things/a"),
    ("firestore", "POST", f"{DOCUMENTS}:commit"),
    ("firestore", "DELETE", f"/emulator{DOCUMENTS}"),
    ("functions", "POST", f"/{conftest.PROJECT}/us-central1/echo"),
    ("functions", "GET", "/backends"),
    ("tasks", "POST", TASKS),
    ("vectors", "POST", "/ix/chat-messages/vectors/delete"),
    ("vectors", "GET", "/indexes"),
    ("hub", "PUT", "/functions/disableBackgroundTriggers"),
    ("hub", "POST", "/hearth/v1/events/discard?state=pending"),
]


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network-access")
    output = folder / "output"
    (folder / ".env").write_text(f"SAMPLE_OUTPUT={output}\n", encoding="utf-8")
    with conftest.started(folder, "--executable", SAMPLE,
                          "--allow-origin", "https://app.example") as suite:
        suite.folder = folder
        yield suite


def send(suite, service, method, path, **headers):
    # Text is what a page may post to other sites without asking first.
    return requests.request(
        method, f"http://{suite.address(service)}{path}", data="{}" if method != "GET" else None,
        headers={"Content-Type": "text/plain", **headers}, timeout=30)


@pytest.mark.parametrize("service, method, path", REQUESTS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_a_page_of_another_site_is_refused_with_the_flag_for_it(
        sample, service, method, path, origin):
    for options in ({}, {"Access-Control-Request-Method": method}):
        verb = "OPTIONS" if options else method
        reply = send(sample, service, verb, path, Origin=origin, **options)
        assert reply.status_code == 403, reply.text
        assert "Access-Control-Allow-Origin" not in reply.headers
        assert f"--allow-origin {origin}" in reply.json()["error"]["message"]


@pytest.mark.parametrize("service, method, path", REQUESTS)
def test_an_image_of_another_site_and_a_name_pointed_here_are_refused(sample, service, method, path):
    fetched = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert send(sample, service, method, path, **fetched).status_code == 403
    assert send(sample, service, method, path, Host="evil.example").status_code == 403


@pytest.mark.parametrize("service, method, path", REQUESTS)
@pytest.mark.parametrize("origin", [
    "http://localhost:3000", "http://client-7.localhost:9876", "https://app.example"])
def test_pages_of_this_machine_and_those_allowed_are_served(sample, service, method, path, origin):
    assert send(sample, service, method, path, Origin=origin).status_code != 403


def test_the_control_api_asks_for_its_token_everywhere(sample):
    for method, path in (("GET", "/hearth/v1/workers/environment"), ("GET", "/hearth/v1/suite"),
                         ("POST", "/hearth/v1/deployments"), ("POST", "/hearth/v1/export"),
                         ("POST", "/hearth/v1/events/discard?state=failed"),
                         ("GET", "/hearth/v1/nothing")):
        for headers in ({}, {"Authorization": "Bearer owner"},
                        {"Authorization": f"Bearer {sample.token[:-1]}"},
                        {"Authorization": f"Basic {sample.token}"}):
            reply = requests.request(
                method, f"http://{sample.address('hub')}{path}", headers=headers, timeout=10)
            assert reply.status_code == 401, (path, headers)
            assert "server.json" in reply.json()["error"]["message"]
    assert sample.hub("GET", "/hearth/v1/suite").status_code == 200
    # Firebase's tools know no token.
    assert requests.get(f"http://{sample.address('hub')}/emulators", timeout=10).status_code == 200


def test_only_the_user_reads_the_token_and_workers_never_get_it(sample):
    description = sample.hub("GET", "/hearth/v1/suite").json()
    server = pathlib.Path(description["serverFile"])
    assert stat.S_IMODE(server.stat().st_mode) == 0o600
    assert "token" not in description
    reply = sample.call("variables", ["HEARTH_TOKEN", "GCLOUD_PROJECT"])
    assert reply.json() == {"result": ["-", conftest.PROJECT]}


def test_commands_find_the_token_of_the_hub_that_they_are_told(sample, tmp_path):
    def events(hub, **environment):
        return subprocess.run(
            [conftest.hearth(), "events", "list", "--hub", hub], cwd=tmp_path, timeout=60,
            capture_output=True, text=True, check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path),
                 "TMPDIR": tempfile.gettempdir(), **environment})

    _, port = sample.address("hub").split(":")
    for host in ("127.0.0.1", "localhost"):
        assert events(f"{host}:{port}").returncode == 0
    # The variable is for hubs to which no file of this machine points.
    assert events(sample.address("hub"), HEARTH_TOKEN="wrong").returncode == 0
    elsewhere = {"TMPDIR": str(tmp_path)}
    refused = events(sample.address("hub"), **elsewhere)
    assert refused.returncode != 0 and "server.json" in refused.stderr
    assert events(sample.address("hub"), HEARTH_TOKEN=sample.token, **elsewhere).returncode == 0
