"""Settling a running server: what triggers cause is there when it answers, and loops are stopped."""

import pytest
import requests
from conftest import CONFIGURATION, ROOT, client, started


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A suite that serves the sample functions."""
    binary = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
    with started(tmp_path_factory.mktemp("samples"), "--executable", binary) as suite:
        yield suite


@pytest.fixture(scope="module")
def database(samples):
    return client(samples)


def events(suite, **query):
    reply = suite.hub("GET", "/hearth/v1/events", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_fifty_chains_of_three_triggers_are_each_done_when_settling_answers(samples, database):
    for number in range(50):
        database.document(f"hop1/{number}").set({})
        samples.settle()

        assert database.document(f"hop4/{number}").get().to_dict() == {"from": "hop3"}


def test_many_chains_at_once_are_all_done_when_settling_answers(samples, database):
    names = [f"many-{number}" for number in range(100)]
    batch = database.batch()
    for name in names:
        batch.set(database.document(f"hop1/{name}"), {})
    batch.commit()
    samples.settle()

    found = database.get_all([database.document(f"hop4/{name}") for name in names])
    assert all(snapshot.exists for snapshot in found)


def test_a_trigger_that_writes_its_own_document_is_stopped_and_named(samples, database):
    database.document("rewritten/r").set({"times": 0})
    samples.settle()

    assert database.document("rewritten/r").get().to_dict() == {"times": 25}
    [dead] = events(samples, state="dead")
    assert dead["function"] == "rewrite"
    assert "rewrite → rewrite has come round 25 times for rewritten/r" in str(dead)
