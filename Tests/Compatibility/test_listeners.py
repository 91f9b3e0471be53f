"""`on_snapshot` of google-cloud-firestore: what a program that follows documents is shown."""

import queue
import re

from google.cloud.firestore_v1.base_query import FieldFilter

WAIT = 30


class Shown:
    """What a listener was shown, one snapshot at a time."""

    def __init__(self, watched):
        self.snapshots = queue.Queue()
        self.watch = watched.on_snapshot(lambda *snapshot: self.snapshots.put(snapshot))

    def next(self):
        documents, changes, _ = self.snapshots.get(timeout=WAIT)
        return ([document.id for document in documents],
                {(change.type.name, change.document.id) for change in changes})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watch.unsubscribe()


def listening(suite):
    """How many listeners there are, and how many different targets they have."""
    text = suite.hub("GET", "/metrics").text
    return tuple(int(float(re.search(rf"^hearth_{name} (\S+)$", text, re.MULTILINE).group(1)))
                 for name in ("listeners", "listen_targets"))


def test_the_metrics_count_listeners_and_their_targets(collection, suite):
    listeners, targets = listening(suite)
    with Shown(collection) as one, Shown(collection) as two:
        one.next()
        two.next()
        assert listening(suite) == (listeners + 2, targets + 1)


def test_a_query_is_shown_before_and_after_each_commit(collection, db):
    collection.document("a").set({"n": 1})
    query = collection.where(filter=FieldFilter("n", "<", 5)).order_by("n")
    with Shown(query) as shown:
        assert shown.next() == (["a"], {("ADDED", "a")})

        batch = db.batch()
        batch.set(collection.document("b"), {"n": 2})
        batch.set(collection.document("c"), {"n": 7})
        batch.update(collection.document("a"), {"n": 3})
        batch.commit()
        assert shown.next() == (["b", "a"], {("ADDED", "b"), ("MODIFIED", "a")})

        collection.document("a").update({"n": 9})
        assert shown.next() == (["b"], {("REMOVED", "a")})
        collection.document("b").delete()
        assert shown.next() == ([], {("REMOVED", "b")})


def test_a_limit_is_filled_again_in_the_same_snapshot(collection):
    for number in range(5):
        collection.document(f"d{number}").set({"n": number})
    with Shown(collection.order_by("n").limit(2)) as shown:
        assert shown.next() == (["d0", "d1"], {("ADDED", "d0"), ("ADDED", "d1")})
        collection.document("d0").delete()
        assert shown.next() == (["d1", "d2"], {("REMOVED", "d0"), ("ADDED", "d2")})
        collection.document("d9").set({"n": -1})
        assert shown.next() == (["d9", "d1"], {("ADDED", "d9"), ("REMOVED", "d2")})


def test_a_document_is_shown_while_it_is_missing(collection):
    reference = collection.document("a")
    with Shown(reference) as shown:
        assert shown.next()[0] == []
        reference.set({"n": 1})
        assert shown.next()[0] == ["a"]
        reference.delete()
        assert shown.next()[0] == []


def test_many_listeners_of_one_client_are_each_shown_every_commit(collection):
    listeners = [Shown(collection.where(filter=FieldFilter("group", "==", number % 4)))
                 for number in range(20)]
    for shown in listeners:
        assert shown.next() == ([], set())

    for number in range(8):
        collection.document(f"d{number}").set({"group": number % 4})

    for index, shown in enumerate(listeners):
        group = index % 4
        assert shown.next() == ([f"d{group}"], {("ADDED", f"d{group}")})
        assert shown.next() == ([f"d{group}", f"d{group + 4}"], {("ADDED", f"d{group + 4}")})
        shown.watch.unsubscribe()
