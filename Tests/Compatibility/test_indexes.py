"""Queries without their index, and the file that declares it."""

import json
import subprocess

import pytest
from conftest import client, hearth, started, until
from google.api_core import exceptions
from google.cloud.firestore_v1.base_query import FieldFilter


def query(database):
    return (database.collection("chats").where(filter=FieldFilter("open", "==", True))
            .order_by("at", direction="DESCENDING"))


def indexes(suite, folder, *options):
    return subprocess.run(
        [hearth(), "indexes", "--hub", suite.address("hub"), *options],
        cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout


def test_what_queries_need_is_written_and_then_suffices(tmp_path):
    file = tmp_path / "firestore.indexes.json"
    kept = {
        "collectionGroup": "c", "queryScope": "COLLECTION",
        "fields": [{"fieldPath": "a", "order": "ASCENDING"},
                   {"fieldPath": "b", "order": "ASCENDING"}]}
    file.write_text(json.dumps({"indexes": [kept]}), encoding="utf-8")

    with started(tmp_path, "--no-functions", "--strict-indexes") as suite:
        database = client(suite)
        database.collection("chats").add({"open": True, "at": 1})
        assert len(database.collection("chats").order_by("at").get()) == 1
        with pytest.raises(exceptions.FailedPrecondition, match="requires an index.*\n.*chats"):
            query(database).get()
        shown = json.loads(indexes(suite, tmp_path))
        assert shown["indexes"] == [{
            "collectionGroup": "chats", "queryScope": "COLLECTION", "fields": [
                {"fieldPath": "open", "order": "ASCENDING"},
                {"fieldPath": "at", "order": "DESCENDING"}]}]
        group = database.collection_group("chats").where(filter=FieldFilter("at", "==", 1))
        with pytest.raises(exceptions.FailedPrecondition, match="COLLECTION_GROUP_ASC.*\n.*fieldOverrides"):
            group.get()
        assert indexes(suite, tmp_path, "--write").startswith("2 added to")
        assert "has every index" in indexes(suite, tmp_path, "--write")

    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["indexes"] == [kept, *shown["indexes"]]
    [override] = written["fieldOverrides"]
    assert (override["collectionGroup"], override["fieldPath"]) == ("chats", "at")
    assert len(override["indexes"]) == 4
    with started(tmp_path, "--no-functions", "--strict-indexes") as suite:
        database = client(suite)
        assert query(database).get() == []
        assert database.collection("chats").order_by("at").get() == []
        group = database.collection_group("chats").where(filter=FieldFilter("at", "==", 1))
        assert group.get() == []


def test_an_exempted_field_is_indexed_again_and_keeps_what_else_is_said(tmp_path):
    file = tmp_path / "firestore.indexes.json"
    exempted = {"collectionGroup": "chats", "fieldPath": "at", "ttl": True, "indexes": []}
    file.write_text(json.dumps({"fieldOverrides": [exempted]}), encoding="utf-8")
    with started(tmp_path, "--no-functions", "--strict-indexes") as suite:
        ordered = client(suite).collection("chats").order_by("at")
        assert not is_answered(ordered)
        assert indexes(suite, tmp_path, "--write").startswith("1 added to")
        until(lambda: is_answered(ordered), "the file's index is not used")
    [override] = json.loads(file.read_text(encoding="utf-8"))["fieldOverrides"]
    assert override["ttl"] is True
    assert len(override["indexes"]) == 3


def test_a_changed_file_counts_and_a_broken_one_changes_nothing(tmp_path):
    file = tmp_path / "firestore.indexes.json"
    log = tmp_path / "log"
    with log.open("w") as errors, started(
            tmp_path, "--no-functions", "--strict-indexes", stderr=errors) as suite:
        database = client(suite)
        assert not is_answered(query(database))
        needed = indexes(suite, tmp_path)
        file.write_text(needed, encoding="utf-8")
        until(lambda: is_answered(query(database)), "the file's index is not used")
        file.write_text("{", encoding="utf-8")
        until(lambda: "The former indexes stay" in log.read_text(encoding="utf-8"), "no word")
        assert is_answered(query(database))
        file.unlink()
        until(lambda: not is_answered(query(database)), "the index is used for ever")


def is_answered(a_query):
    try:
        a_query.get()
    except exceptions.FailedPrecondition:
        return False
    return True


def test_without_the_flag_every_query_is_answered(tmp_path):
    with started(tmp_path, "--no-functions") as suite:
        assert query(client(suite)).get() == []
        assert "chats" in indexes(suite, tmp_path)
