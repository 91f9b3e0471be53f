"""A real browser: pages of this machine use the ports, pages of other sites do not."""

import functools
import html
import http.server
import json
import re
import subprocess

import browser
import conftest
import pytest

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
DOCUMENTS = f"/v1/projects/{conftest.PROJECT}/databases/(default)/documents"
TASKS = f"/v2/projects/{conftest.PROJECT}/locations/us-central1/queues/countTask/tasks"

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="Chromium is not installed")

PAGE = """<!doctype html><meta charset="utf-8"><pre id="out"></pre><script>
const [functions, firestore, tasks, project] = ADDRESSES;
const json = {"content-type": "application/json"};
const attempts = {
  call: () => fetch(`${functions}/${project}/us-central1/echo`,
    {method: "POST", headers: json, body: '{"data":{"a":[1,"ü"]}}'}).then((r) => r.json()),
  stream: () => fetch(`${functions}/${project}/us-central1/spell`,
    {method: "POST", headers: {...json, accept: "text/event-stream"},
     body: '{"data":{"text":"abc"}}'}).then((r) => r.text()),
  write: () => fetch(`${firestore}DOCUMENTS/pages?documentId=${location.hostname}`,
    {method: "POST", headers: {...json, authorization: "Bearer owner"}, body: '{"fields":{}}'})
    .then((r) => r.status),
  // What a page may send to other sites without asking first, and without reading the answer.
  task: () => fetch(`${tasks}TASKS`, {method: "POST", mode: "no-cors",
    body: '{"task":{"httpRequest":{"body":"eyJkYXRhIjp7ImlkIjoicGFnZSJ9fQ=="}}}'})
    .then((r) => r.type),
  image: () => new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = () => done("over");
    image.src = `${functions}/${project}/us-central1/inspect`;
  }),
};
(async () => {
  const results = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    results[name] = await attempt().catch((error) => error.name);
  }
  document.getElementById("out").textContent = JSON.stringify(results);
})();
</script>"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    (folder / ".env").write_text(f"SAMPLE_OUTPUT={folder}/output\n", encoding="utf-8")
    with conftest.started(folder, "--executable", SAMPLE) as suite:
        suite.folder = folder
        assert suite.call("echo", 1).status_code == 200
        yield suite


def visit(sample, tmp_path, host):
    """What the page finds when it is called by a host's name."""
    addresses = [f"http://{sample.address(s)}" for s in ("functions", "firestore", "tasks")]
    page = PAGE.replace("ADDRESSES", json.dumps([*addresses, conftest.PROJECT]))
    page = page.replace("DOCUMENTS", DOCUMENTS).replace("TASKS", TASKS)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with browser.served(handler) as port:
        run = subprocess.run(
            [browser.CHROMIUM, *browser.FLAGS, f"--user-data-dir={tmp_path}/profile",
             "--virtual-time-budget=20000", "--dump-dom",
             f"--host-resolver-rules=MAP {host} 127.0.0.1", f"http://{host}:{port}/page.html"],
            capture_output=True, text=True, timeout=100, check=False)
    found = re.search(r'<pre id="out">(.+?)</pre>', run.stdout, re.S)
    assert found, run.stderr[-2000:]
    return json.loads(html.unescape(found.group(1)))


def runs(sample, function):
    stats = {f["name"]: f for f in sample.hub("GET", "/hearth/v1/functions/stats").json()}
    return stats[function]["invocations"]


@pytest.mark.parametrize("host", ["localhost", "client-1.localhost"])
def test_a_page_of_this_machine_calls_streams_and_writes(sample, tmp_path, host):
    found = visit(sample, tmp_path, host)
    assert found["call"] == {"result": {"a": [1, "ü"]}}
    assert found["stream"].startswith("data: ") and '"result"' in found["stream"]
    assert found["write"] == 200
    sample.settle()
    assert runs(sample, "countTask") > 0


def test_a_page_of_another_site_reads_and_changes_nothing(sample, tmp_path):
    before = {name: runs(sample, name) for name in ("echo", "spell", "countTask", "inspect")}
    found = visit(sample, tmp_path, "evil.example")
    # The browser hides the refusals from the page.
    assert [found[name] for name in ("call", "stream", "write")] == ["TypeError"] * 3
    sample.settle()
    assert {name: runs(sample, name) for name in before} == before
    reply = conftest.requests.get(
        f"http://{sample.address('firestore')}{DOCUMENTS}/pages/evil.example", timeout=30,
        headers={"Authorization": "Bearer owner"})
    assert reply.status_code == 404
