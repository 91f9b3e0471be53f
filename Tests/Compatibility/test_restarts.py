"""A suite that is killed and started again on its folder, with the machine's time again."""

import queue
import signal

import conftest
import grpc
from google.cloud.firestore_v1.types import firestore, query

DATABASE = f"projects/{conftest.PROJECT}/databases/(default)"
KIND = firestore.TargetChange.TargetChangeType


class Watch:
    """One listener of a collection."""

    def __init__(self, suite, collection, resume_token=b""):
        self.requests = queue.SimpleQueue()
        asked = query.StructuredQuery(
            from_=[query.StructuredQuery.CollectionSelector(collection_id=collection)])
        self.requests.put(firestore.ListenRequest(
            database=DATABASE, add_target=firestore.Target(
                target_id=2, resume_token=resume_token, query=firestore.Target.QueryTarget(
                    parent=f"{DATABASE}/documents", structured_query=asked))))
        self.channel = grpc.insecure_channel(suite.address("firestore"))
        call = self.channel.stream_stream(
            "/google.firestore.v1.Firestore/Listen", firestore.ListenRequest.serialize,
            firestore.ListenResponse.deserialize)
        self.replies = call(
            iter(self.requests.get, None), timeout=30,
            metadata=[("authorization", "Bearer owner"),
                      ("google-cloud-resource-prefix", DATABASE)])

    def to_snapshot(self):
        """The ids of the documents up to the next snapshot, its token, and whether it was reset."""
        names, is_reset = set(), False
        for reply in self.replies:
            change = reply.target_change
            assert change.target_change_type != KIND.REMOVE, change.cause
            is_reset = is_reset or change.target_change_type == KIND.RESET
            if reply.document_change.document.name:
                names.add(reply.document_change.document.name.rsplit("/", 1)[1])
            if "target_change" in reply and change.resume_token and not change.target_ids:
                return names, change.resume_token, is_reset
        raise AssertionError("the stream has ended")

    def close(self):
        self.requests.put(None)
        self.channel.close()


def kill(suite):
    suite.process.send_signal(signal.SIGKILL)
    suite.process.wait(timeout=5)


def start(folder):
    """A suite that nobody stops at the end: `conftest.started` expects a clean stop."""
    return conftest.started(folder, "--no-functions", "--data", str(folder / "data"),
                            ephemeral=False)


def test_a_listener_goes_on_over_a_kill_after_the_clock_was_moved_ahead(tmp_path):
    first = start(tmp_path)
    suite = first.__enter__()
    collection = conftest.client(suite).collection("c")
    collection.document("a").set({"n": 1})
    assert suite.cli("clock", "advance", "24h").returncode == 0
    watch = Watch(suite, "c")
    names, token, _ = watch.to_snapshot()
    assert names == {"a"}
    watch.close()
    kill(suite)

    with start(tmp_path) as suite:
        collection = conftest.client(suite).collection("c")
        # While nobody listens.
        written = collection.document("b").set({"n": 2})
        later = collection.document("a").set({"n": 3})
        assert written.update_time < later.update_time
        watch = Watch(suite, "c", token)
        names, token, is_reset = watch.to_snapshot()
        assert is_reset or names == {"a", "b"}
        assert {"a", "b"} <= names
        collection.document("c").set({"n": 4})
        assert "c" in watch.to_snapshot()[0]
        watch.close()
        stamps = []
        for _ in range(3):
            collection.document("d").set({"at": conftest.firestore.SERVER_TIMESTAMP})
            stamps.append(collection.document("d").get().get("at"))
            conftest.time.sleep(0.02)
        assert len(set(stamps)) == 3, "server timestamps go on while the machine's clock is behind"
