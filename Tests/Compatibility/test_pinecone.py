"""The `pinecone` client, unmodified, against the vector index.

Runs with every client from 7.3 on: what a version does not have is skipped. The newest is in
requirements.txt.
"""

import json
import math
import random
import uuid

import pinecone
import pytest
import requests
from pinecone import Pinecone, ServerlessSpec
from pinecone.exceptions import NotFoundException, PineconeApiException

SPEC = ServerlessSpec(cloud="aws", region="us-east-1")
MAJOR = int(pinecone.__version__.split(".")[0])
HAS_SCHEMAS = MAJOR >= 10


@pytest.fixture(scope="session")
def address(suite):
    return f"http://{suite.address('vectors')}"


@pytest.fixture(scope="session")
def pc(address):
    return Pinecone(api_key="any", host=address)


@pytest.fixture
def name(pc):
    name = f"t-{uuid.uuid4().hex[:12]}"
    yield name
    if pc.has_index(name):
        pc.configure_index(name, deletion_protection="disabled")
        pc.delete_index(name)


def make(pc, name, dimension=2, metric="cosine", **more):
    pc.create_index(name=name, dimension=dimension, metric=metric, spec=SPEC, **more)
    return pc.Index(host=pc.describe_index(name).host)


@pytest.fixture
def index(pc, name):
    return make(pc, name)


@pytest.fixture
def filled(index):
    index.upsert(vectors=[
        {"id": "a", "values": [1.0, 0.0], "metadata": {"genre": "drama", "year": 2019, "ok": True}},
        {"id": "b", "values": [0.8, 0.6], "metadata": {"genre": "comedy", "year": 2020}},
        {"id": "c", "values": [0.0, 1.0], "metadata": {"tags": ["x", "y"], "year": 2021.5}},
        {"id": "d", "values": [-1.0, 0.0]},
    ])
    return index


def raw(address, method, path, body=None, version="2025-10"):
    headers = {"Api-Key": "any", "X-Pinecone-Api-Version": version}
    return requests.request(method, address + path, json=body, headers=headers, timeout=30)


def status_of(error):
    """The HTTP status of an error, whose attribute was renamed between versions."""
    return getattr(error.value, "status", None) or error.value.status_code


def refused(call, status, *words):
    with pytest.raises(PineconeApiException) as error:
        call()
    assert status_of(error) == status
    for word in words:
        assert word in str(error.value)


# Control plane


def test_an_index_is_created_described_listed_and_deleted(pc, name):
    assert not pc.has_index(name)
    pc.create_index(name=name, dimension=8, metric="euclidean", spec=SPEC, tags={"team": "search"})

    described = pc.describe_index(name)
    assert described.name == name
    assert described.dimension == 8
    assert described.metric == "euclidean"
    assert described.status["ready"] if MAJOR < 9 else described.status.ready
    assert described.deletion_protection == "disabled"
    assert dict(described.tags.to_dict() if hasattr(described.tags, "to_dict") else described.tags) \
        == {"team": "search"}
    assert described.spec.serverless.cloud == "aws"
    assert described.spec.serverless.region == "us-east-1"
    assert name in [index.name for index in pc.list_indexes()]

    pc.delete_index(name)
    assert not pc.has_index(name)
    with pytest.raises(NotFoundException):
        pc.describe_index(name)


def test_a_protected_index_is_not_deleted(pc, name):
    pc.create_index(name=name, dimension=2, spec=SPEC, deletion_protection="enabled")
    assert pc.describe_index(name).deletion_protection == "enabled"

    refused(lambda: pc.delete_index(name), 403, "protection")

    pc.configure_index(name, deletion_protection="disabled")
    pc.delete_index(name)
    assert not pc.has_index(name)


def test_tags_are_added_changed_and_removed_by_an_empty_value(pc, name):
    pc.create_index(name=name, dimension=2, spec=SPEC, tags={"keep": "1", "change": "1", "drop": "1"})
    pc.configure_index(name, tags={"change": "2", "drop": "", "add": "3"})

    tags = pc.describe_index(name).tags
    assert dict(tags.to_dict() if hasattr(tags, "to_dict") else tags) \
        == {"keep": "1", "change": "2", "add": "3"}


def test_a_taken_name_an_unknown_name_and_bad_descriptions_are_refused(pc, name, address):
    pc.create_index(name=name, dimension=2, spec=SPEC)

    refused(lambda: pc.create_index(name=name, dimension=2, spec=SPEC), 409, "ALREADY_EXISTS")
    refused(lambda: pc.delete_index("nobody"), 404, "NOT_FOUND")
    refused(lambda: pc.configure_index("nobody", tags={"a": "b"}), 404)
    spec = {"serverless": {"cloud": "aws", "region": "us-east-1"}}
    good = {"name": "other", "dimension": 2, "spec": spec}
    for change, status, code in [
        ({"name": "Bad_Name"}, 400, "INVALID_ARGUMENT"),
        ({"name": "-a"}, 400, "INVALID_ARGUMENT"),
        ({"name": "a" * 46}, 400, "INVALID_ARGUMENT"),
        ({"metric": "manhattan"}, 400, "INVALID_ARGUMENT"),
        ({"dimension": 20_001}, 400, "INVALID_ARGUMENT"),
        ({"dimension": "2"}, 422, "UNPROCESSABLE_ENTITY"),
        ({"dimension": None}, 400, "INVALID_ARGUMENT"),
        ({"spec": None}, 422, "UNPROCESSABLE_ENTITY"),
        ({"deletion_protection": "maybe"}, 422, "UNPROCESSABLE_ENTITY"),
        ({"spec": {"serverless": {"cloud": "moon", "region": "r"}}}, 404, "NOT_FOUND"),
        ({"spec": {"pod": {}}}, 400, "INVALID_ARGUMENT"),
        ({"vector_type": "sparse", "dimension": None}, 400, "INVALID_ARGUMENT"),
        ({"tags": {"no spaces": "x"}}, 400, "INVALID_ARGUMENT"),
        ({"tags": {"k": "x" * 121}}, 400, "INVALID_ARGUMENT"),
        ({"tags": {f"k{number}": "x" for number in range(21)}}, 400, "INVALID_ARGUMENT"),
    ]:
        reply = raw(address, "POST", "/indexes", {**good, **change})
        assert reply.status_code == status, (change, reply.text)
        body = reply.json()
        assert body["status"] == status
        assert body["error"]["code"] == code
        assert body["error"]["message"]
        assert reply.headers["x-pinecone-request-id"]


def test_the_version_decides_how_an_index_is_described(pc, name, address):
    schema = {"fields": {"_values": {"type": "dense_vector", "dimension": 3, "metric": "dotproduct"}}}
    deployment = {"deployment_type": "managed", "cloud": "gcp", "region": "us-central1"}
    created = raw(address, "POST", "/indexes", {
        "name": name, "schema": schema, "deployment": deployment, "tags": {"a": "b"},
    }, version="2026-07")
    assert created.status_code == 201

    new = raw(address, "GET", f"/indexes/{name}", version="2026-07").json()
    assert new == created.json()
    assert new["schema"] == schema
    assert new["deployment"] == deployment
    assert new["read_capacity"] == {"mode": "OnDemand", "status": {"state": "Ready"}}
    assert new["tags"] == {"a": "b"}
    assert "dimension" not in new and "spec" not in new

    old = raw(address, "GET", f"/indexes/{name}", version="2026-04").json()
    assert (old["dimension"], old["metric"], old["vector_type"]) == (3, "dotproduct", "dense")
    assert old["spec"]["serverless"]["cloud"] == "gcp"
    assert old["spec"]["serverless"]["read_capacity"]["mode"] == "OnDemand"
    assert "schema" not in old and "deployment" not in old
    oldest = raw(address, "GET", f"/indexes/{name}", version="2025-04").json()
    assert oldest["spec"] == {"serverless": {"cloud": "gcp", "region": "us-central1"}}
    assert new["host"] == old["host"] == f"{address}/ix/{name}"


def test_schemas_that_cannot_be_are_refused(address):
    dense = {"type": "dense_vector", "dimension": 2, "metric": "cosine"}
    for body, status in [
        ({"name": "x", "dimension": 2, "spec": {}}, 422),
        ({"schema": {"fields": {}}}, 400),
        ({"schema": {"fields": {"v": {"type": "dense_vector", "dimension": 2}}}}, 422),
        ({"schema": {"fields": {"v": dense, "w": dense}}}, 400),
        ({"schema": {"fields": {"_v": dense}}}, 400),
        ({"schema": {"fields": {"v": {"type": "sparse_vector"}}}}, 400),
        ({"schema": {"fields": {"v": dense, "t": {"type": "string"}}}}, 422),
        ({"schema": {"fields": {"v": dense, "t": {"type": "string", "filterable": True}}}}, 400),
        ({"schema": {"fields": {"t": {"type": "string", "full_text_search": {}}}}}, 400),
        ({"schema": {"fields": {"v": dense}}, "deployment": {"cloud": "aws"}}, 422),
        ({"schema": {"fields": {"v": dense}}, "deployment": {"deployment_type": "pod"}}, 400),
        ({"schema": {"fields": {"v": dense}}, "read_capacity": {"mode": "Dedicated"}}, 403),
    ]:
        reply = raw(address, "POST", "/indexes", body, version="2026-07")
        assert reply.status_code == status, (body, reply.text)
        assert reply.json()["error"]["message"]


def test_what_needs_hosted_models_or_sparse_vectors_says_so(pc, filled, name, address):
    reply = raw(address, "POST", "/indexes/create-for-model", {"name": "m"})
    assert reply.status_code == 400
    assert "not emulated" in reply.json()["error"]["message"]
    host = f"/ix/{name}"
    search = {"query": {"inputs": {"text": "hello"}, "top_k": 2}}
    reply = raw(address, "POST", f"{host}/records/namespaces/__default__/search", search)
    assert reply.status_code == 400
    assert "not emulated" in reply.json()["error"]["message"]
    sparse = {"indices": [1], "values": [0.5]}
    for path, body in [
        ("vectors/upsert", {"vectors": [{"id": "s", "values": [1, 1], "sparseValues": sparse}]}),
        ("query", {"topK": 1, "sparseVector": sparse}),
        ("vectors/update", {"id": "a", "sparseValues": sparse}),
    ]:
        reply = raw(address, "POST", f"{host}/{path}", body)
        assert reply.status_code == 400
        assert "not emulated" in reply.json()["message"]


# Vectors


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "dotproduct"])
def test_a_query_ranks_by_the_metric(pc, name, metric):
    index = make(pc, name, dimension=3, metric=metric)
    generator = random.Random(1)
    vectors = {f"v{number}": [generator.gauss(0, 1) for _ in range(3)] for number in range(50)}
    index.upsert(vectors=list(vectors.items()))

    def score(values):
        dot = sum(a * b for a, b in zip(query, values))
        if metric == "dotproduct":
            return dot
        if metric == "cosine":
            return dot / math.hypot(*query) / math.hypot(*values)
        return sum((a - b) ** 2 for a, b in zip(query, values))

    query = [0.3, -1.2, 0.5]
    expected = sorted(vectors, key=lambda id: score(vectors[id]), reverse=metric != "euclidean")[:7]
    matches = index.query(vector=query, top_k=7).matches
    assert [match.id for match in matches] == expected
    for match in matches:
        assert match.score == pytest.approx(score(vectors[match.id]), rel=1e-4, abs=1e-5)


def test_a_query_gives_values_and_metadata_where_asked_for(filled):
    bare = filled.query(vector=[1.0, 0.0], top_k=2)
    assert [match.id for match in bare.matches] == ["a", "b"]
    assert bare.namespace == ""
    assert bare.usage["read_units"] if MAJOR < 9 else bare.usage.read_units
    assert not bare.matches[0].values
    assert not bare.matches[0].metadata

    full = filled.query(vector=[1.0, 0.0], top_k=4, include_values=True, include_metadata=True)
    assert full.matches[0].values == [1.0, 0.0]
    assert full.matches[0].metadata == {"genre": "drama", "year": 2019, "ok": True}
    assert not full.matches[3].metadata


def test_a_query_by_id_uses_that_record(filled):
    assert filled.query(id="b", top_k=1).matches[0].id == "b"
    assert filled.query(id="nobody", top_k=1).matches == []


def test_fetch_leaves_unknown_ids_out(filled):
    fetched = filled.fetch(ids=["a", "nobody", "d"])
    assert set(fetched.vectors) == {"a", "d"}
    assert fetched.vectors["a"].values == [1.0, 0.0]
    assert fetched.vectors["a"].metadata["genre"] == "drama"
    assert not fetched.vectors["d"].metadata


def test_an_upsert_replaces_the_whole_record(filled):
    assert filled.upsert(vectors=[("a", [0.0, 2.0], {"new": "yes"})]).upserted_count == 1
    record = filled.fetch(ids=["a"]).vectors["a"]
    assert (record.values, record.metadata) == ([0.0, 2.0], {"new": "yes"})


def test_an_update_by_id_changes_values_and_merges_metadata(filled):
    filled.update(id="a", set_metadata={"year": 1, "more": ["m"]})
    filled.update(id="b", values=[3.0, 4.0])
    filled.update(id="nobody", set_metadata={"x": 1})

    fetched = filled.fetch(ids=["a", "b", "nobody"]).vectors
    assert fetched["a"].values == [1.0, 0.0]
    assert fetched["a"].metadata == {"genre": "drama", "year": 1, "ok": True, "more": ["m"]}
    assert fetched["b"].values == [3.0, 4.0]
    assert fetched["b"].metadata["genre"] == "comedy"
    assert "nobody" not in fetched


FILTERS = [
    ({"genre": "drama"}, "a"),
    ({"genre": {"$eq": "drama"}}, "a"),
    ({"genre": {"$ne": "drama"}}, "bcd"),
    ({"year": {"$gt": 2019}}, "bc"),
    ({"year": {"$gte": 2020, "$lt": 2021.5}}, "b"),
    ({"year": {"$lte": 2019}}, "a"),
    ({"genre": {"$in": ["drama", "comedy", "none"]}}, "ab"),
    ({"year": {"$in": [2019, 2021.5]}}, "ac"),
    ({"genre": {"$nin": ["drama"]}}, "bcd"),
    ({"tags": "x"}, "c"),
    ({"tags": {"$in": ["y", "z"]}}, "c"),
    ({"tags": {"$ne": "x"}}, "abd"),
    ({"tags": {"$nin": ["y", "z"]}}, "abd"),
    ({"ok": True}, "a"),
    ({"ok": {"$exists": True}}, "a"),
    ({"year": {"$exists": False}}, "d"),
    ({"$and": [{"genre": {"$exists": True}}, {"year": {"$gt": 2019}}]}, "b"),
    ({"$or": [{"genre": "drama"}, {"$and": [{"tags": "x"}, {"tags": "y"}]}]}, "ac"),
    ({"genre": "drama", "year": 2020}, ""),
    ({}, "abcd"),
]


@pytest.mark.parametrize("filter, expected", FILTERS, ids=[json.dumps(f) for f, _ in FILTERS])
def test_a_filter_selects(filled, filter, expected):
    matches = filled.query(vector=[1.0, 1.0], top_k=10, filter=filter).matches
    assert sorted(match.id for match in matches) == list(expected)


@pytest.mark.parametrize("filter", [
    {"a": {"$regex": "x"}}, {"$not": [{"a": 1}]}, {"a": {"$gt": "x"}}, {"a": {"$in": "x"}},
    {"a": {"$in": [{"b": 1}]}}, {"a": {"$exists": 1}}, {"a": {"b": 1}}, {"a": {}}, {"a": None},
    {"a": ["x"]}, {"$and": {}}, {"$or": []}, {"$and": [1]}, {"a": {"$eq": ["x"]}},
    {"a": {"$and": [{"b": 1}]}}, [],
], ids=json.dumps)
def test_a_filter_that_means_nothing_is_refused(filled, name, address, filter):
    for path, body in [("query", {"topK": 1, "vector": [1, 1]}), ("vectors/delete", {})]:
        reply = raw(address, "POST", f"/ix/{name}/{path}", {**body, "filter": filter})
        assert reply.status_code == 400, reply.text
        assert reply.json()["code"] == 3
        assert reply.json()["message"]
        assert reply.json()["details"] == []
    assert len(filled.fetch(ids=["a", "b", "c", "d"]).vectors) == 4


def test_records_are_deleted_by_id_by_filter_and_all(filled):
    filled.delete(ids=["a", "nobody"])
    filled.delete(filter={"genre": {"$eq": "comedy"}})
    assert set(filled.fetch(ids=list("abcd")).vectors) == {"c", "d"}

    filled.delete(delete_all=True)
    assert filled.describe_index_stats().total_vector_count == 0
    assert filled.query(vector=[1.0, 0.0], top_k=3).matches == []


def test_deleting_all_of_an_unknown_namespace_is_not_found(index):
    with pytest.raises(NotFoundException):
        index.delete(delete_all=True, namespace="nobody")


def test_namespaces_are_apart_and_the_default_one_has_two_names(filled):
    filled.upsert(vectors=[("a", [0.0, 1.0]), ("e", [1.0, 1.0])], namespace="other")

    assert filled.fetch(ids=["a"]).vectors["a"].values == [1.0, 0.0]
    assert filled.fetch(ids=["a"], namespace="other").vectors["a"].values == [0.0, 1.0]
    assert set(filled.fetch(ids=["a", "e"], namespace="__default__").vectors) == {"a"}
    assert filled.query(vector=[1.0, 1.0], top_k=9, namespace="other").namespace == "other"
    assert filled.query(vector=[1.0, 1.0], top_k=9, namespace="nobody").matches == []
    stats = filled.describe_index_stats()
    assert stats.dimension == 2
    assert stats.total_vector_count == 6
    assert {name: stats.namespaces[name].vector_count for name in stats.namespaces} \
        == {"": 4, "other": 2}


def test_ids_are_listed_in_order_by_prefix_and_page(index):
    ids = [f"doc{number % 3}#{number:03}" for number in range(250)]
    index.upsert(vectors=[(id, [1.0, 1.0]) for id in ids])

    assert listed(index) == sorted(ids)
    assert listed(index, prefix="doc1#") == sorted(id for id in ids if id.startswith("doc1#"))
    assert listed(index, prefix="nothing") == []
    page = index.list_paginated(prefix="doc", limit=7)
    assert [item.id for item in page.vectors] == sorted(ids)[:7]
    second = index.list_paginated(prefix="doc", limit=7, pagination_token=page.pagination.next)
    assert [item.id for item in second.vectors] == sorted(ids)[7:14]
    last = index.list_paginated(prefix="doc2#24", limit=100)
    assert last.pagination is None


def listed(index, **arguments):
    found = []
    for page in index.list(**arguments):
        found += page if isinstance(page, list) else [item.id for item in page.vectors]
    return found


def test_bad_vectors_are_refused_and_nothing_is_stored(filled, name, address):
    good = {"id": "good", "values": [1, 1]}
    for vector, word in [
        ({"id": "x", "values": [1, 2, 3]}, "dimension"),
        ({"id": "x", "values": [0, 0]}, "zero"),
        ({"id": "x", "values": []}, "values"),
        ({"id": "x"}, "values"),
        ({"id": "x", "values": [1, "2"]}, "values"),
        ({"id": "x", "values": [1e300, 1]}, "number"),
        ({"values": [1, 1]}, "id"),
        ({"id": "", "values": [1, 1]}, "id"),
        ({"id": "é", "values": [1, 1]}, "ASCII"),
        ({"id": "a\0", "values": [1, 1]}, "ASCII"),
        ({"id": "a" * 513, "values": [1, 1]}, "512"),
        ({"id": 7, "values": [1, 1]}, "string"),
        ({"id": "x", "values": [1, 1], "metadata": {"a": None}}, "Metadata value"),
        ({"id": "x", "values": [1, 1], "metadata": {"a": {"b": 1}}}, "Metadata value"),
        ({"id": "x", "values": [1, 1], "metadata": {"a": [1, 2]}}, "Metadata value"),
        ({"id": "x", "values": [1, 1], "metadata": {"$a": 1}}, "$"),
        ({"id": "x", "values": [1, 1], "metadata": {"a": "x" * 40_960}}, "40960"),
    ]:
        reply = raw(address, "POST", f"/ix/{name}/vectors/upsert", {"vectors": [good, vector]})
        assert reply.status_code == 400, (vector, reply.text)
        assert reply.json()["code"] == 3
        assert word in reply.json()["message"], reply.text
    assert filled.describe_index_stats().total_vector_count == 4


def test_limits_of_requests_hold(filled, pc, name, address):
    host = f"/ix/{name}"
    many = [{"id": f"m{number}", "values": [1, 1]} for number in range(1001)]
    for method, path, body in [
        ("POST", "vectors/upsert", {"vectors": many}),
        ("POST", "vectors/upsert", {"vectors": []}),
        ("POST", "vectors/upsert", {}),
        ("POST", "query", {"vector": [1, 1], "topK": 0}),
        ("POST", "query", {"vector": [1, 1], "topK": 10_001}),
        ("POST", "query", {"vector": [1, 1]}),
        ("POST", "query", {"vector": [1, 1, 1], "topK": 1}),
        ("POST", "query", {"topK": 1}),
        ("POST", "query", {"vector": [1, 1], "id": "a", "topK": 1}),
        ("POST", "vectors/delete", {"ids": [f"m{number}" for number in range(1001)]}),
        ("POST", "vectors/delete", {}),
        ("POST", "vectors/delete", {"ids": ["a"], "deleteAll": True}),
        ("POST", "vectors/delete", {"filter": {"a": 1}, "deleteAll": True}),
        ("POST", "vectors/delete", {"filter": {}}),
        ("POST", "vectors/update", {"id": "a", "filter": {"a": 1}}),
        ("POST", "vectors/update", {"setMetadata": {"a": 1}}),
        ("POST", "vectors/update", {"filter": {}, "setMetadata": {"a": 1}}),
        ("POST", "vectors/update", {"filter": {"a": 1}, "values": [1, 1]}),
        ("POST", "vectors/update", {"id": "a", "values": [1]}),
        ("POST", "vectors/update", {"id": "a", "setMetadata": {"a": "x" * 40_960}}),
        ("POST", "vectors/fetch_by_metadata", {"filter": {}}),
        ("POST", "vectors/fetch_by_metadata", {}),
        ("POST", "vectors/fetch_by_metadata", {"filter": {"a": 1}, "limit": 10_001}),
        ("POST", "describe_index_stats", {"filter": {"a": 1}}),
        ("GET", "vectors/fetch", None),
        ("GET", "vectors/list?limit=101", None),
        ("GET", "vectors/list?limit=x", None),
        ("GET", "vectors/list?paginationToken=!", None),
        ("GET", "namespaces?limit=0", None),
    ]:
        reply = raw(address, method, f"{host}/{path}", body)
        assert reply.status_code == 400, (path, body, reply.text)
        assert reply.json()["code"] == 3
    assert len(filled.query(vector=[1.0, 1.0], top_k=10_000).matches) == 4
    reply = raw(address, "POST", "/ix/nobody/query", {"vector": [1], "topK": 1})
    assert (reply.status_code, reply.json()["code"]) == (404, 5)


def test_an_upsert_of_more_than_two_megabytes_is_refused(pc, name, address):
    index = make(pc, name, dimension=1536)
    vectors = [(f"v{number}", [0.5] * 1536) for number in range(300)]
    index.upsert(vectors=vectors[:300])
    vectors += [(f"w{number}", [0.5] * 1536) for number in range(60)]
    refused(lambda: index.upsert(vectors=vectors), 400, "2097152")


def test_a_large_namespace_is_searched_exactly_and_emptied(pc, name):
    """Enough records that the index looks at rounded rows first."""
    index = make(pc, name, dimension=24)
    generator = random.Random(7)
    vectors = {
        f"v{number}": [generator.gauss(0, 1) for _ in range(24)] for number in range(4000)
    }
    items = [(id, values, {"part": number % 10}) for number, (id, values) in enumerate(vectors.items())]
    for start in range(0, len(items), 1000):
        index.upsert(vectors=items[start:start + 1000], namespace="big")

    def cosine(values):
        return sum(a * b for a, b in zip(query, values)) / math.hypot(*values)

    for _ in range(3):
        query = [generator.gauss(0, 1) for _ in range(24)]
        expected = sorted(vectors, key=lambda id: -cosine(vectors[id]))
        found = index.query(vector=query, top_k=20, namespace="big").matches
        assert [match.id for match in found] == expected[:20]
        found = index.query(vector=query, top_k=20, namespace="big", filter={"part": 3}).matches
        assert [match.id for match in found] == [id for id in expected if int(id[1:]) % 10 == 3][:20]
    index.delete(delete_all=True, namespace="big")
    assert index.describe_index_stats().total_vector_count == 0


# Vectors, from client 8 on


newer = pytest.mark.skipif(MAJOR < 8, reason="client 7 does not have these calls")


@newer
def test_fetch_by_metadata_gives_pages(index):
    index.upsert(vectors=[(f"v{number:02}", [1.0, 1.0], {"even": number % 2 == 0}) for number in range(30)])

    found = index.fetch_by_metadata(filter={"even": True})
    assert sorted(found.vectors) == [f"v{number:02}" for number in range(0, 30, 2)]
    assert found.vectors["v00"].values == [1.0, 1.0]
    ids, token = [], None
    while True:
        page = index.fetch_by_metadata(filter={"even": {"$eq": True}}, limit=4, pagination_token=token)
        assert len(page.vectors) <= 4
        ids += sorted(page.vectors)
        if page.pagination is None:
            break
        token = page.pagination.next
    assert ids == [f"v{number:02}" for number in range(0, 30, 2)]


@newer
def test_an_update_by_filter_counts_and_changes_all_that_match(index):
    index.upsert(vectors=[(f"v{number}", [1.0, 1.0], {"group": number % 2}) for number in range(500)])

    dry = index.update(filter={"group": 1}, set_metadata={"seen": True}, dry_run=True)
    assert dry.matched_records == 250
    assert not index.query(vector=[1.0, 1.0], top_k=1, filter={"seen": True}).matches

    done = index.update(filter={"group": 1}, set_metadata={"seen": True})
    assert done.matched_records == 250
    assert len(index.query(vector=[1.0, 1.0], top_k=1000, filter={"seen": True}).matches) == 250
    assert index.fetch(ids=["v1"]).vectors["v1"].metadata == {"group": 1, "seen": True}


@newer
def test_namespaces_are_created_described_listed_and_deleted(index, name, address):
    created = index.create_namespace(name="made")
    assert (created.name, created.record_count) == ("made", 0)
    refused(lambda: index.create_namespace(name="made"), 409)
    schema = {"fields": {"genre": {"filterable": True}}}
    reply = raw(address, "POST", f"/ix/{name}/namespaces", {"name": "narrow", "schema": schema})
    assert reply.json()["schema"] == schema
    index.upsert(vectors=[("a", [1.0, 1.0]), ("b", [1.0, 1.0])], namespace="written")
    index.upsert(vectors=[("a", [1.0, 1.0])])

    assert index.describe_namespace(namespace="written").record_count == 2
    assert index.describe_namespace(namespace="__default__").record_count == 1
    described = index.describe_namespace(namespace="narrow")
    assert list(described.indexed_fields.fields) == ["genre"]
    page = index.list_namespaces_paginated(limit=2)
    assert [namespace.name for namespace in page.namespaces] == ["__default__", "made"]
    assert page.total_count == 4
    rest = index.list_namespaces_paginated(limit=2, pagination_token=page.pagination.next)
    assert [namespace.name for namespace in rest.namespaces] == ["narrow", "written"]
    assert rest.pagination is None

    index.delete_namespace(namespace="written")
    with pytest.raises(NotFoundException):
        index.describe_namespace(namespace="written")
    with pytest.raises(NotFoundException):
        index.delete_namespace(namespace="written")
    assert index.fetch(ids=["a"], namespace="written").vectors == {}


def test_counts_are_texts_from_the_version_that_says_so(filled, name, address):
    old = raw(address, "GET", f"/ix/{name}/namespaces/__default__").json()
    new = raw(address, "GET", f"/ix/{name}/namespaces/__default__", version="2026-07").json()
    assert (old["record_count"], new["record_count"]) == (4, "4")
    reply = raw(address, "POST", f"/ix/{name}/namespaces", {"name": "__default__"})
    assert (reply.status_code, reply.json()["code"]) == (400, 3)


# Documents


documented = pytest.mark.skipif(not HAS_SCHEMAS, reason="documents came with client 10")


@pytest.fixture
def articles(pc, name):
    pc.indexes.create(name=name, schema={
        "fields": {"embedding": {"type": "dense_vector", "dimension": 2, "metric": "cosine"}},
    })
    index = pc.index(name=name)
    index.documents.upsert(namespace="news", documents=[
        {"_id": "a", "embedding": [1.0, 0.0], "title": "Knees", "year": 2019},
        {"_id": "b", "embedding": [0.6, 0.8], "title": "Ankles", "year": 2020, "tags": ["x"]},
        {"_id": "c", "embedding": [0.0, 1.0], "title": "Elbows", "draft": True},
    ])
    return index


@documented
def test_documents_are_searched_with_the_fields_asked_for(articles):
    clause = {"type": "dense_vector", "field": "embedding", "values": [1.0, 0.1]}
    found = articles.documents.search(namespace="news", score_by=[clause], top_k=2)
    assert [match.id for match in found.matches] == ["a", "b"]
    assert set(found.matches[0].to_dict()) == {"_id", "_score"}
    assert found.namespace == "news"
    assert found.usage.read_units == 1

    found = articles.documents.search(
        namespace="news", score_by=[clause], top_k=3, include_fields=["title"],
        filter={"year": {"$gte": 2020}})
    assert [match.to_dict().keys() for match in found.matches] == [{"_id", "_score", "title"}]
    found = articles.documents.search(
        namespace="news", score_by=[clause], top_k=1, include_fields=["*"])
    assert found.matches[0].embedding == [1.0, 0.0]
    assert found.matches[0].year == 2019


@documented
def test_documents_are_fetched_by_id_and_by_filter(articles):
    fetched = articles.documents.fetch(namespace="news", ids=["a", "nobody"])
    assert set(fetched.documents) == {"a"}
    assert fetched.documents["a"].to_dict() \
        == {"_id": "a", "embedding": [1.0, 0.0], "title": "Knees", "year": 2019}
    fetched = articles.documents.fetch(
        namespace="news", filter={"year": {"$exists": True}}, include_fields=["year"], limit=1)
    assert [document.to_dict() for document in fetched.documents.values()] == [{"_id": "a", "year": 2019}]
    fetched = articles.documents.fetch(
        namespace="news", filter={"year": {"$exists": True}}, limit=1,
        pagination_token=fetched.pagination.next)
    assert set(fetched.documents) == {"b"}
    assert fetched.pagination is None


@documented
def test_documents_are_updated_by_id_and_by_filter(articles):
    result = articles.documents.update(namespace="news", documents=[
        {"_id": "a", "title": "Hips", "embedding": [0.0, 2.0], "_remove_fields": ["year"]},
        {"_id": "nobody", "title": "none"},
    ])
    assert result.matched_records is None
    document = articles.documents.fetch(namespace="news", ids=["a", "nobody"]).documents
    assert {id: found.to_dict() for id, found in document.items()} \
        == {"a": {"_id": "a", "embedding": [0.0, 2.0], "title": "Hips"}}

    result = articles.documents.update(
        namespace="news", filter={"title": {"$in": ["Ankles", "Elbows"]}},
        set_fields={"seen": True}, remove_fields=["tags", "draft"])
    assert result.matched_records == 2
    fetched = articles.documents.fetch(namespace="news", filter={"seen": True}).documents
    assert set(fetched) == {"b", "c"}
    assert not any(found.get("tags") or found.get("draft") for found in fetched.values())


@documented
def test_documents_are_deleted_by_id_by_filter_and_all(articles):
    assert articles.documents.delete(namespace="news", ids=["a", "nobody"]).matched_records is None
    result = articles.documents.delete(namespace="news", filter={"draft": True})
    assert result.matched_records == 1
    assert [document.id for document in articles.documents.list(namespace="news")] == ["b"]
    articles.documents.delete(namespace="news", delete_all=True)
    assert articles.documents.list(namespace="news").to_list() == []
    articles.documents.delete(namespace="never written", delete_all=True)


@documented
def test_documents_are_listed_by_prefix_and_page_in_batches(articles):
    documents = [{"_id": f"list/{number:03}", "embedding": [1.0, number]} for number in range(120)]
    result = articles.documents.batch_upsert(
        namespace="it docs/1", documents=documents, batch_size=50, show_progress=False)
    assert result.successful_item_count == 120

    ids = [document["_id"] for document in documents]
    assert [found.id for found in articles.documents.list(namespace="it docs/1")] == ids
    pages = list(articles.documents.list(namespace="it docs/1", prefix="list/01", limit=4).pages())
    assert [len(page.items) for page in pages] == [4, 4, 2]


@documented
def test_documents_that_do_not_fit_the_schema_are_refused(articles, name, address):
    host = f"/ix/{name}/namespaces/news/documents"
    clause = {"type": "dense_vector", "field": "embedding", "values": [1, 1]}
    for operation, body, status in [
        ("upsert", {"documents": [{"_id": "x", "title": "no vector"}]}, 400),
        ("upsert", {"documents": [{"_id": "x", "embedding": [1, 2, 3]}]}, 400),
        ("upsert", {"documents": [{"_id": "x", "embedding": "text"}]}, 400),
        ("upsert", {"documents": [{"_id": "x", "embedding": [1, 1], "other": [1, 2]}]}, 400),
        ("upsert", {"documents": [{"_id": "x", "embedding": [1, 1], "other": None}]}, 400),
        ("upsert", {"documents": [{"_id": "x", "embedding": [1, 1], "$a": 1}]}, 400),
        ("upsert", {"documents": [{"embedding": [1, 1]}]}, 400),
        ("upsert", {"documents": []}, 400),
        ("upsert", {}, 400),
        ("search", {"top_k": 1}, 400),
        ("search", {"top_k": 1, "score_by": []}, 400),
        ("search", {"top_k": 0, "score_by": [clause]}, 400),
        ("search", {"top_k": 1, "score_by": [{**clause, "field": "title"}]}, 400),
        ("search", {"top_k": 1, "score_by": [clause, clause]}, 400),
        ("search", {"top_k": 1, "score_by": [{"type": "text", "fields": ["title"], "query": "q"}]}, 400),
        ("search", {"top_k": 1, "score_by": [clause], "filter": {"embedding": {"$eq": 1}}}, 400),
        ("search", {"top_k": 1, "score_by": [clause], "filter": {"title": {"$match_all": "x"}}}, 400),
        ("fetch", {}, 400),
        ("fetch", {"ids": ["a"], "filter": {"a": 1}}, 400),
        ("fetch", {"filter": {}}, 400),
        ("fetch", {"ids": ["a"], "pagination_token": "61"}, 400),
        ("update", {}, 400),
        ("update", {"documents": [{"_id": "a", "_remove_fields": ["embedding"]}]}, 400),
        ("update", {"documents": [{"_id": "a", "t": 1, "_remove_fields": ["t"]}]}, 400),
        ("update", {"documents": [{"_id": "a", "t": 1}, {"_id": "a", "t": 2}]}, 400),
        ("update", {"filter": {"a": 1}}, 400),
        ("update", {"set_fields": {"a": 1}}, 400),
        ("delete", {}, 400),
        ("delete", {"ids": ["a"], "delete_all": True}, 400),
        ("delete", {"filter": {}}, 400),
        ("list", {"limit": 101}, 400),
    ]:
        reply = raw(address, "POST", f"{host}/{operation}", body, version="2026-07")
        assert reply.status_code == status, (operation, body, reply.text)
        assert reply.json()["status"] == status
        assert reply.json()["error"]["code"] == "INVALID_ARGUMENT"
    assert len(articles.documents.list(namespace="news").to_list()) == 3


@documented
def test_an_index_of_documents_refuses_vectors_and_shows_its_records_to_readers(articles):
    refused(lambda: articles.upsert(vectors=[("x", [1.0, 1.0])]), 400, "documents")
    refused(lambda: articles.delete(ids=["a"], namespace="news"), 400, "documents")
    assert articles.query(vector=[1.0, 0.0], top_k=1, namespace="news").matches[0].id == "a"


@documented
def test_an_index_without_a_name_gets_one(pc):
    created = pc.indexes.create(schema={
        "fields": {"v": {"type": "dense_vector", "dimension": 2, "metric": "cosine"}}})
    assert pc.indexes.exists(created.name)
    pc.indexes.delete(created.name)
    assert not pc.indexes.exists(created.name)


@documented
def test_records_are_searched_by_vector_and_by_id(filled):
    found = filled.search(namespace="__default__", top_k=1, vector=[1.0, 0.0], fields=["genre"])
    assert [(hit.id, hit.fields) for hit in found.result.hits] == [("a", {"genre": "drama"})]
    found = filled.search(namespace="__default__", top_k=1, id="b")
    assert found.result.hits[0].fields == {"genre": "comedy", "year": 2020}


def test_errors_name_their_request(address):
    reply = raw(address, "GET", "/indexes/nobody")
    assert reply.status_code == 404
    assert reply.json() == {
        "status": 404, "error": {"code": "NOT_FOUND", "message": "Index nobody not found."}}
    assert reply.headers["x-pinecone-request-id"]
    if MAJOR >= 10:
        with pytest.raises(NotFoundException) as error:
            Pinecone(api_key="any", host=address).describe_index("nobody")
        assert error.value.request_id
        assert error.value.error_code == "NOT_FOUND"
