"""WebChannel as a real browser has it: a page of another origin speaks it by a script of ours.

The page's side is in `pages/`; no SDK is in it. What a page sends and reads here passes through the
browser's CORS checks, its connections and its streams, which no Python client has.
"""

import math

import browser
import pytest
import requests
from conftest import PROJECT

DATABASE = f"projects/{PROJECT}/databases/(default)"
CHANNEL = "/google.firestore.v1.Firestore/Listen/channel"
HEADERS = {"Authorization": "Bearer owner", "X-Goog-Api-Client": "gl-js/ fire/12"}
# A browser opens no more connections to one host.
CONNECTIONS_MAX = 6

pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason="Chromium is not installed")


@pytest.fixture
def opened(suite, collection, tmp_path):
    """Opens a page that plays a scene with the collection, at a host or at several."""
    port = suite.address("firestore").split(":")[1]

    def opened(scene, hosts=("127.0.0.1",), way="fetch", preflights=False):
        return browser.opened(
            tmp_path, scene=scene, way=way, preflights=preflights, headers=HEADERS,
            addresses=[f"{host}:{port}" for host in hosts],
            database=DATABASE, collection=collection.id)

    return opened


@pytest.mark.parametrize("preflights", [False, True], ids=["simple", "preflighted"])
@pytest.mark.parametrize("way", ["fetch", "xhr"])
def test_a_page_sees_a_commit_while_its_back_channel_stays_open(
        opened, collection, way, preflights):
    collection.document("first").set({"text": "ü🙂", "n": 1})
    with opened("listen", way=way, preflights=preflights) as page:
        before = page.sees("snapshot")
        assert before["documents"] == {"first": {"text": "ü🙂", "n": 1}}

        collection.document("second").set({"n": 2.5})
        after = page.sees("snapshot")
        assert after["told"] == ["second"]
        assert after["documents"] == {"first": {"text": "ü🙂", "n": 1}, "second": {"n": 2.5}}
        assert (before["backChannel"], after["backChannel"]) == (1, 1)


@pytest.mark.parametrize("preflights", [False, True], ids=["simple", "preflighted"])
def test_a_page_that_polls_sees_a_commit_in_a_request_that_ends(opened, collection, preflights):
    collection.document("first").set({"text": "ü🙂"})
    with opened("listen", way="polling", preflights=preflights) as page:
        before = page.sees("snapshot")
        assert before["documents"] == {"first": {"text": "ü🙂"}}

        collection.document("second").set({"n": 2})
        after = page.sees("snapshot")
        assert after["told"] == ["second"]
        assert after["backChannel"] > before["backChannel"]


@pytest.mark.parametrize("way", ["fetch", "polling"])
def test_a_page_writes_each_message_once_and_leaves(opened, collection, way):
    with opened("write", way=way, preflights=True) as page:
        written = page.sees("written")
        assert written["handshake"]["streamId"]
        assert "writeResults" not in written["handshake"]
        assert [len(answer["writeResults"]) for answer in written["answers"]] == [2] * 4
        assert all(answer["commitTime"] for answer in written["answers"])
        lines = {f"line-{n}": {"text": f"ü🙂 & {n}"} for n in range(1, 5)}
        documents = {document.id: document.to_dict() for document in collection.stream()}
        assert documents == {**lines, "sum": {"lines": 4}}

        left = page.sees("left")
        assert (left["status"], left["isOfLostSession"]) == (400, True)


def test_negative_zero_nan_and_the_infinities_reach_a_page_and_come_back(opened, collection):
    numbers = {"negativeZero": -0.0, "zero": 0.0, "nan": math.nan,
               "infinity": math.inf, "negativeInfinity": -math.inf}
    with opened("copy") as page:
        collection.document("numbers").set(numbers)
        copied = page.sees("copied")
        assert {name for name in numbers if copied[name]} == set(numbers)

        copy = collection.document("copy").get().to_dict()
        assert math.copysign(1, copy.pop("negativeZero")) == -1
        assert math.isnan(copy.pop("nan"))
        assert copy == {"zero": 0, "infinity": math.inf, "negativeInfinity": -math.inf}


@pytest.mark.parametrize("way", ["fetch", "xhr"])
def test_more_listeners_than_connections_to_a_host_are_live_over_several(opened, collection, way):
    hosts = [f"c{n}.localhost" for n in range(1, CONNECTIONS_MAX + 3)]
    with opened("listen", hosts, way=way) as page:
        before = [page.sees("snapshot") for _ in hosts]
        assert len({snapshot["session"] for snapshot in before}) == len(hosts)

        collection.document("news").set({"n": 1})
        after = [page.sees("snapshot") for _ in hosts]
        assert {snapshot["address"].split(":")[0] for snapshot in after} == set(hosts)
        assert all(snapshot["told"] == ["news"] for snapshot in after)
        # Those of before: all were open at once.
        assert all(snapshot["backChannel"] == 1 for snapshot in after)


@pytest.mark.parametrize("way", ["fetch", "xhr", "polling"])
def test_a_page_whose_session_is_lost_goes_on_with_its_resume_token(
        opened, collection, suite, way):
    collection.document("known").set({"n": 1})
    with opened("listen", way=way) as page:
        before = page.sees("snapshot")
        assert before["told"] == ["known"]

        reply = requests.post(
            f"http://{suite.address('firestore')}{CHANNEL}", timeout=20,
            params={"VER": 8, "SID": before["session"], "TYPE": "terminate"})
        assert reply.status_code == 200
        assert page.sees("lost session")["status"] == 400
        collection.document("missed").set({"n": 2})
        page.permit()

        after = page.sees("snapshot")
        assert after["session"] != before["session"]
        assert after["told"] == ["missed"]
        assert after["documents"] == {"known": {"n": 1}, "missed": {"n": 2}}
