"""Parts of collection groups, through google-cloud-firestore and REST."""

import pytest
import requests



def test_a_group_is_read_in_parts(db, collection):
    names = set()
    batch = db.batch()
    for parent in range(4):
        for child in range(30):
            group = collection.document(f"p{parent}").collection(collection.id)
            reference = group.document(f"{child}")
            batch.set(reference, {"n": child})
            names.add(reference.path)
    batch.commit()
    group = db.collection_group(collection.id)
    partitions = list(group.get_partitions(5))
    # Python asks for five points, which make six parts.
    parts = [[document.reference.path for document in partition.query().stream()]
             for partition in partitions]
    assert [len(part) for part in parts] == [20] * 6
    found = [path for part in parts for path in part]
    assert len(found) == len(names)
    assert set(found) == names
    assert len(list(group.get_partitions(1000))) == 120
    # As many as a request can ask for.
    assert len(list(group.get_partitions(2 ** 63 - 1))) == 120
    assert len(list(db.collection_group("nobody").get_partitions(3))) == 1


def test_partitions_come_in_pages_of_one_moment(suite, db, collection):
    for number in range(20):
        collection.document(f"{number:02}").set({"n": number})
    url = f"http://{suite.address('firestore')}/v1/{db._database_string}/documents:partitionQuery"
    body = {
        "structuredQuery": {"from": [{"collectionId": collection.id, "allDescendants": True}]},
        "partitionCount": "9", "pageSize": 4}
    points = []
    token = ""
    while True:
        reply = requests.post(
            url, json={**body, "pageToken": token}, timeout=20,
            headers={"Authorization": "Bearer owner"})
        assert reply.status_code == 200, reply.text
        points += [point["values"][0]["referenceValue"] for point in reply.json()["partitions"]]
        collection.document(f"later {len(points)}").set({})
        token = reply.json().get("nextPageToken")
        if not token:
            break
    assert [point.rsplit("/", 1)[1] for point in points] == [f"{n:02}" for n in range(2, 20, 2)]


@pytest.mark.parametrize("change, words", [
    ({"partitionCount": "0"}, "Partition count must be greater"),
    ({"pageSize": -1}, "Page size must be nonnegative"),
    ({"structuredQuery": {"from": [{"collectionId": "c"}]}}, "all descendant collections"),
    ({"structuredQuery": {"from": [{"collectionId": "c", "allDescendants": True}], "limit": 3}},
     "Query limit is not supported"),
    ({"pageToken": "00"}, "page token"),
])
def test_what_cannot_be_partitioned_is_refused(suite, db, change, words):
    url = f"http://{suite.address('firestore')}/v1/{db._database_string}/documents:partitionQuery"
    body = {
        "structuredQuery": {"from": [{"collectionId": "c", "allDescendants": True}]},
        "partitionCount": "3"}
    reply = requests.post(
        url, json={**body, **change}, headers={"Authorization": "Bearer owner"}, timeout=20)
    assert reply.status_code == 400
    assert words in reply.json()["error"]["message"]


def test_pipelines_are_refused_in_words(suite, db):
    url = f"http://{suite.address('firestore')}/v1/{db._database_string}/documents:executePipeline"
    reply = requests.post(url, json={}, headers={"Authorization": "Bearer owner"}, timeout=20)
    assert reply.status_code == 501
    assert "Enterprise edition" in reply.json()[0]["error"]["message"]
