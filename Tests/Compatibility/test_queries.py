"""Queries through google-cloud-firestore over gRPC."""

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter, Or


@pytest.fixture
def people(collection):
    for name, age, tags in [
            ("ann", 30, ["a", "b"]), ("bob", 25, ["b"]), ("cat", 30, []), ("dan", None, ["c"])]:
        collection.document(name).set({"age": age, "tags": tags, "name": name})
    collection.document("eve").set({"name": "eve"})
    return collection


def ids(query):
    return [document.id for document in query.stream()]


def where(collection, field, operator, value):
    return collection.where(filter=FieldFilter(field, operator, value))


@pytest.mark.parametrize("operator, value, expected", [
    ("==", 30, ["ann", "cat"]), ("<", 30, ["bob"]), (">=", 30, ["ann", "cat"]),
    ("!=", 30, ["bob"]), ("in", [25, 30], ["ann", "bob", "cat"]), ("not-in", [25], ["ann", "cat"]),
    ("==", None, ["dan"]),
])
def test_filters_on_a_number(people, operator, value, expected):
    assert sorted(ids(where(people, "age", operator, value))) == expected


@pytest.mark.parametrize("operator, value, expected", [
    ("array_contains", "b", ["ann", "bob"]), ("array_contains_any", ["a", "c"], ["ann", "dan"]),
])
def test_filters_on_an_array(people, operator, value, expected):
    assert sorted(ids(where(people, "tags", operator, value))) == expected


def test_order_drops_documents_without_the_field_and_breaks_ties_by_name(people):
    assert ids(people.order_by("age")) == ["dan", "bob", "ann", "cat"]
    descending = people.order_by("age", direction=firestore.Query.DESCENDING)
    assert ids(descending) == ["cat", "ann", "bob", "dan"]


def test_cursors_limits_and_offsets(people):
    query = people.order_by("name")
    assert ids(query.start_at({"name": "bob"}).limit(2)) == ["bob", "cat"]
    assert ids(query.start_after({"name": "bob"}).end_before({"name": "eve"})) == ["cat", "dan"]
    assert ids(query.offset(3)) == ["dan", "eve"]
    assert [d.id for d in query.limit_to_last(2).get()] == ["dan", "eve"]


def test_or_and_projection(people):
    query = people.where(filter=Or([FieldFilter("age", "==", 25), FieldFilter("name", "==", "eve")]))
    assert sorted(ids(query)) == ["bob", "eve"]
    assert [d.to_dict() for d in where(people, "age", "==", 25).select(["name"]).stream()] == [
        {"name": "bob"}]


def test_a_collection_group_finds_every_collection_of_the_id(db, collection):
    group = f"g{collection.id}"
    for parent in ("x", "y"):
        collection.document(parent).collection(group).document("d").set({"n": 1})

    found = [d.reference.path for d in db.collection_group(group).stream()]

    assert sorted(found) == sorted(
        f"{collection.id}/{parent}/{group}/d" for parent in ("x", "y"))


def test_a_large_collection_answers_like_a_small_one(db, collection):
    for start in range(0, 1500, 500):
        batch = db.batch()
        for number in range(start, start + 500):
            batch.set(collection.document(f"d{number:05}"), {"n": number, "mod": number % 7})
        batch.commit()

    low = where(collection, "n", "<", 3)
    for _ in range(3):
        assert ids(low) == ["d00000", "d00001", "d00002"]
        assert len(ids(where(collection, "mod", "==", 3))) == 214
        assert ids(collection.order_by("n", direction="DESCENDING").limit(2)) == [
            "d01499", "d01498"]


def test_an_impossible_query_is_an_invalid_argument(people):
    query = where(where(people, "tags", "array_contains", "a"), "tags", "array_contains", "b")
    with pytest.raises(exceptions.InvalidArgument):
        ids(query)


def test_counts(people):
    assert people.count().get()[0][0].value == 5
