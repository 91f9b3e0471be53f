"""What hostile and careless clients send, to every port: each gets its status and an end, and the
neighbours are served meanwhile."""

import concurrent.futures
import contextlib
import json
import pathlib
import resource
import shutil
import socket
import subprocess
import time

import conftest
import grpc
import pytest
import requests
from google.cloud.firestore_v1.types import document, firestore, write

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
PORTS = ["functions", "firestore", "hub", "auth", "tasks", "vectors"]
DOCUMENTS = f"/v1/projects/{conftest.PROJECT}/databases/(default)/documents"
TASKS = f"/v2/projects/{conftest.PROJECT}/locations/us-central1/queues/countTask/tasks"
ECHO = f"/{conftest.PROJECT}/us-central1/echo"
# A path of each port that takes a JSON body, and the headers that it needs.
BODIES = {
    "functions": ECHO,
    "firestore": f"{DOCUMENTS}:commit",
    "tasks": TASKS,
    "vectors": "/indexes",
    "auth": f"/identitytoolkit.googleapis.com/v1/projects/{conftest.PROJECT}/accounts",
    "hub": "/hearth/v1/import",
}
LINE = b"POST /x HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacks")
    (folder / ".env").write_text(f"SAMPLE_OUTPUT={folder}/output\n", encoding="utf-8")
    with conftest.started(folder, "--executable", SAMPLE) as suite:
        assert suite.call("echo", 1).json() == {"result": 1}
        yield suite


def connect(suite, service):
    host, port = suite.address(service).split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def exchange(suite, service, data, closes=False):
    """What the port answers until it closes the connection."""
    with connect(suite, service) as connection:
        # The server may close before it has read everything.
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            if closes:
                connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
        return answer


def assert_all_serve(suite):
    assert suite.call("echo", {"text": "x"}).json() == {"result": {"text": "x"}}
    reply = requests.get(f"http://{suite.address('firestore')}{DOCUMENTS}/things", timeout=30,
                         headers={"Authorization": "Bearer owner"})
    assert reply.status_code == 200
    assert suite.hub("GET", "/hearth/v1/suite").status_code == 200
    assert requests.get(f"http://{suite.address('vectors')}/indexes", timeout=30).status_code == 200


@pytest.mark.parametrize("service", PORTS)
@pytest.mark.parametrize("text, status", [
    (b"GET /x HTTP/1.1\r\n\r\n", 400),
    (b"GET /x HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
    (b"GET /x HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
    (b"GET /x HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n", 400),
    (b"GET x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET /x HTTP/3.0\r\nHost: localhost\r\n\r\n", 505),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (LINE + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (LINE + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    (LINE + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    (LINE + b"Content-Length: 3, 3\r\n\r\nabc", 400),
    (LINE + b"Content-Length: +3\r\n\r\nabc", 400),
    (LINE + b"Content-Length: 18446744073709551617\r\n\r\nabc", 400),
    (LINE + b"Transfer-Encoding: identity\r\n\r\n", 501),
    (LINE + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    (LINE + b"X: a\rb\r\n\r\n", 400),
    (LINE + b"X: a\x00b\r\n\r\n", 400),
    (LINE + b"X: " + b"x" * 100_000 + b"\r\n\r\n", 431),
    (LINE + b"X: y\r\n" * 1000 + b"\r\n", 431),
    (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: the-unexpected\r\n\r\n", 417),
])
def test_what_is_no_request_gets_its_status_and_an_end(sample, service, text, status):
    began = time.monotonic()
    answer = exchange(sample, service, text)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:300]
    assert b"\r\nConnection: close\r\n" in answer
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["message"]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("service", PORTS)
def test_nothing_is_smuggled_behind_an_ambiguous_request(sample, service):
    hidden = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for fields in (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                   b"Content-Length: 5\r\nContent-Length: 0\r\n"):
        answer = exchange(sample, service, LINE + fields + b"\r\n0\r\n\r\n" + hidden)
        assert answer.count(b"HTTP/1.1 ") == 1, answer


@pytest.mark.parametrize("path", [
    "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/%00", "/%",
    "/%zz", "/\\..\\..", "//etc/passwd", "/%0d%0aX-Injected:%20yes", "/" + "a/" * 10_000])
@pytest.mark.parametrize("service", PORTS)
def test_strange_paths_find_nothing(sample, service, path):
    text = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = exchange(sample, service, text.encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] in (b"400", b"401", b"404"), head
    assert b"X-Injected" not in head and b"root:" not in body


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("service", PORTS)
@pytest.mark.parametrize("body", [
    DEEP.encode(), b'{"data":' + DEEP.encode() + b"}", b'{"data":"\xff\xfe"}', b'{"a":1,"a":2',
    b'{"data":1e999999}', b'{"data":' + b"9" * 100_000 + b"}", b"\x00" * 1000, b'"\\ud800"', b"nul",
    b'{"data":1,"data":2}', b'{"writes":[' + b"{}," * 10_000 + b"{}]}", b""])
def test_strange_bodies_are_answered_and_harm_nobody(sample, service, body):
    headers = {"Content-Type": "application/json", "Authorization": "Bearer owner"}
    if service == "hub":
        headers["Authorization"] = f"Bearer {sample.token}"
    reply = requests.post(f"http://{sample.address(service)}{BODIES[service]}", data=body,
                          headers=headers, timeout=30)
    # A callable passes on what is JSON.
    assert reply.status_code < 500, reply.text[:300]
    assert_all_serve(sample)


@pytest.mark.parametrize("service", PORTS)
def test_a_body_that_is_too_long_is_refused_while_it_is_sent(sample, service):
    url = f"http://{sample.address(service)}{BODIES[service]}"
    token = sample.token if service == "hub" else "owner"
    began = time.monotonic()
    for body in (b"x" * (12 << 20), iter([b"x" * (1 << 20)] * 12)):
        reply = requests.post(url, data=body, timeout=30, headers={
            "Content-Type": "application/json", "Authorization": f"Bearer {token}",
            "Connection": "close"})
        assert 400 <= reply.status_code < 500
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("service", PORTS)
def test_an_endless_body_is_cut_off(sample, service):
    length = f"Content-Length: {1 << 40}\r\nAuthorization: Bearer {sample.token}\r\n\r\n"
    with connect(sample, service) as connection:
        path = BODIES[service].encode()
        connection.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + length.encode())
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 1 << 30:
                connection.sendall(b"x" * (1 << 20))
                sent += 1 << 20
        assert sent < 100 << 20
    assert_all_serve(sample)


def test_who_sends_no_more_still_gets_the_result(sample):
    body = b'{"data":{"milliseconds":300,"text":"late"}}'
    head = (f"POST /{conftest.PROJECT}/us-central1/slowEcho HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    answer = exchange(sample, "functions", head + body, closes=True)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b'{"result":"late"}')


def test_malformed_chunks_are_the_clients_fault(sample):
    head = (f"POST {ECHO} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n").encode()
    for rest in (b"5\r\n{\"dat\r\nxx\r\n", b"5\r\n{\"data12\r\n", b"-5\r\n"):
        answer = exchange(sample, "functions", head + rest)
        assert answer.startswith(b"HTTP/1.1 400 "), answer


def test_a_function_cannot_break_out_of_its_answer(sample):
    reply = requests.post(sample.url("failing"), timeout=30, json={
        "data": {"code": "NOT_FOUND", "message": "a\r\nX-Injected: yes\r\n\r\nb"}})
    assert reply.status_code == 404 and "X-Injected" not in reply.headers
    assert reply.json()["error"]["message"] == "a\r\nX-Injected: yes\r\n\r\nb"


def test_thousands_of_half_requests_and_connections_lock_nobody_out(sample):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(10_000, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 500), hard))
    texts = [b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
             b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"]
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(count):
            connection = stack.enter_context(connect(sample, PORTS[number % len(PORTS)]))
            with contextlib.suppress(ConnectionError):
                connection.sendall(texts[number % len(texts)])
            if number % 1000 == 999:
                assert_all_serve(sample)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(assert_all_serve, sample) for _ in range(8)]:
                future.result()
        assert time.monotonic() - began < 20


# Ordinary clients, which do things that no test of ours would think of.

@pytest.mark.skipif(not shutil.which("wget"), reason="wget is not installed")
def test_wget_posts_long_and_short_bodies(sample, tmp_path):
    for size, wanted in ((100, 0), (12 << 20, 8)):
        body = tmp_path / f"{size}"
        body.write_bytes(b'{"data":"' + b"x" * size + b'"}')
        run = subprocess.run(
            ["wget", "-q", "-O", "-", "--tries=1", "--timeout=30", f"--post-file={body}",
             "--header=Content-Type: application/json", sample.url("echo")],
            capture_output=True, timeout=60, check=False)
        assert run.returncode == wanted, run.stderr


def test_curl_posts_long_bodies_and_half_closes(sample, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(b'{"data":"' + b"x" * (12 << 20) + b'"}')
    for options in ([], ["--http1.0"], ["-H", "Expect:"], ["-H", "Transfer-Encoding: chunked"]):
        run = subprocess.run(
            ["curl", "-s", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}", *options,
             "-H", "Content-Type: application/json", "--data-binary", f"@{body}",
             sample.url("echo")],
            capture_output=True, text=True, timeout=60, check=False)
        assert run.stdout == "413", (options, run)


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
def test_node_reuses_connections_aborts_and_uploads(sample):
    program = """
    const url = process.argv[1];
    const post = (body, more) => fetch(url, {method: "POST", body, ...more,
      headers: {"content-type": "application/json"}});
    (async () => {
      for (let n = 0; n < 50; n++) {
        const reply = await post(JSON.stringify({data: n}));
        if ((await reply.json()).result !== n) throw new Error("wrong result");
      }
      const stop = new AbortController();
      const aborted = post('{"data": 1}', {signal: stop.signal}).catch((e) => e.name);
      stop.abort();
      if (await aborted !== "AbortError") throw new Error("not aborted");
      const long = await post('{"data":"' + "x".repeat(12 << 20) + '"}');
      if (long.status !== 413) throw new Error("status " + long.status);
      await long.text();
      const body = new ReadableStream({start(c) {
        c.enqueue(new TextEncoder().encode('{"data":'));
        setTimeout(() => { c.enqueue(new TextEncoder().encode("7}")); c.close(); }, 50);
      }});
      const streamed = await post(body, {duplex: "half"});
      if ((await streamed.json()).result !== 7) throw new Error("wrong streamed result");
    })().catch((e) => { console.error(e); process.exit(1); });
    """
    run = subprocess.run(["node", "-e", program, sample.url("echo")],
                         capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


def files(suite):
    """How many files and sockets the server has open."""
    return len(list(pathlib.Path(f"/proc/{suite.process.pid}/fd").iterdir()))


def test_calls_that_are_given_up_leave_no_connections_behind(sample):
    assert requests.get(sample.url("produce") + "?bytes=10", timeout=30).status_code == 200
    before = files(sample)
    target = f"/{conftest.PROJECT}/us-central1/produce?bytes=50000000"
    for method in ("HEAD", "GET"):
        for _ in range(50):
            with connect(sample, "functions") as connection:
                connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
    end = time.monotonic() + 30
    while files(sample) > before + 10:
        assert time.monotonic() < end, f"{files(sample)} files are open, {before} were"
        time.sleep(0.05)
    metrics = requests.get(f"http://{sample.address('hub')}/metrics", timeout=10).text
    # An answer to HEAD is whole without its body.
    assert 'hearth_invocations_total{function="produce",outcome="ok"} 51' in metrics


def test_a_streamed_body_behind_a_call_is_answered_in_its_turn(sample):
    call = b'{"data":{"milliseconds":100,"text":"first"}}'
    head = f"POST /{conftest.PROJECT}/us-central1/%s HTTP/1.1\r\nHost: localhost\r\n"
    first = (head % "slowEcho").encode() + (
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(call)) + call
    chunked = (head % "inspect").encode() + (
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
    long = (head % "inspect").encode() + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000
    last = (head % "inspect").encode() + b"Connection: close\r\nContent-Length: 0\r\n\r\n"
    began = time.monotonic()
    answer = exchange(sample, "functions", first + chunked + long + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 4, answer
    places = [answer.index(text) for text in (b"first", b'"bytes":7', b'"bytes":300000', b'"bytes":0')]
    assert places == sorted(places)
    assert time.monotonic() - began < 20


def test_a_made_up_cause_does_not_hide_a_write_from_the_functions(sample):
    """A chain that is too long ends, so a client must not claim that its write is part of one."""
    forged = "1.0.recordWrite;1000"
    reply = requests.patch(
        f"http://{sample.address('firestore')}{DOCUMENTS}/things/forgedByREST",
        json={"fields": {"n": {"integerValue": "1"}}},
        headers={"Authorization": "Bearer owner", "x-hearth-cause": forged}, timeout=30)
    assert reply.status_code == 200
    database = f"projects/{conftest.PROJECT}/databases/(default)"
    update = write.Write(update=document.Document(
        name=f"{database}/documents/things/forgedByRPC",
        fields={"n": document.Value(integer_value=1)}))
    with grpc.insecure_channel(sample.address("firestore")) as channel:
        channel.unary_unary(
            "/google.firestore.v1.Firestore/Commit", firestore.CommitRequest.serialize,
            firestore.CommitResponse.deserialize)(
                firestore.CommitRequest(database=database, writes=[update]), timeout=30,
                metadata=[("authorization", "Bearer owner"), ("x-hearth-cause", forged)])
    sample.settle()
    listed = sample.cli("events", "list", "--function", "recordWrite", "--json").stdout
    events = {event["document"]: event for event in json.loads(listed)}
    for path in ("things/forgedByREST", "things/forgedByRPC"):
        assert events[path]["state"] == "succeeded", events[path]
