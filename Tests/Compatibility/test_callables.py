"""Requests to callables and HTTP functions, shaped as Firebase's clients and their tests send them."""

import http.client
import json
import socket

import pytest
import requests
from conftest import CONFIGURATION, PROJECT, ROOT, started, token, until

INT64 = "type.googleapis.com/google.protobuf.Int64Value"
UINT64 = "type.googleapis.com/google.protobuf.UInt64Value"
ORIGIN = {"Origin": "https://app.example"}
OTHER = "https://other.example"
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    binary = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
    with started(tmp_path_factory.mktemp("samples"), "--executable", binary,
                 "--allow-origin", ORIGIN["Origin"], "--allow-origin", OTHER) as suite:
        yield suite


def post(samples, function, body, **headers):
    return requests.post(
        samples.url(function), data=body if isinstance(body, (str, bytes)) else json.dumps(body),
        headers={"Content-Type": "application/json", **headers}, timeout=30)


def events(reply):
    """The events of a stream, each one line and a blank one and nothing else."""
    *frames, rest = reply.text.split("\n\n")
    assert rest == ""
    assert all(frame.startswith("data: ") and "\n" not in frame for frame in frames)
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def connect(samples):
    host, port = samples.address("functions").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def logged(samples, function, text):
    """Waits until a function has logged a line."""
    until(lambda: text in samples.cli("functions", "logs", function).stdout,
          f"{function} never logged {text}")


def load(samples, function):
    """How many invocations of a function run, and how many wait."""
    functions = samples.hub("GET", "/hearth/v1/functions").json()
    [found] = [one for one in functions if one["name"] == function]
    return found["running"], found["waiting"]


# The JS client's tests of its serializer and of its calls.

@pytest.mark.parametrize("data", [
    None, True, False, 0, 1, -1, 2147483647, 2.5, 9007199254740991, "", "hello", "ünï\n\"x\"",
    [], {}, [1, "2", [3, {"four": 5}]], {"foo": 1, "bar": "hello", "baz": [1, None]}])
def test_values_come_back(samples, data):
    reply = post(samples, "echo", {"data": data})
    assert reply.status_code == 200
    assert reply.json() == {"result": data}


def test_wrapped_integers_of_ios(samples):
    """Every Swift Int of a typed callable arrives wrapped; above 2^53 they go back so."""
    sent = {
        "int": {"@type": INT64, "value": "-5"},
        "unsigned": {"@type": UINT64, "value": "18446744073709551615"}, "double": 1}
    assert post(samples, "numbers", {"data": sent}).json()["result"] == {
        "int": -5, "unsigned": {"@type": UINT64, "value": "18446744073709551615"}, "double": 1.0}
    bare = {"int": 9007199254740992, "unsigned": 9007199254740991, "double": 0.5}
    assert post(samples, "numbers", {"data": bare}).json()["result"] == {
        "int": {"@type": INT64, "value": "9007199254740992"}, "unsigned": 9007199254740991,
        "double": 0.5}


@pytest.mark.parametrize("value", [
    {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": "x"},
    {"@type": INT64, "value": "x"}, {"@type": INT64, "value": "9223372036854775808"},
    {"@type": UINT64, "value": "-1"}, {"@type": INT64}, {"@type": 5, "value": "1"}])
def test_unknown_types_are_refused(samples, value):
    reply = post(samples, "echo", {"data": {"deep": [value]}})
    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("request_change", [
    {"body": '{"data": 1, "extra": 2}'}, {"body": "{}"}, {"body": '{"foo": 1}'}, {"body": ""},
    {"body": "nonsense"}, {"body": '{"data": NaN}'}, {"body": "[" * 200 + "]" * 200},
    {"type": "text/plain"}, {"type": "application/x-www-form-urlencoded"}, {"method": "GET"},
    {"method": "PUT"}, {"method": "DELETE"}])
def test_bad_requests(samples, request_change):
    reply = requests.request(
        request_change.get("method", "POST"), samples.url("echo"),
        data=request_change.get("body", '{"data": 1}'), timeout=30,
        headers={"Content-Type": request_change.get("type", "application/json"), **ORIGIN})
    assert reply.status_code == 400
    assert reply.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert reply.headers["Access-Control-Allow-Origin"] == ORIGIN["Origin"]


def test_content_types_with_parameters(samples):
    for kind in ("application/json; charset=utf-8", "APPLICATION/JSON", "application/json;x"):
        assert post(samples, "echo", {"data": 1}, **{"Content-Type": kind}).status_code == 200


@pytest.mark.parametrize("status, code", [
    ("CANCELLED", 499), ("UNKNOWN", 500), ("INVALID_ARGUMENT", 400), ("DEADLINE_EXCEEDED", 504),
    ("NOT_FOUND", 404), ("ALREADY_EXISTS", 409), ("PERMISSION_DENIED", 403),
    ("RESOURCE_EXHAUSTED", 429), ("FAILED_PRECONDITION", 400), ("ABORTED", 409),
    ("OUT_OF_RANGE", 400), ("UNIMPLEMENTED", 501), ("INTERNAL", 500), ("UNAVAILABLE", 503),
    ("DATA_LOSS", 500), ("UNAUTHENTICATED", 401)])
def test_errors(samples, status, code):
    failure = {"code": status, "message": "what", "details": {"why": [1]}}
    reply = post(samples, "failing", {"data": failure}, **ORIGIN)
    assert reply.status_code == code
    assert reply.json() == {
        "error": {"status": status, "message": "what", "details": {"why": [1]}}}
    assert reply.headers["Access-Control-Allow-Origin"] == ORIGIN["Origin"]
    streamed = post(samples, "failing", {"data": failure}, **STREAM)
    assert streamed.status_code == 200
    assert events(streamed) == [reply.json()]


def test_other_errors_tell_nothing(samples):
    reply = post(samples, "failing", {"data": {"code": "plain", "message": "password"}})
    assert reply.status_code == 500
    assert reply.json() == {"error": {"status": "INTERNAL", "message": "INTERNAL"}}


def test_preflight(samples):
    reply = requests.options(samples.url("echo"), timeout=30, headers={
        **ORIGIN, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "origin,authorization,firebase-instance-id-token"})
    assert reply.status_code == 204
    assert reply.content == b""
    assert reply.headers["Access-Control-Allow-Origin"] == ORIGIN["Origin"]
    assert reply.headers["Access-Control-Allow-Methods"] == "POST"
    assert reply.headers["Access-Control-Allow-Headers"] == (
        "origin,authorization,firebase-instance-id-token")
    assert reply.headers["Vary"] == "Origin, Access-Control-Request-Headers"


def test_cors_on_what_the_gateway_answers(samples):
    """Nobody sees an error that a browser hides."""
    replies = [
        post(samples, "nobody", {"data": 1}, **ORIGIN),
        post(samples, "echo", b'"' + b"x" * (10 << 20) + b'"', **ORIGIN),
        post(samples, "crash", {"data": 1}, **ORIGIN),
        post(samples, "hang", {"data": {}}, **ORIGIN)]
    assert [reply.status_code for reply in replies] == [404, 413, 500, 504]
    assert [reply.json()["error"]["status"] for reply in replies] == [
        "NOT_FOUND", "INVALID_ARGUMENT", "INTERNAL", "DEADLINE_EXCEEDED"]
    for reply in replies:
        assert reply.headers["Access-Control-Allow-Origin"] == ORIGIN["Origin"]
    for function in ("nobody", "crash"):
        streamed = post(samples, function, {"data": 1}, **STREAM)
        assert streamed.status_code == 200
        assert [list(event) for event in events(streamed)] == [["error"]]


def test_tokens(samples):
    bearer = {"Authorization": f"bearer {token('alice')}"}
    assert post(samples, "whoAmI", {"data": None}, **bearer).json() == {"result": "alice"}
    for header in ("Bearer nonsense", "alice", "Basic YTpi", "Bearer"):
        reply = post(samples, "echo", {"data": 1}, Authorization=header)
        assert reply.status_code == 401
        assert reply.json()["error"]["status"] == "UNAUTHENTICATED"


def test_app_check(samples):
    assert post(samples, "whichApp", {"data": 1}).status_code == 401
    invalid = {"X-Firebase-AppCheck": "garbage"}
    assert post(samples, "whichApp", {"data": 1}, **invalid).status_code == 401
    assert post(samples, "echo", {"data": 1}, **invalid).status_code == 200
    valid = {"X-Firebase-AppCheck": token("1:1234:ios:5678")}
    results = [post(samples, "whichApp", {"data": 1}, **valid).json() for _ in range(2)]
    assert results == [
        {"result": "1:1234:ios:5678 false"}, {"result": "1:1234:ios:5678 true"}]


# Streaming, as the JS and iOS clients read it.

def test_stream(samples):
    reply = post(samples, "spell", {"data": {"text": "hi!"}}, **STREAM, **ORIGIN)
    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.headers["Cache-Control"] == "no-cache"
    assert reply.headers["X-Accel-Buffering"] == "no"
    assert reply.headers["Access-Control-Allow-Origin"] == ORIGIN["Origin"]
    assert events(reply) == [
        {"message": "h"}, {"message": "i"}, {"message": "!"}, {"result": 3}]
    assert post(samples, "spell", {"data": {"text": "hi!"}}).json() == {"result": 3}


def test_chunks_have_bare_numbers(samples):
    data = {"int": 9007199254740993, "unsigned": 18446744073709551615, "double": 0.5}
    chunk, result = events(post(samples, "numbers", {"data": data}, **STREAM))
    assert chunk == {"message": data}
    assert result["result"]["int"] == {"@type": INT64, "value": "9007199254740993"}


def test_chunks_arrive_while_the_function_runs(samples):
    with requests.post(
            samples.url("stall"), json={"data": "a"}, headers=STREAM, stream=True,
            timeout=30) as reply:
        lines = reply.iter_lines(chunk_size=1)
        assert next(lines) == b'data: {"message":"a"}'
        # The function has not ended; out of time it cannot say so itself.
        last = [line for line in lines if line][-1]
    assert json.loads(last[6:])["error"]["status"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("ending, status", [
    ("fail", "FAILED_PRECONDITION"), ("throw", "INTERNAL"), ("crash", "INTERNAL")])
def test_a_stream_always_ends_with_an_event(samples, ending, status):
    reply = post(samples, "spell", {"data": {"text": "ab", "ending": ending}}, **STREAM)
    assert reply.status_code == 200
    *chunks, last = events(reply)
    assert chunks == [{"message": "a"}, {"message": "b"}]
    assert last["error"]["status"] == status


@pytest.mark.parametrize("change", [
    {"body": "{}"}, {"body": '{"data": {"text": 5}}'}, {"headers": {"Authorization": "Bearer x"}}])
def test_refusals_of_a_stream_are_events(samples, change):
    reply = post(
        samples, "spell", change.get("body", '{"data": {"text": "a"}}'),
        **change.get("headers", {}), **STREAM)
    assert reply.status_code == 200
    assert [list(event) for event in events(reply)] == [["error"]]


def test_hearth_call_prints_chunks(samples):
    shown = samples.cli("call", "spell", "--stream", "--data", '{"text": "hi"}')
    assert (shown.returncode, shown.stdout) == (0, '"h"\n"i"\n2\n')
    failed = samples.cli("call", "spell", "--stream", "--data", '{"text": "a", "ending": "fail"}')
    assert failed.returncode == 1
    assert failed.stdout == '"a"\n'
    assert "FAILED_PRECONDITION: failed as asked" in failed.stderr


# Clients that leave.

def raw_call(function, data, accept="*/*"):
    body = json.dumps({"data": data})
    return (
        f"POST /{PROJECT}/us-central1/{function} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()


def test_leaving_cancels_a_call(samples):
    with connect(samples) as connection:
        connection.sendall(raw_call("slowEcho", {"milliseconds": 60000, "text": "left"}))
        logged(samples, "slowEcho", "Begun")
    # The place is free again at once, and its worker is well.
    assert post(samples, "slowEcho", {"data": {"milliseconds": 0, "text": "x"}}).ok


def test_leaving_cancels_a_stream(samples):
    with connect(samples) as connection:
        connection.sendall(raw_call("stall", "left", "text/event-stream"))
        received = b""
        while b'"left"' not in received:
            received += connection.recv(4096)
    logged(samples, "stall", "Cancelled left")


def test_leaving_frees_the_place_in_every_phase(samples):
    """One place: the first holds it, the second waits; both leave, and the third gets it."""
    with connect(samples) as holder, connect(samples) as waiter:
        holder.sendall(raw_call("turnstile", "hold"))
        until(lambda: load(samples, "turnstile") == (1, 0), "the first does not run")
        waiter.sendall(raw_call("turnstile", "waits"))
        until(lambda: load(samples, "turnstile") == (1, 1), "the second does not wait")
        waiter.close()
        until(lambda: load(samples, "turnstile") == (1, 0), "the second is not given up")
        holder.close()
    assert post(samples, "turnstile", {"data": "next"}).json() == {"result": True}
    assert "Begun waits" not in samples.cli("functions", "logs", "turnstile").stdout


# HTTP functions.

@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"])
def test_http_function_sees_the_request(samples, method):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    reply = requests.request(
        method, samples.url("inspect") + "/a%2Fb//c?x=1&y=%20", data=b"12345", timeout=30,
        headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01", "Host": "app.localhost:99"})
    assert reply.json() == {
        "method": method, "path": "/a%2Fb//c", "query": "x=1&y=%20", "host": "app.localhost:99",
        "traceID": trace, "bytes": 5}
    assert "ETag" not in reply.headers


def test_http_head_and_options(samples):
    assert requests.head(samples.url("inspect"), timeout=30).status_code == 200
    reply = requests.options(samples.url("inspect"), timeout=30)
    assert reply.json()["method"] == "OPTIONS"


def test_http_not_served(samples):
    for path in ("/robots.txt", "/favicon.ico"):
        assert requests.get(samples.url("inspect") + path, timeout=30).status_code == 404


def test_http_upload_streams_both_ways(samples):
    """Each piece comes back before the next is sent, and nobody keeps the whole."""
    host, port = samples.address("functions").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.putrequest("PUT", f"/{PROJECT}/us-central1/echoBody")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    first, second = b"a" * 100_000, b"b" * 100_000

    def send(piece):
        connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))

    send(first)
    reply = connection.getresponse()
    assert reply.status == 200
    assert reply.read(len(first)) == first
    send(second)
    assert reply.read(len(second)) == second
    connection.send(b"0\r\n\r\n")
    assert reply.read() == b""
    connection.close()


def test_http_limits(samples):
    most = 32 << 20
    assert requests.post(
        samples.url("inspect"), data=b"x" * most, timeout=60).json()["bytes"] == most

    def chunks():
        for _ in range(33):
            yield b"x" * (1 << 20)

    with connect(samples) as connection:
        connection.sendall(
            f"PUT /{PROJECT}/us-central1/inspect HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {most + 1}\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")
    assert requests.post(samples.url("inspect"), data=chunks(), timeout=60).status_code == 413
    large = requests.get(samples.url("produce") + "?bytes=100000000", stream=True, timeout=60)
    assert sum(len(piece) for piece in large.iter_content(1 << 20)) == 100_000_000


def test_http_errors(samples):
    thrown = requests.get(samples.url("produce") + "/throw", timeout=30)
    assert (thrown.status_code, thrown.text) == (500, "Internal Server Error\n")
    assert thrown.headers["X-Google-Status"] == "error"
    crashed = requests.get(samples.url("produce") + "/crash", timeout=30)
    assert crashed.status_code == 500
    assert crashed.headers["X-Google-Status"] == "crash"
    assert requests.get(samples.url("produce") + "/none", timeout=30).status_code == 204
    with pytest.raises(requests.exceptions.RequestException):
        requests.get(samples.url("produce") + "/cut?bytes=10", timeout=30).content


def test_a_handler_that_throws_while_it_streams_has_failed_and_not_crashed(samples):
    trace = "c" * 32

    def lines():
        reply = samples.hub("GET", "/hearth/v1/logs", params={"function": "produce"})
        logged = [json.loads(line) for line in reply.text.splitlines()]
        own = {line["invocation"] for line in logged if line.get("trace") == trace}
        return [line for line in logged if line.get("invocation") in own]

    with pytest.raises(requests.exceptions.RequestException):
        requests.get(samples.url("produce") + "/cut?bytes=10", timeout=30,
                     headers={"traceparent": f"00-{trace}-{1:016x}-01"}).content

    until(lambda: any(line.get("end") for line in lines()), lines)
    logged = lines()
    assert [line["end"]["outcome"] for line in logged if line.get("end")] == ["failed"]
    assert "critical" not in [line["level"] for line in logged], logged
    assert any("failed while it responded" in line["message"] for line in logged), logged


def test_http_cors(samples):
    """The emulator opens functions that say nothing, and leaves those alone that do."""
    asked = {**ORIGIN, "Access-Control-Request-Method": "PUT"}
    for function, origin in (("inspect", OTHER), ("echoBody", ORIGIN["Origin"])):
        reply = requests.options(
            samples.url(function), headers={**asked, "Origin": origin}, timeout=30)
        assert reply.status_code == 204
        assert reply.headers["Access-Control-Allow-Origin"] == origin
        assert reply.headers["Access-Control-Allow-Methods"] == "GET,HEAD,PUT,PATCH,POST,DELETE"
    refused = requests.get(
        samples.url("echoBody"), headers={"Origin": OTHER}, timeout=30)
    assert "Access-Control-Allow-Origin" not in refused.headers


def test_slow_reader_holds_the_function_up_and_leaving_ends_it(samples):
    with connect(samples) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sendall(
            f"GET /{PROJECT}/us-central1/produce?bytes=1000000000000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            .encode())
        assert b"200 OK" in connection.recv(4096)
        logged(samples, "produce", "Begun")
    logged(samples, "produce", "Cancelled")


def test_leaving_cuts_an_upload(samples):
    with connect(samples) as connection:
        connection.sendall(
            f"PUT /{PROJECT}/us-central1/echoBody HTTP/1.1\r\nHost: localhost\r\n"
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".encode())
        received = b""
        while b"abc" not in received:
            received += connection.recv(4096)
    logged(samples, "echoBody", "Cut")
