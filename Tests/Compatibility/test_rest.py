"""Firestore's REST surface and the emulator's own endpoint, by plain HTTP."""

import uuid

import requests


def documents(suite):
    return (f"http://{suite.address('firestore')}/v1/projects/demo-psst"
            "/databases/(default)/documents")


def test_a_document_written_over_rest_is_read_over_grpc_and_back(suite, db):
    path = f"rest/{uuid.uuid4().hex}"
    body = {"fields": {"n": {"integerValue": "5"}, "t": {"stringValue": "x"}}}

    reply = requests.patch(f"{documents(suite)}/{path}", json=body, timeout=30)

    assert reply.status_code == 200, reply.text
    assert db.document(path).get().to_dict() == {"n": 5, "t": "x"}
    assert requests.get(f"{documents(suite)}/{path}", timeout=30).json()["fields"] == body["fields"]


def test_names_that_differ_only_in_their_unicode_form_are_two_fields(suite):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    fields = {composed: {"integerValue": "1"}, decomposed: {"integerValue": "2"},
              "m": {"mapValue": {"fields": {composed: {"nullValue": None},
                                            decomposed: {"booleanValue": True}}}}}
    url = f"{documents(suite)}/rest/{uuid.uuid4().hex}"

    reply = requests.patch(url, json={"fields": fields}, timeout=30)

    assert reply.status_code == 200, reply.text
    assert reply.json()["fields"] == fields
    assert requests.get(url, timeout=30).json()["fields"] == fields


def test_a_missing_document_is_not_found(suite):
    reply = requests.get(f"{documents(suite)}/rest/missing", timeout=30)

    assert reply.status_code == 404
    assert reply.json()["error"]["status"] == "NOT_FOUND"


def test_too_large_a_request_is_never_a_status_that_clients_retry(suite):
    body = {"fields": {"t": {"stringValue": "x" * (11 << 20)}}}

    reply = requests.patch(f"{documents(suite)}/rest/big", json=body, timeout=60)

    assert reply.status_code == 400
    assert reply.json()["error"]["message"] == (
        "Request payload size exceeds the limit: 11534336 bytes.")


def test_reset_empties_one_database(suite, db):
    other = f"http://{suite.address('firestore')}/v1/projects/other/databases/(default)/documents"
    requests.patch(f"{other}/a/b", json={"fields": {}}, timeout=30).raise_for_status()
    db.document("keep/me").set({})

    reply = requests.delete(
        f"http://{suite.address('firestore')}/emulator/v1/projects/other/databases/(default)"
        "/documents", timeout=30)

    assert reply.status_code == 200
    assert requests.get(f"{other}/a/b", timeout=30).status_code == 404
    assert db.document("keep/me").get().exists
