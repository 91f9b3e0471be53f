"""Transactions through google-cloud-firestore over gRPC."""

import threading

import pytest
from google.api_core import exceptions
from google.cloud import firestore


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
