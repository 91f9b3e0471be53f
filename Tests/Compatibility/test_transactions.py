"""Transactions through google-cloud-firestore over gRPC."""

import concurrent.futures
import threading

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1 import types


def test_concurrent_increments_are_all_counted(db, collection):
    counter = collection.document("counter")
    counter.set({"n": 0})

    @firestore.transactional
    def increment(transaction):
        value = counter.get(transaction=transaction).get("n")
        transaction.update(counter, {"n": value + 1})

    def work():
        for _ in range(5):
            increment(db.transaction(max_attempts=50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)

    assert counter.get().get("n") == 20


def test_an_exception_rolls_back(db, collection):
    document = collection.document("d")

    @firestore.transactional
    def fail(transaction):
        transaction.set(document, {"a": 1})
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        fail(db.transaction())
    assert not document.get().exists


def test_a_read_only_transaction_reads_one_moment(db, collection):
    document = collection.document("d")
    document.set({"a": 1})
    transaction = db.transaction(read_only=True)

    @firestore.transactional
    def read_twice(transaction):
        first = document.get(transaction=transaction).get("a")
        document.set({"a": 2})
        return first, document.get(transaction=transaction).get("a")

    assert read_twice(transaction) == (1, 1)


def test_writing_in_a_read_only_transaction_is_refused(db, collection):
    @firestore.transactional
    def write(transaction):
        collection.document("d").get(transaction=transaction)
        transaction.set(collection.document("d"), {"a": 1})

    with pytest.raises((exceptions.InvalidArgument, ValueError)):
        write(db.transaction(read_only=True))


@pytest.mark.parametrize("end", ["cancel", "deadline"])
def test_a_query_that_ends_early_leaves_no_transaction(db, collection, end):
    """Whatever ends a call ends the transaction that it began, and with it its locks."""
    for start in range(0, 1500, 300):
        batch = db.batch()
        for number in range(start, start + 300):
            batch.set(collection.document(f"d{number:05}"), {"text": "x" * 2000})
        batch.commit()
    query = types.StructuredQuery(
        from_=[types.StructuredQuery.CollectionSelector(collection_id=collection.id)])
    options = types.TransactionOptions(read_write=types.TransactionOptions.ReadWrite())
    # The client looks for the first message before it returns, so the deadline may pass there, too.
    with pytest.raises((InterruptedError, exceptions.DeadlineExceeded)):
        stream = iter(db._firestore_api.run_query(
            request=types.RunQueryRequest(
                parent=f"{db._database_string}/documents", structured_query=query,
                new_transaction=options),
            timeout=0.02 if end == "deadline" else 30, retry=None))
        next(stream)
        next(stream)
        if end == "cancel":
            raise InterruptedError
        for _ in stream:
            pass
    stream = None
    # A lock left behind would hold this up for 15 seconds.
    collection.document("d00000").set({"text": "after"}, timeout=10, retry=None)


def test_forty_clients_add_to_one_document(db, collection):
    """With the client's own five attempts everybody succeeds."""
    hot = collection.document("hot")
    hot.set({"n": 0})

    @firestore.transactional
    def add(transaction):
        transaction.update(hot, {"n": hot.get(transaction=transaction).get("n") + 1})

    def client(_):
        for _ in range(4):
            add(db.transaction())

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        list(pool.map(client, range(40)))
    assert hot.get().get("n") == 160
