"""The emulator's gRPC endpoint, driven by Google's own gRPC library without a Firestore client."""

import concurrent.futures
import pathlib
import subprocess
import threading
import uuid

import grpc
import pytest
from google.cloud.firestore_v1.types import document, firestore

SERVICE = "/google.firestore.v1.Firestore"
DATABASE = "projects/demo-psst/databases/(default)"


def name(path):
    return f"{DATABASE}/documents/{path}"


def unary(channel, method, reply):
    return channel.unary_unary(
        f"{SERVICE}/{method}",
        request_serializer=lambda request: type(request).serialize(request),
        response_deserializer=reply.deserialize)


def get_document(channel):
    return unary(channel, "GetDocument", document.Document)


def create(channel, path, text):
    write = firestore.CommitRequest(database=DATABASE, writes=[
        {"update": {"name": name(path), "fields": {"t": {"string_value": text}}}}])
    unary(channel, "Commit", firestore.CommitResponse)(write, timeout=30)


@pytest.fixture
def channel(suite):
    with grpc.insecure_channel(suite.address("firestore")) as channel:
        yield channel


@pytest.fixture
def path(channel):
    path = f"grpc/{uuid.uuid4().hex}"
    create(channel, path, "x" * 20_000)
    return path


def test_gzip_goes_both_ways(suite, path):
    with grpc.insecure_channel(
            suite.address("firestore"), compression=grpc.Compression.Gzip) as channel:
        call = get_document(channel).with_call
        reply, info = call(firestore.GetDocumentRequest(name=name(path)), timeout=30)

        assert reply.fields["t"].string_value == "x" * 20_000
        assert dict(info.initial_metadata()).get("grpc-encoding", "gzip") == "gzip"
        create(channel, f"grpc/{uuid.uuid4().hex}", "y" * 50_000)


def test_an_unknown_compression_is_unimplemented(suite):
    with grpc.insecure_channel(
            suite.address("firestore"), compression=grpc.Compression.Deflate) as channel:
        with pytest.raises(grpc.RpcError) as error:
            create(channel, "grpc/deflate", "x" * 20_000)

    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_an_unknown_method_and_service_are_unimplemented(channel):
    for method in [f"{SERVICE}/Nope", "/no.Service/GetDocument"]:
        with pytest.raises(grpc.RpcError) as error:
            channel.unary_unary(method)(b"", timeout=30)

        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_garbage_is_an_invalid_argument(channel):
    with pytest.raises(grpc.RpcError) as error:
        channel.unary_unary(f"{SERVICE}/GetDocument")(b"\xff\xff\xff", timeout=30)

    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_an_oversized_request_is_refused_for_good(suite):
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(suite.address("firestore"), options=options) as channel:
        with pytest.raises(grpc.RpcError) as error:
            create(channel, "grpc/big", "x" * (11 << 20))

    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "11534336" in error.value.details()


def test_a_decompression_bomb_is_refused(suite):
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(suite.address("firestore"), options=options,
                               compression=grpc.Compression.Gzip) as channel:
        with pytest.raises(grpc.RpcError) as error:
            create(channel, "grpc/bomb", "x" * (64 << 20))

    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_two_thousand_cancelled_calls_leave_the_connection(channel, path):
    get = get_document(channel)
    for _ in range(2000):
        get.future(firestore.GetDocumentRequest(name=name(path))).cancel()

    assert get(firestore.GetDocumentRequest(name=name(path)), timeout=30).name == name(path)


def test_a_thousand_calls_at_once_are_answered(channel, path):
    get = get_document(channel)
    calls = [get.future(firestore.GetDocumentRequest(name=name(path)), timeout=60)
             for _ in range(1500)]

    assert all(call.result().name == name(path) for call in calls)


def test_threads_share_a_channel(channel, path):
    get = get_document(channel)

    def read(_):
        return get(firestore.GetDocumentRequest(name=name(path)), timeout=60).name

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert set(pool.map(read, range(1000))) == {name(path)}


def resident(suite):
    """The memory of the suite's process in KiB."""
    text = pathlib.Path(f"/proc/{suite.process.pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


def test_memory_is_flat_over_ten_thousand_calls(suite, channel, path):
    get = get_document(channel)

    def read(count):
        for _ in range(count):
            get(firestore.GetDocumentRequest(name=name(path)), timeout=30)

    read(1000)
    after_thousand = resident(suite)
    read(9000)

    assert resident(suite) - after_thousand < 8 * 1024


def test_a_slow_reader_gets_a_large_reply_whole(channel):
    collection = f"slow{uuid.uuid4().hex}"
    for number in range(40):
        create(channel, f"{collection}/{number}", "z" * 200_000)
    query = channel.unary_stream(
        f"{SERVICE}/RunQuery",
        request_serializer=lambda request: type(request).serialize(request),
        response_deserializer=firestore.RunQueryResponse.deserialize)
    replies = query(firestore.RunQueryRequest(
        parent=f"{DATABASE}/documents",
        structured_query={"from_": [{"collection_id": collection}]}), timeout=60)
    first = next(replies)
    # Others are answered while this one's client does not read.
    other = threading.Thread(target=create, args=(channel, f"{collection}x/1", "a"))
    other.start()
    other.join(30)

    assert not other.is_alive()
    assert first.document.name.startswith(name(collection))
    assert sum(1 for reply in replies if reply.document.name) == 39


def test_rest_over_http2(suite, path):
    url = f"http://{suite.address('firestore')}/v1/{name(path)}"
    curl = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", "-w", "\n%{http_version} %{http_code}", url],
        capture_output=True, text=True, timeout=30, check=False)
    if "libcurl version doesn't support" in curl.stderr:
        pytest.skip("curl has no HTTP/2")

    body, version = curl.stdout.rsplit("\n", 1)
    assert version == "2 200", curl.stderr
    assert "x" * 20_000 in body


def test_a_deadline_ends_a_call(channel, path):
    """A write waits for the transaction that has read its document, and longer than it may."""
    begun = unary(channel, "BeginTransaction", firestore.BeginTransactionResponse)(
        firestore.BeginTransactionRequest(database=DATABASE), timeout=30)
    get_document(channel)(firestore.GetDocumentRequest(
        name=name(path), transaction=begun.transaction), timeout=30)
    write = firestore.CommitRequest(
        database=DATABASE, writes=[{"update": {"name": name(path)}}])
    with pytest.raises(grpc.RpcError) as error:
        unary(channel, "Commit", firestore.CommitResponse)(write, timeout=0.3)

    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_readers_that_stall_hold_a_page_each_and_not_their_results(suite, channel):
    """Eight clients ask for 40 MB each, take one result and wait; then one reads to the end."""
    collection = f"stalled{uuid.uuid4().hex}"
    for number in range(40):
        create(channel, f"{collection}/{number:02}", "z" * 1_000_000)
    before = resident(suite)
    channels = [grpc.insecure_channel(suite.address("firestore")) for _ in range(8)]
    try:
        replies = []
        for other in channels:
            query = other.unary_stream(
                f"{SERVICE}/RunQuery",
                request_serializer=lambda request: type(request).serialize(request),
                response_deserializer=firestore.RunQueryResponse.deserialize)
            replies.append(query(firestore.RunQueryRequest(
                parent=f"{DATABASE}/documents",
                structured_query={"from_": [{"collection_id": collection}]}), timeout=100))
        firsts = [next(stream).document.name for stream in replies]
        # Whatever the suite makes for those that do not read, it has made by the time that it has
        # answered others for a while.
        for _ in range(200):
            get_document(channel)(firestore.GetDocumentRequest(name=firsts[0]), timeout=30)
        grown = resident(suite) - before
        rest = [reply.document.name for reply in replies[0]]
    finally:
        for other in channels:
            other.close()

    assert len(rest) == 39
    # 8 x 40 MB would be 320 MB; a page is at most 4 MiB, stored, decoded and on its way.
    assert grown < 160 * 1024
