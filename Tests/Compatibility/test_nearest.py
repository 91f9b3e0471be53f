"""Searches for nearest vectors through google-cloud-firestore over gRPC."""

import math

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.vector import Vector


@pytest.fixture
def vectors(db, collection):
    """A collection of documents with vectors of two numbers and others."""
    batch = db.batch()
    for name, fields in {
        "east": {"v": Vector([1.0, 0.0]), "side": "x"},
        "far": {"v": Vector([10.0, 0.0]), "side": "x"},
        "north": {"v": Vector([0.0, 1.0]), "side": "y"},
        "slope": {"v": Vector([1.0, 1.0]), "side": "y"},
        "none": {"v": Vector([0.0, 0.0]), "side": "x"},
        "long": {"v": Vector([1.0, 0.0, 0.0]), "side": "x"},
        "list": {"v": [1.0, 0.0], "side": "x"},
        "inside": {"map": {"v": Vector([2.0, 0.0])}, "side": "z"},
    }.items():
        batch.set(collection.document(name), fields)
    batch.commit()
    return collection


def nearest(query, measure, vector=(1.0, 0.0), limit=10, field="v", **options):
    """The ids of the results, with their distances where they are asked for."""
    results = query.find_nearest(
        field, Vector(list(vector)), distance_measure=measure, limit=limit, **options).get()
    if "distance_result_field" not in options:
        return [result.id for result in results]
    return [(result.id, result.get(options["distance_result_field"])) for result in results]


def test_nearest_by_each_measure(vectors):
    # Equally near ones come by name.
    assert nearest(vectors, DistanceMeasure.EUCLIDEAN, distance_result_field="d") == [
        ("east", 0.0), ("none", 1.0), ("slope", 1.0), ("north", math.sqrt(2)), ("far", 9.0)]
    with pytest.raises(exceptions.FailedPrecondition, match="magnitude of zero"):
        nearest(vectors, DistanceMeasure.COSINE)
    vectors.document("none").delete()
    assert nearest(vectors, DistanceMeasure.COSINE, distance_result_field="d") == [
        ("east", 0.0), ("far", 0.0), ("slope", 1 - 1 / math.sqrt(2)), ("north", 1.0)]
    assert nearest(vectors, DistanceMeasure.DOT_PRODUCT, distance_result_field="d") == [
        ("far", 10.0), ("east", 1.0), ("slope", 1.0), ("north", 0.0)]


def test_nearest_within_a_threshold(vectors):
    assert nearest(vectors, DistanceMeasure.EUCLIDEAN, distance_threshold=1.0) == [
        "east", "none", "slope"]
    assert nearest(vectors, DistanceMeasure.DOT_PRODUCT, distance_threshold=1.0) == [
        "far", "east", "slope"]
    vectors.document("none").delete()
    assert nearest(vectors, DistanceMeasure.COSINE, distance_threshold=0.5) == [
        "east", "far", "slope"]


def test_nearest_among_filtered_documents(vectors):
    filtered = vectors.where(filter=FieldFilter("side", "==", "y"))
    assert nearest(filtered, DistanceMeasure.EUCLIDEAN) == ["slope", "north"]
    assert nearest(filtered, DistanceMeasure.EUCLIDEAN, limit=1) == ["slope"]
    ranged = vectors.where(filter=FieldFilter("side", ">", "x"))
    assert nearest(ranged, DistanceMeasure.DOT_PRODUCT) == ["slope", "north"]


def test_nearest_with_selected_fields(vectors):
    query = vectors.select(["side", "`d.x`"]).find_nearest(
        "v", Vector([1.0, 0.0]), distance_measure=DistanceMeasure.EUCLIDEAN, limit=1,
        distance_result_field="d.x")
    assert [result.to_dict() for result in query.get()] == [{"side": "x", "d.x": 0.0}]


def test_nearest_of_vectors_within_maps(vectors):
    assert nearest(vectors, DistanceMeasure.EUCLIDEAN, field="map.v") == ["inside"]


def test_nearest_in_a_group_and_a_transaction(db, vectors):
    vectors.document("east").collection(vectors.id).document("deep").set({"v": Vector([1.0, 0.1])})
    group = db.collection_group(vectors.id)
    assert nearest(group, DistanceMeasure.EUCLIDEAN, limit=2) == ["east", "deep"]

    @firestore.transactional
    def move(transaction):
        query = vectors.find_nearest(
            "v", Vector([9.0, 0.0]), distance_measure=DistanceMeasure.EUCLIDEAN, limit=1)
        [found] = query.get(transaction=transaction)
        transaction.update(found.reference, {"found": True})
        return found.id

    assert move(db.transaction()) == "far"
    assert vectors.document("far").get().get("found") is True


@pytest.mark.parametrize("query, words", [
    (lambda c: c.limit(2), "A query limit cannot be used"),
    (lambda c: c.offset(2), "A query offset cannot be used"),
    (lambda c: c.order_by("side").start_at({"side": "x"}), "A cursor cannot be used"),
])
def test_nearest_of_a_part_of_a_query_is_refused(vectors, query, words):
    with pytest.raises(exceptions.InvalidArgument, match=words):
        nearest(query(vectors), DistanceMeasure.EUCLIDEAN)


@pytest.mark.parametrize("limit", [0, 1001])
def test_nearest_of_too_many_is_refused(vectors, limit):
    with pytest.raises(exceptions.InvalidArgument, match="FindNearest.limit"):
        nearest(vectors, DistanceMeasure.EUCLIDEAN, limit=limit)
