"""The console's home, functions, logs, and time and faults, as a person uses them in a browser."""

import json

import conftest
import pytest
import requests
from console_browser import Console, started_browser
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

SAMPLE = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")
VIEWS = ["", "functions", "functions/echo", "functions/recordWrite", "functions/recordTick",
         "functions/countTask", "functions/echoBody", "functions/decideOnCreation", "logs", "time"]
RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /secrets/{id} { allow read, write: if false; }
  }
}
"""
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A suite of its own, because the tests move its clock and set faults."""
    folder = tmp_path_factory.mktemp("console")
    (folder / "firestore.rules").write_text(RULES, encoding="utf-8")
    with conftest.started_sample(folder) as suite:
        yield suite


@pytest.fixture(scope="module")
def browser(sample):
    with started_browser() as driver:
        yield Console(driver, sample)


@pytest.fixture
def page(browser):
    """The console; at the end of a test, the browser's own console holds no error."""
    browser.problems()
    browser.refused = ()
    yield browser
    # The browser logs every response that is not a success; the tests name those they ask for.
    assert [problem for problem in browser.problems()
            if not any(f"/{name} " in problem and "Failed to load" in problem
                       for name in browser.refused)] == []


def control(suite, path="", method="GET", **options):
    reply = suite.hub(method, f"/hearth/v1{path}", **options)
    assert reply.status_code == 200, reply.text
    return reply.json()


def write(suite, path, n=1):
    reply = requests.patch(
        f"http://{suite.address('firestore')}/v1/projects/{conftest.PROJECT}"
        f"/databases/(default)/documents/{path}",
        json={"fields": {"n": {"integerValue": str(n)}}},
        headers={"Authorization": "Bearer owner"}, timeout=10)
    assert reply.status_code == 200, reply.text


def recorded(suite, *words):
    """The lines that the functions have written with these words."""
    lines = [line.split(" ") for line in suite.output.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if all(word in line for word in words)]


def choose_user(page, uid, claims=""):
    page.find("select", "As", exact=True).send_keys("user")
    page.type("input", uid, label="User ID")
    page.type("input", claims, label="Claims as JSON")


def outcome(page, text):
    page.shows(text, "form > [role=status]")


def test_a_new_suite_is_well_and_says_how_to_connect(page, sample):
    page.open()
    page.shows("All is well.")
    for service in ("firestore", "auth", "functions"):
        page.shows(sample.address(service))
    page.shows(f"export FIRESTORE_EMULATOR_HOST={sample.address('firestore')}")
    page.shows(f"export GCLOUD_PROJECT={conftest.PROJECT}")
    page.click("button", "JavaScript")
    host, port = sample.address("firestore").split(":")
    page.shows(f'connectFirestoreEmulator(getFirestore(app), "{host}", {port});')
    page.click("button", "Swift")
    page.shows(f'Firestore.firestore().useEmulator(withHost: "{host}", port: {port})')


def test_tina_calls_a_function_in_three_clicks(page):
    page.open("functions/whoAmI")
    choose_user(page, "tina")
    page.click("button", "Call", exact=True)
    outcome(page, "Succeeded in")

    page.open()
    page.click("nav a", "Functions")
    page.click("td a", "whoAmI", exact=True)
    page.click("button", "Call", exact=True)
    outcome(page, "Succeeded in")
    assert json.loads(page.text(".outcome")) == "tina"
    # The figures show the two calls.
    page.shows("2 runs (2 ok)")


def test_claims_and_data_are_sent_and_remembered(page):
    page.open("functions/adminOnly")
    choose_user(page, "tina")
    page.refused = ("adminOnly",)
    page.click("button", "Call", exact=True)
    outcome(page, "PERMISSION_DENIED")
    choose_user(page, "tina", '{"admin": true}')
    # The keyboard does it, too.
    page.find("textarea").send_keys(Keys.CONTROL, Keys.ENTER)
    outcome(page, "Succeeded in")

    page.open("functions/echo")
    data = {"text": HOSTILE, "list": [1, None, {"deep": True}]}
    page.type("textarea", json.dumps(data))
    page.click("button", "Call", exact=True)
    outcome(page, "Succeeded in")
    assert json.loads(page.text(".outcome")) == data
    assert not page.driver.find_elements(By.CSS_SELECTOR, "main img, main script")

    page.open("functions/echo")
    assert json.loads(page.find("textarea").get_property("value")) == data
    assert page.find("input", "User ID").get_property("value") == "tina"


def test_a_failing_call_shows_code_message_and_details(page):
    page.open("functions/failing")
    page.refused = ("failing",)
    page.type("textarea", json.dumps(
        {"code": "NOT_FOUND", "message": f"no such {HOSTILE}", "details": {"id": 7}}))
    page.click("button", "Call", exact=True)
    outcome(page, f"NOT_FOUND: no such {HOSTILE}")
    page.shows('"id": 7', ".outcome")

    before = len(page.requests())
    page.type("textarea", "{oops")
    page.click("button", "Call", exact=True)
    outcome(page, "The data is not JSON")
    assert not [path for path in page.requests()[before:] if path.endswith("/failing")]


def test_an_event_is_fired_at_one_function(page, sample):
    page.open("functions/recordWrite")
    page.type("input", "a1", label="thingId")
    page.type("textarea", '{"n": 5}', label="Data after the change")
    page.click("button", "Fire", exact=True)
    outcome(page, "Succeeded in")
    assert [line[1] for line in recorded(sample, "a1")] == ["created"]

    # The function's own line arrives below the form.
    page.shows("Recorded", ".log")
    # What was entered is still there after a look at another view.
    page.open("functions/recordWrite")
    assert page.find("input", "thingId").get_property("value") == "a1"
    page.type("textarea", '{"n": 4}', label="Data before the change")
    page.click("button", "Fire", exact=True)
    outcome(page, "Succeeded in")
    assert [line[1] for line in recorded(sample, "a1")] == ["created", "updated"]

    page.type("input", "a/b", label="thingId")
    page.click("button", "Fire", exact=True)
    outcome(page, 'thingId is one segment, without "/".')


def test_a_failed_event_shows_its_error(page):
    page.open("functions/failForGood")
    page.type("input", "f1", label="id")
    page.click("button", "Fire", exact=True)
    outcome(page, "Failed after")
    page.shows("failed as asked", ".outcome")
    page.shows("SampleTriggers.swift:", ".outcome")
    page.shows("error=failed as asked", ".log")


def test_a_schedule_runs_now_and_links_to_its_event(page, sample):
    page.open("functions/recordTick")
    page.shows("0 3 * * *")
    page.click("button", "Run now")
    outcome(page, "Succeeded in")
    assert len(recorded(sample, "recordTick")) == 1
    link = page.find(".outcome a", "Event ")
    event = control(sample, f"/events/{link.text.removeprefix('Event ')}")
    assert (event["function"], event["state"]) == ("recordTick", "succeeded")
    assert f"#/events/{event['id']}" in link.get_attribute("href")
    # The list of the function's events shows it as well.
    page.find("td a", event["id"])
    page.shows("succeeded", "table")


def test_a_task_goes_through_its_queue_or_around_it(page, sample):
    page.open("functions/countTask")
    page.type("textarea", '{"n": 3}')
    page.click("button", "Enqueue")
    outcome(page, "Enqueued")
    conftest.until(lambda: recorded(sample, "countTask", "3"), "the task did not run")
    page.type("textarea", '{"n": 4}')
    page.click("button", "Run without the queue")
    outcome(page, "Succeeded in")
    assert recorded(sample, "countTask", "4")


def test_an_http_function_gets_method_path_and_body(page):
    page.open("functions/inspect")
    page.type("input", "/some/path?a=b", label="Path after")
    page.click("button", "Send", exact=True)
    outcome(page, "HTTP 200")
    inspected = json.loads(page.text(".outcome pre"))
    assert (inspected["method"], inspected["path"], inspected["query"]) == (
        "GET", "/some/path", "a=b")

    page.open("functions/echoBody")
    page.find("select", "Method").send_keys("PUT")
    page.type("textarea", f"not JSON {HOSTILE}", label="Body")
    page.click("button", "Send", exact=True)
    outcome(page, "HTTP 200")
    assert page.text(".outcome pre") == f"not JSON {HOSTILE}"


def test_an_unknown_function_is_named(page):
    page.open("functions/nobody")
    page.shows("No function nobody is deployed.")


def test_the_filter_of_functions_stays(page):
    page.open("functions")
    page.type("input", "recordw", label="Filter")
    page.shows("1 of ")
    page.click("td a", "recordWrite", exact=True)
    page.shows("Fire an event")
    page.click("main a", "All functions")
    page.shows("1 of ")
    assert page.find("input", "Filter").get_property("value") == "recordw"


def test_logs_are_live_and_filtered(page, sample):
    page.open("logs")
    sample.call("log", "first line")
    page.shows("first line", ".log")
    page.find("select", "Level from").send_keys("warning")
    page.wait(lambda: "info" not in page.text(".log"))
    page.shows("first line", ".log")  # The second logger's line is a warning.
    page.find("select", "Level from").send_keys("all")

    page.type("input", "second", label="Text")
    page.shows("No lines match.", ".log-list")
    sample.call("log", "second line")
    page.shows("second line", ".log")
    assert "first line" not in page.text(".log")

    page.click("button", "Clear the filter")
    page.shows("first line", ".log")
    page.type("input", "whoAmI", label="Function")
    page.wait(lambda: "line" not in page.text(".log"))

    # A line's invocation shows the other lines of that run.
    page.type("input", "log", label="Function")
    page.type("input", "second line", label="Text")
    page.click("button", "Show only the invocation")
    page.wait(lambda: "/logs/invocation/" in page.driver.current_url)
    page.shows("second line", ".log")
    assert page.find("input", "Text").get_property("value") == ""
    assert "first line" not in page.text(".log")


def test_a_paused_log_stands_still_until_it_goes_on(page, sample):
    page.open("logs")
    page.type("input", "pausing", label="Text")
    page.shows("No lines match.", ".log-list")
    page.click("button", "Pause")
    page.shows("Paused.", ".log-list")
    sample.call("log", "pausing one")
    reply = sample.hub("GET", "/hearth/v1/logs?function=log&limit=10")
    assert "pausing one" in reply.text
    assert "pausing one" not in page.text(".log")
    page.click("button", "Pause")
    page.shows("pausing one", ".log")


def test_the_log_stays_where_it_is_read(page, sample):
    sample.call("flood", {"lines": 600, "lineBytes": 10})
    page.open("logs/function/flood")
    page.shows("The last 500 lines.", ".log-list")
    assert len(page.driver.find_elements(By.CSS_SELECTOR, ".log-line")) == 500
    scroll = "const log = document.querySelector('.log'); return "
    at_end = scroll + "log.scrollHeight - log.scrollTop - log.clientHeight < 12"
    assert page.driver.execute_script(at_end)
    page.driver.execute_script("document.querySelector('.log').scrollTop = 100")
    sample.call("flood", {"lines": 3, "lineBytes": 10})
    # The last one tells how the invocation ended.
    page.click("button", "Show 4 new lines")
    assert page.driver.execute_script(at_end)
    sample.call("flood", {"lines": 1, "lineBytes": 12})
    page.shows("0 xxxxxxxxxxxx", ".log")
    page.wait(lambda: page.driver.execute_script(at_end))


def test_hostile_lines_are_text_and_long_ones_are_cut(page, sample):
    page.open("logs/function/log")
    sample.call("log", f"{HOSTILE}\u202egpj.exe")
    page.shows(HOSTILE, ".log")
    page.shows("\\u{202E}gpj.exe", ".log")
    assert not page.driver.find_elements(By.CSS_SELECTOR, "main img, main script")
    assert "owned" not in page.driver.title

    sample.call("log", "long" * 5_000)
    page.click(".log button", "Show all of the message, 20,000 characters")
    page.wait(lambda: "long" * 5_000 in page.text(".log"))


def test_the_clock_goes_on(page, sample):
    page.open("time")
    page.shows("this machine's time")
    page.click("button", "+1 hour")
    page.shows("The suite is 1 h ahead of this machine.")
    assert 3590 < control(sample, "/clock")["aheadSeconds"] < 3660
    page.driver.execute_script("""
        const input = document.querySelector("input[type=datetime-local]");
        input.value = "2001-01-01T00:00:00";
        """)
    page.refused = ("clock",)
    page.click("button", "Go there")
    page.shows("Time never goes back", "#toasts")
    page.open()
    page.shows("The suite's clock is 1 h ahead")


def test_faults_are_set_and_cleared(page, sample):
    page.open("time")
    page.shows("No faults.")
    page.find("input", "Duplicates").send_keys(Keys.ARROW_RIGHT * 5)
    page.click("label", "Reordering")
    page.type("input", "42", label="Seed")
    page.click("button", "Set the faults")
    page.shows("Faults are on: 5 % of the events arrive twice, events of a document may overtake "
               "each other (seed 42).")
    assert control(sample, "/faults") == {
        "seed": 42, "duplicates": 0.05, "drops": 0, "reordering": True}
    page.open("time")  # The controls show what is set.
    page.wait(lambda: page.find("input", "Duplicates").get_property("value") == "5")
    page.open()
    page.shows("Faults are on")
    page.click("button", "Clear the faults")
    page.wait(lambda: "Faults are on" not in page.text())
    assert control(sample, "/faults") is None


def test_disabled_triggers_are_wrong_and_the_remedy_mends_it(page, sample):
    page.open("time")
    page.click("button", "Disable triggers")
    page.shows("Triggers are off.")
    assert not control(sample, "/triggers")["isEnabled"]
    page.open()
    page.shows("Triggers are off: events of documents and users reach no function")
    page.click("button", "Enable triggers")
    page.wait(lambda: "Triggers are off" not in page.text())
    assert control(sample, "/triggers")["isEnabled"]


def test_dead_events_and_crashes_are_wrong(page, sample):
    write(sample, "failForGood/d1")
    sample.call("leave", {"status": 3})
    page.open()
    page.shows("1 event is dead, of failForGood")
    page.shows("The handler threw: failed as asked")
    page.shows("leave: a worker has crashed since the suite's start.")
    assert page.find(".problems a", "Events").get_attribute("href").endswith("#/events")
    page.click(".problems button", "Dismiss")
    page.wait(lambda: "has crashed" not in page.text(".problems"))
    control(sample, "/events/discard?state=failed", "POST")
    control(sample, "/events/discard?state=dead", "POST")
    page.wait(lambda: "failForGood" not in page.text(".problems"))


def test_denied_requests_are_wrong_for_some_minutes(page, sample):
    page.open()
    reply = requests.get(
        f"http://{sample.address('firestore')}/v1/projects/{conftest.PROJECT}"
        "/databases/(default)/documents/secrets/s1", timeout=10)
    assert reply.status_code == 403
    page.shows("The rules denied 1 request in the last 5 minutes, the last time get of secrets/s1.")
    assert page.find(".problems a", "Rules").get_attribute("href").endswith("#/rules")
    control(sample, "/clock", "POST", json={"advanceSeconds": 360})
    page.wait(lambda: "The rules denied" not in page.text(".problems"))


def test_the_home_page_plots_what_functions_do(page, sample):
    def plot():
        return page.driver.execute_script("""
            return document.querySelector(
              "[aria-label='Runs of count over the last minutes'] path")?.getAttribute("d")""")

    page.open()
    page.wait(lambda: plot() is not None or page.has("td a", "count"))
    assert not plot()
    sample.call("count", None)
    page.wait(plot)
    # The history survives a look at another view.
    page.click("nav a", "Logs")
    page.click("nav a", "Home")
    page.wait(plot)


def test_thousands_of_functions_stay_usable(page, tmp_path):
    (tmp_path / ".env").write_text("SAMPLE_CROWDS=4000\n", encoding="utf-8")
    with conftest.started(tmp_path, "--executable", SAMPLE) as suite:
        many = Console(page.driver, suite)
        many.open()
        many.shows("The 40 busiest of 4,")
        many.click("nav a", "Functions")
        many.shows("more match. Filter by a part of the name.")
        assert len(page.driver.find_elements(By.CSS_SELECTOR, "tbody tr")) == 200
        many.type("input", "crowd3999", label="Filter")
        many.click("td a", "crowd3999", exact=True)
        many.shows("Fire an event")
        many.driver.get("about:blank")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_views_are_accessible(page, theme):
    page.open()
    page.driver.execute_script("localStorage.setItem('hearth-theme', arguments[0])", theme)
    for view in VIEWS:
        page.open(view)
        page.find("h1")
        assert (view, page.violations()) == (view, [])
    page.driver.execute_script("localStorage.removeItem('hearth-theme')")


def test_the_views_fit_a_narrow_screen(page):
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False})
    try:
        for view in VIEWS:
            page.open(view)
            page.find("h1")
            surplus = page.driver.execute_script(
                "return document.documentElement.scrollWidth - innerWidth")
            assert (view, max(0, surplus)) == (view, 0)
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
