"""Plans and costs of queries through google-cloud-firestore over gRPC, and REST."""

import pytest
import requests
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.query_profile import ExplainOptions, QueryExplainError


@pytest.fixture
def numbers(db, collection):
    batch = db.batch()
    for number in range(20):
        batch.set(collection.document(f"{number:02}"), {"n": number, "even": number % 2 == 0})
    batch.commit()
    return collection


def plan(query):
    metrics = query.get(explain_options=ExplainOptions(analyze=False)).get_explain_metrics()
    return [(index["query_scope"], index["properties"])
            for index in metrics.plan_summary.indexes_used]


def test_plans_name_the_indexes_that_production_reads(db, numbers):
    even = FieldFilter("even", "==", True)
    assert plan(numbers) == [("Collection", "(__name__ ASC)")]
    assert plan(numbers.where(filter=even)) == [("Collection", "(even ASC, __name__ ASC)")]
    assert plan(numbers.where(filter=even).where(filter=FieldFilter("n", "==", 4))) == [
        ("Collection", "(even ASC, __name__ ASC)"), ("Collection", "(n ASC, __name__ ASC)")]
    assert plan(numbers.where(filter=even).order_by("n", direction="DESCENDING")) == [
        ("Collection", "(even ASC, n DESC, __name__ DESC)")]
    assert plan(db.collection_group(numbers.id).order_by("n")) == [
        ("Collection group", "(n ASC, __name__ ASC)")]


def test_a_plan_alone_has_no_results(numbers):
    results = numbers.get(explain_options=ExplainOptions(analyze=False))
    assert list(results) == []
    with pytest.raises(QueryExplainError):
        _ = results.get_explain_metrics().execution_stats


def test_analyzing_runs_the_query_and_tells_its_cost(numbers):
    query = numbers.where(filter=FieldFilter("n", ">=", 5)).order_by("n").offset(2).limit(3)
    results = query.get(explain_options=ExplainOptions(analyze=True))
    assert [result.id for result in results] == ["07", "08", "09"]
    cost = results.get_explain_metrics().execution_stats
    assert cost.results_returned == 3
    assert cost.read_operations == 5
    assert cost.execution_duration.total_seconds() > 0
    assert cost.debug_stats["documents_scanned"] == "5"
    assert int(cost.debug_stats["index_entries_scanned"]) >= 5
    assert cost.debug_stats["billing_details"]["documents_billable"] == "5"


def test_aggregations_are_explained(numbers):
    count = numbers.count(alias="all")
    results = count.get(explain_options=ExplainOptions(analyze=True))
    assert results[0][0].value == 20
    cost = results.get_explain_metrics().execution_stats
    assert cost.results_returned == 1
    assert cost.read_operations == 1
    assert not list(count.get(explain_options=ExplainOptions(analyze=False)))


def test_an_explained_query_that_is_wrong_is_refused(suite, db):
    url = f"http://{suite.address('firestore')}/v1/{db._database_string}/documents:runQuery"
    body = {
        "structuredQuery": {"from": [{"collectionId": "c"}], "limit": -1}, "explainOptions": {}}
    reply = requests.post(url, json=body, headers={"Authorization": "Bearer owner"}, timeout=20)
    assert reply.status_code == 400
    body["structuredQuery"]["limit"] = 1
    reply = requests.post(url, json=body, headers={"Authorization": "Bearer owner"}, timeout=20)
    assert reply.json() == [{"explainMetrics": {"planSummary": {"indexesUsed": [
        {"query_scope": "Collection", "properties": "(__name__ ASC)"}]}}}]
