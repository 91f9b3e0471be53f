"""Documents through google-cloud-firestore over gRPC."""

import datetime

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.vector import Vector


def test_every_type_comes_back_as_it_was_written(db, collection):
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    data = {
        "null": None, "true": True, "false": False, "zero": 0, "int": -(2**63), "double": 3.0,
        "infinity": float("inf"), "text": "Grüße \U0001f600", "empty": "", "bytes": b"\x00\xff",
        "time": when, "point": firestore.GeoPoint(1.5, -2.5), "array": [1, "a", None, {"b": []}],
        "map": {"a.b": 1, "nested": {"x": {}}},
        "reference": db.document("users/alice"), "vector": Vector([1.0, 2.5]),
    }
    document = collection.document("all")

    document.set(data)

    read = document.get().to_dict()
    assert {k: v for k, v in read.items() if k != "time"} == {
        k: v for k, v in data.items() if k != "time"}
    assert read["time"] == when
    assert isinstance(read["double"], float) and isinstance(read["zero"], int)


def test_create_refuses_an_existing_document(collection):
    document = collection.document("d")
    document.create({"a": 1})

    with pytest.raises(exceptions.AlreadyExists):
        document.create({"a": 2})
    assert document.get().to_dict() == {"a": 1}


def test_update_needs_a_document_and_touches_only_its_fields(collection):
    document = collection.document("d")
    with pytest.raises(exceptions.NotFound):
        document.update({"a": 1})

    document.set({"a": {"b": 1, "c": 2}, "d": 3})
    document.update({"a.b": 10, "d": firestore.DELETE_FIELD})
    assert document.get().to_dict() == {"a": {"b": 10, "c": 2}}


def test_set_with_merge_keeps_other_fields(collection):
    document = collection.document("d")
    document.set({"a": {"b": 1, "c": 2}, "d": 3})

    document.set({"a": {"b": 9}}, merge=True)

    assert document.get().to_dict() == {"a": {"b": 9, "c": 2}, "d": 3}


def test_transforms_compute_on_the_server(collection):
    document = collection.document("d")
    document.set({"n": 1, "list": [1, 2], "max": 3})

    document.update({
        "n": firestore.Increment(2), "list": firestore.ArrayUnion([2, 3]),
        "max": firestore.Maximum(7), "at": firestore.SERVER_TIMESTAMP})
    document.update({"list": firestore.ArrayRemove([1])})

    data = document.get().to_dict()
    assert (data["n"], data["list"], data["max"]) == (3, [2, 3], 7)
    assert isinstance(data["at"], datetime.datetime)


def test_a_batch_is_all_or_nothing(db, collection):
    batch = db.batch()
    batch.set(collection.document("a"), {"x": 1})
    batch.update(collection.document("missing"), {"x": 1})

    with pytest.raises(exceptions.NotFound):
        batch.commit()
    assert not collection.document("a").get().exists


def test_a_stale_update_time_is_refused(db, collection):
    document = collection.document("d")
    first = document.set({"a": 1})
    document.set({"a": 2})

    with pytest.raises(exceptions.FailedPrecondition):
        document.update({"a": 3}, option=db.write_option(last_update_time=first.update_time))


def test_deleting_leaves_subcollections(collection):
    parent = collection.document("p")
    parent.set({})
    parent.collection("sub").document("s").set({"a": 1})

    parent.delete()

    assert not parent.get().exists
    assert [c.id for c in parent.collections()] == ["sub"]
    assert parent.collection("sub").document("s").get().exists


def test_too_large_a_document_is_an_invalid_argument(collection):
    with pytest.raises(exceptions.InvalidArgument):
        collection.document("big").set({"a": "x" * 600_000, "b": "y" * 600_000})


def test_get_all_reports_missing_documents(db, collection):
    collection.document("a").set({"x": 1})

    found = {d.id: d.exists for d in db.get_all([collection.document("a"), collection.document("b")])}

    assert found == {"a": True, "b": False}


def test_names_that_differ_only_in_their_unicode_form_are_two_fields(db, collection):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    document = collection.document("forms")

    document.set({composed: 1, decomposed: 2, "m": {composed: 3, decomposed: 4}})
    assert document.get().to_dict() == {
        composed: 1, decomposed: 2, "m": {composed: 3, decomposed: 4}}

    document.set({composed: 1})
    changed = document.set({decomposed: 1})
    assert document.get().to_dict() == {decomposed: 1}
    assert document.get().update_time == changed.update_time

    document.update({f"`{composed}`": 5})
    assert document.get().to_dict() == {composed: 5, decomposed: 1}
    document.set({composed: firestore.Increment(1), decomposed: firestore.Increment(1)}, merge=True)
    assert document.get().to_dict() == {composed: 6, decomposed: 2}

    found = collection.where(filter=firestore.FieldFilter(f"`{decomposed}`", "==", 2)).get()
    assert [one.id for one in found] == ["forms"]
    assert not collection.where(filter=firestore.FieldFilter(f"`{decomposed}`", "==", 6)).get()
    [sums] = collection.sum(f"`{composed}`", alias=composed).sum(
        f"`{decomposed}`", alias=decomposed).get()
    assert {one.alias: one.value for one in sums} == {composed: 6, decomposed: 2}
