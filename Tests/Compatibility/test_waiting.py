"""What a developer is told about events that wait or are lost."""

import conftest
import pytest
import requests

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
DOCUMENTS = f"/v1/projects/{conftest.PROJECT}/databases/(default)/documents"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / ".env").write_text(f"SAMPLE_OUTPUT={tmp_path}/output\n", encoding="utf-8")
    return tmp_path


def write(suite, path):
    collection, document = path.split("/")
    reply = requests.post(
        f"http://{suite.address('firestore')}{DOCUMENTS}/{collection}",
        params={"documentId": document}, json={"fields": {}}, timeout=30,
        headers={"Authorization": "Bearer owner"})
    assert reply.status_code == 200, reply.text


def doctor(suite):
    """The rows of the report, by check; those of one name as one text."""
    rows = {}
    for line in suite.cli("doctor").stdout.splitlines():
        check = line.split("  ")[0]
        rows[check] = rows.get(check, "") + line + "\n"
    return rows


def metrics(suite):
    return requests.get(f"http://{suite.address('hub')}/metrics", timeout=10).text


def events(suite, **query):
    return suite.hub("GET", "/hearth/v1/events", params=query).json()


def test_events_of_a_deleted_function_are_kept_and_run_once_it_is_back(folder):
    with conftest.started(folder, "--executable", SAMPLE) as suite:
        write(suite, "failAlways/a")
        conftest.until(lambda: [e["attempts"] for e in events(suite)] not in ([], [0]), "no attempt")
        [event] = events(suite)
        shown = suite.cli("events", "show", event["id"]).stdout
        if "pending" in shown:
            assert "waiting   its last attempt did not succeed; the next one is at 2" in shown
            assert "\ndue " in shown

        gone = suite.cli("functions", "delete", "failAlways")
        assert gone.stdout.endswith(
            "failAlways is no longer deployed; its waiting event is kept for 24 hours and runs if "
            "failAlways is deployed again by then.\n"), gone.stderr
        conftest.until(lambda: events(suite)[0]["state"] == "pending", "it still runs")
        suite.settle()
        shown = suite.cli("events", "show", event["id"]).stdout
        assert "failAlways has not been deployed since 2" in shown and "\ndue " not in shown
        [listed] = events(suite)
        assert listed["waitReason"] == "notDeployed" and "due" not in listed
        assert "1 of failAlways wait: failAlways has not been deployed" in doctor(suite)["stuck events"]
        assert "failAlways has not been deployed" in suite.cli("functions", "stats").stdout
        assert ('hearth_deliveries_held{function="failAlways",reason="notDeployed"} 1'
                in metrics(suite))

        back = suite.cli("functions", "rollback")
        assert back.stdout.endswith("failAlways is deployed again; its waiting event will run.\n")
        attempts = listed["attempts"]
        conftest.until(lambda: events(suite)[0]["attempts"] > attempts, "it does not run")


def test_triggers_that_are_off_show_and_what_they_missed_is_counted(folder):
    with conftest.started(folder, "--executable", SAMPLE) as suite:
        assert " ok " in doctor(suite)["triggers"]
        assert "hearth_triggers_enabled 1" in metrics(suite)
        suite.hub("PUT", "/functions/disableBackgroundTriggers")
        write(suite, "things/a")
        suite.settle()
        report = doctor(suite)["triggers"]
        assert "FIX" in report and "1 event reached no function" in report
        assert "functions/enableBackgroundTriggers" in report
        assert "hearth_triggers_enabled 0" in metrics(suite)
        assert "hearth_events_skipped_total 1" in metrics(suite)
        suite.hub("PUT", "/functions/enableBackgroundTriggers")
        report = doctor(suite)["triggers"]
        assert " note " in report and "1 event reached no function while they were off" in report


def test_triggers_are_on_again_after_a_restart(folder):
    options = ("--executable", SAMPLE, "--data", str(folder / "data"))
    with conftest.started(folder, *options, ephemeral=False) as suite:
        suite.hub("PUT", "/functions/disableBackgroundTriggers")
        write(suite, "things/missed")
        suite.settle()
    with conftest.started(folder, *options, ephemeral=False) as suite:
        write(suite, "things/after")
        suite.settle()
        assert [event["document"] for event in events(suite)] == ["things/after"]
        assert suite.hub("GET", "/hearth/v1/triggers").json()["isEnabled"] is True


def test_events_before_the_first_deployment_are_counted(folder):
    with conftest.started(folder, "--no-functions") as suite:
        write(suite, "things/a")
        write(suite, "things/b")
        conftest.until(lambda: "hearth_events_before_deployment 2" in metrics(suite), "not counted")
        text = "2 events wait for the first deployment; `hearth deploy` builds and deploys."
        assert text in suite.cli("events", "list").stderr
        assert text in suite.cli("functions", "stats").stderr
        assert text in doctor(suite)["first deployment"]


def test_the_doctor_mentions_an_advanced_clock_and_planned_faults(folder):
    with conftest.started(folder, "--executable", SAMPLE) as suite:
        rows = doctor(suite)
        assert "clock" not in rows and "faults" not in rows
        suite.cli("clock", "advance", "2h")
        suite.cli("faults", "set", "--seed", "7", "--drops", "0.1")
        rows = doctor(suite)
        assert "2h ahead of the machine's" in rows["clock"]
        assert "seed 7" in rows["faults"] and "drops 0.1" in rows["faults"]
