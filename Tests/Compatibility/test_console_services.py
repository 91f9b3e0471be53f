"""The console's views of events, rules, users, vectors and flags, as a person uses them."""

import json
import urllib.parse
import uuid

import conftest
import pytest
import requests
from console_browser import CHROMIUM, Console, started_browser
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")

OWNER = {"Authorization": "Bearer owner"}
HTML = "<img src=x onerror=alert(1)><script>alert(2)</script>"
TEMPLATE = "remoteConfig/template"
FLAG = "trainer_chat_enabled"


class View(Console):
    """A console that counts clicks and reaches the suite's data without the browser."""

    def __init__(self, driver, suite):
        super().__init__(driver, suite)
        self.clicks = 0
        # The browser logs each refused request, also those that a test is about.
        self.expects_refusals = False

    def click(self, selector, text="", exact=False):
        super().click(selector, text, exact)
        self.clicks += 1

    def start(self, path=""):
        self.open(path)
        self.clicks = 0

    def goto(self, name):
        """Chooses a view in the navigation."""
        self.click("#navigation a", name, exact=True)

    def select(self, label, text):
        """Chooses an option of a labelled list, as soon as it is there."""
        self.find("select", label)
        self.wait(lambda: any(option.text == text for option in
                              Select(self.find("select", label)).options))
        Select(self.find("select", label)).select_by_visible_text(text)

    def unexpected(self):
        return [entry for entry in self.problems()
                if not (self.expects_refusals and "Failed to load resource" in entry)]

    def url(self, service, path):
        return f"http://{self.suite.address(service)}{path}"

    def put(self, path, fields, **query):
        reply = requests.patch(
            self.url("firestore", document(path)), params=query, headers=OWNER, timeout=30,
            json={"fields": {name: value(field) for name, field in fields.items()}})
        assert reply.status_code == 200, reply.text

    def read(self, path):
        """The fields of a document as Firestore's JSON has them, or None."""
        reply = requests.get(self.url("firestore", document(path)), headers=OWNER, timeout=30)
        return reply.json().get("fields", {}) if reply.status_code == 200 else None

    def delete(self, path):
        requests.delete(self.url("firestore", document(path)), headers=OWNER, timeout=30)

    def get_as(self, uid, path):
        headers = {"Authorization": f"Bearer {conftest.token(uid)}"}
        url = self.url("firestore", document(path))
        return requests.get(url, headers=headers, timeout=30).status_code

    def auth(self, path, body):
        reply = requests.post(
            self.url("auth", f"/identitytoolkit.googleapis.com/v1/{path}"), json=body,
            headers=OWNER, timeout=60)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def user(self, uid):
        found = self.auth(f"projects/{conftest.PROJECT}/accounts:lookup", {"localId": [uid]})
        return found.get("users", [None])[0]

    def events(self, function):
        reply = self.suite.hub("GET", f"/hearth/v1/events?limit=1000&function={function}")
        return reply.json()

    def event(self, subject):
        """The newest event of a document, as soon as there is one that has ended."""
        def found():
            events = self.suite.hub("GET", "/hearth/v1/events?limit=1000").json()
            return next((event for event in events if event["document"] == subject
                         and event["state"] in ("failed", "dead", "succeeded")), None)
        return self.wait(found, 30)

    def is_alone(self):
        """True if nothing of a hostile text has become an element of the page."""
        return self.driver.execute_script(
            "return document.querySelectorAll('main img, main script, dialog img').length") == 0


def document(path):
    return f"/v1/projects/{conftest.PROJECT}/databases/(default)/documents/{urllib.parse.quote(path)}"


def value(plain):
    if isinstance(plain, bool):
        return {"booleanValue": plain}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(element) for element in plain]}}
    if isinstance(plain, dict):
        return {"mapValue": {"fields": {name: value(field) for name, field in plain.items()}}}
    return {"stringValue": plain}


def unique():
    return uuid.uuid4().hex[:12]


@pytest.fixture(scope="module")
def driver():
    with started_browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A suite of functions that fail as their names say, without rules."""
    folder = tmp_path_factory.mktemp("sample")
    with conftest.started_sample(folder) as suite:
        yield suite


@pytest.fixture(scope="module")
def psst():
    """Psst's suite with its rules."""
    with conftest.started(
            conftest.ROOT, "--no-build", "--configuration", conftest.CONFIGURATION) as suite:
        yield suite


def watched(driver, suite):
    view = View(driver, suite)
    view.unexpected()
    yield view
    assert view.unexpected() == []


@pytest.fixture
def console(driver, sample):
    yield from watched(driver, sample)


@pytest.fixture
def app(driver, psst):
    yield from watched(driver, psst)


def runs(console, function, name):
    """How many attempts a sample function has begun for a document."""
    text = console.suite.output.read_text(encoding="utf-8") if console.suite.output.exists() else ""
    return sum(line.startswith(f"{function} begun {name} ") for line in text.splitlines())


# Events


def test_why_an_event_failed_and_its_retry_take_three_clicks(console):
    name = unique()
    console.put(f"failForGood/{name}", {})
    assert console.event(f"failForGood/{name}")["state"] == "dead"
    for other in range(3):
        console.put(f"hop3/{name}{other}", {})
    console.start()
    console.goto("Events")
    console.click("a.entry", f"failForGood/{name}")
    console.shows("The handler threw: failed as asked", ".detail")
    # The log says why.
    console.shows("failed as asked", ".detail .log-lines")
    assert runs(console, "failForGood", name) == 1
    console.click("button", "Retry", exact=True)
    assert console.clicks == 3
    console.wait(lambda: runs(console, "failForGood", name) == 2)
    # It fails again, which the page shows without a reload.
    console.find(".detail button", "Retry", exact=True)
    console.wait(lambda: console.text(".log-lines").count("failed as asked") == 2)


def test_failed_events_come_before_newer_ones(console):
    name = unique()
    console.put(f"failWithoutRetry/{name}", {})
    console.event(f"failWithoutRetry/{name}")
    console.put(f"hop3/{name}", {})
    console.event(f"hop3/{name}")
    console.start("events")
    console.find("a.entry", f"hop3/{name}")
    entries = console.text(".entries").split("\n")
    assert entries.index("failed") < entries.index("succeeded")


def test_the_filters_choose_by_state_function_and_text(console):
    name = unique()
    console.put(f"failWithoutRetry/{name}", {})
    console.put(f"hop3/{name}", {})
    console.event(f"failWithoutRetry/{name}")
    console.event(f"hop3/{name}")
    console.start("events")
    console.click(".choice button", "succeeded")
    console.wait(lambda: console.has("a.entry", f"hop3/{name}") and not console.has("a.entry", "failed"))
    console.click(".choice button", "failed", exact=True)
    console.wait(lambda: console.has("a.entry", f"failWithoutRetry/{name}")
                 and not console.has("a.entry", "succeeded"))
    console.click(".choice button", "all, failed first")
    console.type("input[type=search]", f"HOP3/{name}", label="Text")
    console.wait(lambda: len(console.driver.find_elements("css selector", "a.entry")) == 1)
    console.find("a.entry", f"hop3/{name}")


def test_the_chain_shows_write_function_write(console):
    name = unique()
    console.put(f"hop1/{name}", {})
    last = console.event(f"hop3/{name}")
    middle = console.event(f"hop2/{name}")
    console.start(f"events/{middle['id']}")
    console.shows("hop3", ".tree")

    def names(id):
        """The texts from the root of the nested lists to a function, as a screen reader has them."""
        return console.driver.execute_script("""
            const node = [...document.querySelectorAll(".tree .node")].find((node) =>
              node.textContent.includes(arguments[0]));
            const names = [];
            for (let item = node?.closest("li"); item; item = item.parentElement.closest("li")) {
              names.unshift(item.firstElementChild.textContent.split(" ").slice(0, 3).join(" ").trim());
            }
            return names;""", id)

    write = last["id"].removesuffix(".hop3")
    console.wait(lambda: [text.split(" ")[0] for text in names(write)]
                 == ["write", "function", "write", "function", "write"])
    assert names(write) == [
        f"write created hop1/{name}", "function hop1 succeeded", f"write created hop2/{name}",
        "function hop2 (this", f"write created hop3/{name}"]
    # Each function of the picture leads to its event.
    console.click(".tree a", "hop3", exact=True)
    console.shows(last["id"], ".detail h2")


def test_a_discarded_event_is_gone(console):
    name = unique()
    console.put(f"failWithoutRetry/{name}", {})
    event = console.event(f"failWithoutRetry/{name}")
    console.start(f"events/{event['id']}")
    console.click(".detail button", "Discard", exact=True)
    console.shows("The function never receives it", "dialog")
    assert any(one["id"] == event["id"] for one in console.events("failWithoutRetry"))
    console.click("dialog button", "Discard", exact=True)
    console.shows("The event is discarded", ".detail")
    assert all(one["id"] != event["id"] for one in console.events("failWithoutRetry"))
    console.wait(lambda: not console.has("a.entry", f"failWithoutRetry/{name}"))


def test_all_failed_events_of_a_function_are_retried_and_discarded(console):
    names = [unique() for _ in range(3)]
    for name in names:
        console.put(f"failForGood/{name}", {})
        console.event(f"failForGood/{name}")
    console.start("events")
    console.select("Function", "failForGood")
    console.wait(lambda: not console.has("a.entry", "hop"))
    console.click("button", "Retry all failed")
    console.shows("pending again", "#toasts")
    console.wait(lambda: all(runs(console, "failForGood", name) == 2 for name in names))
    for name in names:
        console.event(f"failForGood/{name}")
    console.click("button", "Discard events")
    console.shows("the events of failForGood", "dialog")
    console.select("State", "dead")
    console.click("dialog button", "Discard all")
    console.shows("No event matches the filter.")
    assert console.events("failForGood") == []


def test_html_in_an_error_is_text(console):
    # The path of a document is part of the error about a loop.
    name = f"{HTML.replace('/', '')}{unique()}\u202e"
    console.put(f"rewritten/{name}", {})
    console.wait(lambda: any(event["state"] == "dead" and name in event.get("error", "")
                             for event in console.events("rewrite")), 60)
    event = next(event for event in console.events("rewrite")
                 if event["state"] == "dead" and name in event["error"])
    console.start(f"events/{event['id']}")
    console.shows("<img src=x onerror=alert(1)>", ".detail .problem")
    console.shows("\\u{202E}", ".detail .problem")
    console.shows("<img src=x onerror=alert(1)>", ".entries")
    assert console.is_alone()
    # The chain of the loop has its beginning.
    console.wait(lambda: console.text(".tree").count("rewrite") > 20)


def test_the_page_stays_responsive_while_ten_thousand_events_arrive(console):
    console.start("events")
    console.find(".entry-list")
    # The longest time for which the page did not respond.
    console.driver.execute_script("""
        window.longest = 0;
        let last = performance.now();
        setInterval(() => {
          const now = performance.now();
          window.longest = Math.max(window.longest, now - last);
          last = now;
        }, 10);""")
    batch = unique()
    for part in range(20):
        writes = [{"update": {"name": document(f"things/{batch}-{part}-{one}").removeprefix("/v1/"),
                              "fields": {"n": {"integerValue": "1"}}}} for one in range(500)]
        reply = requests.post(
            console.url("firestore", document("").rstrip("/") + ":commit"), json={"writes": writes},
            headers=OWNER, timeout=60)
        assert reply.status_code == 200, reply.text
    console.suite.settle()
    console.click(".choice button", "succeeded")
    console.find("a.entry", f"things/{batch}-19-")
    console.type("input[type=search]", f"{batch}-19-", label="Text")
    console.shows("500 events", "[role=status]")
    console.click("button", "Show 100 more of 500")
    console.wait(lambda: len(console.driver.find_elements("css selector", "a.entry")) == 200)
    elements = console.driver.execute_script("return document.querySelectorAll('*').length")
    longest = console.driver.execute_script("return window.longest")
    assert elements < 5000
    assert longest < 2000, f"the page did not respond for {longest} ms"


# Rules


def test_why_a_read_was_denied_takes_three_clicks(app):
    chat = unique()
    app.put(f"chats/{chat}", {"members": ["tina", "carl"]})
    assert app.get_as("mallory", f"chats/{chat}") == 403
    assert app.get_as("tina", f"chats/{chat}") == 200
    app.start()
    app.goto("Rules")
    # The refusal is first, although the other decision is newer.
    app.find("a.entry", f"get chats/{chat}")
    assert app.text(".entries").split("\n")[0] == "denied"
    app.click("a.entry", f"get chats/{chat}")
    assert app.clicks == 2
    app.shows("allow get: false", ".detail")
    text = app.text(".detail")
    assert "request.auth.uid in chat.members" in text and "mallory" in text
    assert "firestore.rules:" in text
    # The third click shows the rule in the file.
    line = int(text.split("firestore.rules:")[1].split(":")[0])
    app.click(".reasons a", f"firestore.rules:{line}:")
    rule = (conftest.ROOT / "firestore.rules").read_text(encoding="utf-8").splitlines()[line - 1]
    app.shows(rule.strip(), f"[data-line='{line}']")


def test_decisions_are_filtered_by_kind_text_and_user(app):
    chat, uid = unique(), unique()
    app.put(f"chats/{chat}", {"members": [uid]})
    assert app.get_as(uid, f"chats/{chat}") == 200
    assert app.get_as("mallory", f"chats/{chat}") == 403
    app.start("rules")
    app.click(".choice button", "allowed", exact=True)
    app.wait(lambda: app.has("a.entry", chat) and not app.has("a.entry", "denied"))
    app.click(".choice button", "denied", exact=True)
    app.wait(lambda: app.has("a.entry", chat) and not app.has("a.entry", "allowed"))
    app.click(".choice button", "all, denied first")
    app.type("input[type=search]", uid, label="User")
    app.wait(lambda: len(app.driver.find_elements("css selector", "a.entry")) == 1)
    app.find("a.entry", "allowed")


def test_a_read_is_tried_as_a_user_and_explained(app):
    chat = unique()
    app.put(f"chats/{chat}", {"members": ["tina"]})
    app.expects_refusals = True
    app.start("rules/try")
    app.select("As", "user …")
    app.type("input[aria-label='User ID']", "mallory")
    app.type("input.mono", f"chats/{chat}", label="Path")
    app.click("button", "Try", exact=True)
    app.shows("allow get: false")
    app.shows("denied", "article")
    app.type("input[aria-label='User ID']", "tina")
    app.click("button", "Try", exact=True)
    app.shows("The document exists.")
    app.shows("allow get: true")
    # A collection is read as a whole.
    app.select("Read", "list a collection")
    app.type("input.mono", "chats", label="Path")
    app.click("button", "Try", exact=True)
    app.shows("allow list: ")


def test_coverage_shows_counts_beside_each_condition(app):
    app.put("users/covered", {"displayName": "Covered"})
    assert app.get_as("mallory", "users/covered") == 200
    app.start("rules/coverage")
    lines = (conftest.ROOT / "firestore.rules").read_text(encoding="utf-8").split("\n")
    app.wait(lambda: len(app.driver.find_elements("css selector", ".source > li")) == len(lines))
    number = next(n for n, line in enumerate(lines, 1) if "function isSignedIn" in line)
    line = f"[data-line='{number}']"
    app.shows(lines[number - 1].strip(), line)
    app.shows("× true", line)
    app.click(f"{line} button.chip")
    app.shows("request.auth", f"{line} .parts-of")
    assert app.has("button.chip", "never evaluated")


def test_a_suite_without_rules_says_how_to_get_them(console):
    console.expects_refusals = True
    console.start("rules/coverage")
    console.shows("No rules are loaded")
    console.shows("firestore.rules")


# Flags


def flags(app, **parameters):
    """Stores a template with flags; none if there are no parameters."""
    app.delete(TEMPLATE)
    if parameters:
        app.put(TEMPLATE, {"parameters": parameters, "conditions": [
            {"name": "ios", "expression": "device.os == 'ios'"}]})


def off(**more):
    return {"defaultValue": {"value": "false"}, **more}


def parameter(app, name):
    fields = app.read(TEMPLATE)["parameters"]["mapValue"]["fields"]
    return fields[name]["mapValue"]["fields"]


def default(app, name):
    return parameter(app, name)["defaultValue"]["mapValue"]["fields"]["value"]


def test_changing_a_flag_takes_three_clicks(app):
    flags(app, **{FLAG: off()})
    app.start()
    app.goto("Flags")
    app.click("input[role=switch]", f"{FLAG} by default")
    app.click("button", "Save", exact=True)
    assert app.clicks == 3
    app.wait(lambda: default(app, FLAG) == {"stringValue": "true"})
    app.shows("On for everybody.")
    # The other flags of the template and its conditions stay.
    assert app.read(TEMPLATE)["conditions"] == value([{"name": "ios", "expression": "device.os == 'ios'"}])


def test_a_percentage_becomes_a_condition(app):
    flags(app, **{FLAG: off()})
    app.start("flags")
    slider = app.find("input[type=range]", f"{FLAG}: percentage of users")
    slider.send_keys(*[Keys.ARROW_RIGHT] * 3)
    app.shows("On for 3 % of the users, off for the others.")
    app.type("input.percent", "10", label=f"{FLAG}: percentage")
    app.shows("On for 10 % of the users, off for the others.")
    app.click("button", "Save", exact=True)
    app.wait(lambda: "conditionalValues" in parameter(app, FLAG))
    assert app.read(TEMPLATE)["conditions"] == value([
        {"name": "ios", "expression": "device.os == 'ios'"},
        {"name": FLAG, "expression": "percent <= 10"}])
    assert parameter(app, FLAG)["conditionalValues"] == value({FLAG: {"value": "true"}})
    assert default(app, FLAG) == {"stringValue": "false"}


def test_conditions_that_the_page_does_not_know_are_read_only(app):
    seeded = "percent('a') <= 5"
    app.delete(TEMPLATE)
    app.put(TEMPLATE, {
        "parameters": {FLAG: off(conditionalValues={FLAG: {"value": "true"}, "ios": {"value": "true"}}),
                       "greeting": {"defaultValue": {"value": HTML}}},
        "conditions": [{"name": FLAG, "expression": seeded},
                       {"name": "ios", "expression": "device.os == 'ios'"}]})
    app.start("flags")
    app.shows(seeded)
    app.shows("device.os == 'ios'")
    assert not app.has("input[type=range]", f"{FLAG}: percentage of users")
    # A parameter that is no flag is a text.
    app.type("input.mono", "Hello", label="greeting: default value")
    app.click("button", "Save", exact=True)
    app.wait(lambda: default(app, "greeting") == {"stringValue": "Hello"})
    assert app.read(TEMPLATE)["conditions"] == value([
        {"name": FLAG, "expression": seeded}, {"name": "ios", "expression": "device.os == 'ios'"}])
    assert app.is_alone()


def test_a_missing_template_is_created_with_the_flags_off(app):
    flags(app)
    app.start("flags")
    app.shows("There is no template yet")
    app.click("button", "Create the template")
    app.find("input[role=switch]", f"{FLAG} by default")
    names = app.read(TEMPLATE)["parameters"]["mapValue"]["fields"]
    assert set(names) == {"personal_trainer_enabled", "cms_workout_sync_enabled", FLAG,
                          "relationship_validation_enabled"}
    assert all(default(app, name) == {"stringValue": "false"} for name in names)


def test_of_two_windows_that_edit_a_flag_the_second_is_told(app):
    other = "personal_trainer_enabled"
    flags(app, **{FLAG: off(), other: off()})
    app.expects_refusals = True
    app.start("flags")
    app.click("input[role=switch]", f"{FLAG} by default")
    first = app.driver.current_window_handle
    app.driver.switch_to.new_window("window")
    try:
        app.start("flags")
        app.click("input[role=switch]", f"{other} by default")
        app.click("button", "Save", exact=True)
        app.wait(lambda: default(app, other) == {"stringValue": "true"})
    finally:
        app.driver.close()
        app.driver.switch_to.window(first)
    app.click("button", "Save", exact=True)
    app.shows("Nothing was saved: the flags have been changed elsewhere")
    assert default(app, FLAG) == {"stringValue": "false"}
    assert default(app, other) == {"stringValue": "true"}
    # The page shows what is stored; the change can be made again.
    assert app.find("input[role=switch]", f"{other} by default").is_selected()
    assert not app.find("input[role=switch]", f"{FLAG} by default").is_selected()
    app.click("input[role=switch]", f"{FLAG} by default")
    app.click("button", "Save", exact=True)
    app.wait(lambda: default(app, FLAG) == {"stringValue": "true"})
    assert default(app, other) == {"stringValue": "true"}


# Users


def make_user(view, **fields):
    uid = unique()
    view.auth(f"projects/{conftest.PROJECT}/accounts", {"localId": uid, **fields})
    return uid


def test_a_user_is_created_given_claims_and_deleted(console):
    uid = unique()
    console.start("auth")
    console.click("button", "Create a user")
    console.type("dialog input", f"{uid}@example.com", label="E-mail")
    console.type("dialog input", "secret1", label="Password")
    console.type("dialog input", "Tina", label="Name")
    console.type("dialog input", uid, label="User ID")
    console.click("dialog button", "Create", exact=True)
    console.shows("Tina", ".detail h2")
    assert console.user(uid)["email"] == f"{uid}@example.com"

    console.type(".detail textarea", "{admin: true}", label="Custom claims")
    console.click(".detail button", "Save", exact=True)
    console.shows("The claims are not JSON", ".detail [role=alert]")
    console.type(".detail textarea", '{"admin": true}', label="Custom claims")
    console.click(".detail input[type=checkbox]", "E-mail is verified")
    console.click(".detail button", "Save", exact=True)
    console.wait(lambda: console.user(uid).get("customAttributes"))
    changed = console.user(uid)
    assert json.loads(changed["customAttributes"]) == {"admin": True} and changed["emailVerified"]
    console.find("a.entry", "claims")

    console.click(".detail input[type=checkbox]", "Disabled")
    console.click(".detail button", "Save", exact=True)
    console.wait(lambda: console.user(uid)["disabled"])
    console.click(".detail button", "Delete")
    console.click("dialog button", "Delete", exact=True)
    console.wait(lambda: console.user(uid) is None)
    console.wait(lambda: not console.has("a.entry", uid))


def test_an_id_token_is_copied_and_tokens_are_revoked(console):
    uid = make_user(console, email=f"{unique()}@example.com", customAttributes='{"role": "coach"}')
    console.driver.execute_cdp_cmd("Browser.grantPermissions", {
        "origin": console.origin, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    console.start(f"auth/users/{uid}")
    console.click("button", "Copy an ID token")
    console.shows("Copied.", "#toasts")
    token = console.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[arguments.length - 1])")
    head, payload, signature = token.split(".")
    claims = json.loads(conftest.base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert head and signature == ""
    assert (claims["sub"], claims["role"], claims["aud"]) == (uid, "coach", conftest.PROJECT)
    assert "validSince" not in console.user(uid)
    console.click("button", "Revoke tokens")
    console.wait(lambda: "validSince" in console.user(uid))


def test_a_hostile_name_is_text_and_users_are_found_by_parts_of_it(console):
    name = f"{HTML}\u202e{unique()}"
    uid = make_user(console, displayName=name)
    console.start("auth")
    console.type("input[type=search]", name[-8:].upper(), label="Search")
    console.shows("1 found among", "[role=status]")
    console.click("a.entry", uid)
    console.shows(HTML, ".detail h2")
    console.shows("\\u{202E}", ".detail h2")
    assert console.is_alone()


def test_many_users_are_paged_and_searched(console):
    batch = unique()
    for start in (0, 1000):
        console.auth(f"projects/{conftest.PROJECT}/accounts:batchCreate", {"users": [
            {"localId": f"{batch}-{number:04}", "displayName": f"Person {number} of {batch}"}
            for number in range(start, start + 1000)]})
    console.start("auth")
    console.wait(lambda: "2," in console.text("[role=status]"))
    assert len(console.driver.find_elements("css selector", "a.entry")) == 100
    console.click("button", "Load more users")
    console.find("button", "Show 100 more of 400")
    console.type("input[type=search]", f"Person 1777 of {batch}", label="Search")
    console.find("a.entry", f"{batch}-1777")
    console.wait(lambda: len(console.driver.find_elements("css selector", "a.entry")) == 1)


def test_codes_and_links_are_shown(console):
    email = f"{unique()}@example.com"
    make_user(console, email=email, password="secret1")
    url = console.url("auth", "/identitytoolkit.googleapis.com/v1/accounts:")
    reply = requests.post(f"{url}sendOobCode?key=x", timeout=30,
                          json={"requestType": "PASSWORD_RESET", "email": email})
    assert reply.status_code == 200, reply.text
    number = "+4915112345678"
    reply = requests.post(f"{url}sendVerificationCode?key=x", json={"phoneNumber": number}, timeout=30)
    assert reply.status_code == 200, reply.text
    emulator = console.url("auth", f"/emulator/v1/projects/{conftest.PROJECT}")
    code = next(code for code in requests.get(f"{emulator}/oobCodes", timeout=30).json()["oobCodes"]
                if code["email"] == email)
    phone = requests.get(f"{emulator}/verificationCodes", timeout=30).json()["verificationCodes"][-1]
    console.start("auth")
    console.click(".parts a", "Codes")
    console.shows(email)
    console.shows("reset the password")
    console.shows(phone["code"])
    link = console.find("a", "Open the link")
    assert link.get_attribute("href") == code["oobLink"]
    assert console.has("button", "Copy the code") and console.has("button", "Copy the link")


# Vectors


@pytest.fixture(scope="module")
def index(sample):
    name = f"i-{unique()}"
    origin = f"http://{sample.address('vectors')}"
    reply = requests.post(f"{origin}/indexes", timeout=30, json={
        "name": name, "dimension": 3, "metric": "cosine", "tags": {"model": "words"},
        "spec": {"serverless": {"cloud": "aws", "region": "us-east-1"}}})
    assert reply.status_code == 201, reply.text
    records = [
        {"id": "c1#m1", "values": [1, 0, 0], "metadata": {"text": HTML, "sender": "tina"}},
        {"id": "c1#m2", "values": [0.9, 0.1, 0], "metadata": {"text": "near", "sender": "carl"}},
        {"id": "c2#m1", "values": [0, 0, 1], "metadata": {"text": "far", "sender": "carl"}},
        *({"id": f"many#{number:03}", "values": [0, 1, 0]} for number in range(150)),
    ]
    for namespace, part in (("", records), ("other", records[:1])):
        reply = requests.post(f"{origin}/ix/{name}/vectors/upsert", timeout=30,
                              json={"vectors": part, "namespace": namespace})
        assert reply.status_code == 200, reply.text
    return name


def test_vectors_are_listed_and_found(console, index):
    console.start()
    console.goto("Vectors")
    console.find("article", index)
    card = console.text("article")
    assert "cosine" in card and "154" in card and "other" in card and "model = words" in card
    console.click("article h2 a", index)
    console.type("input[type=search]", "c1#", label="ID begins with")
    console.wait(lambda: console.text(".entries").split() == ["c1#m1", "c1#m2"])
    console.click("a.entry", "c1#m1")
    console.shows(HTML, ".detail table")
    console.shows("3 dimensions", ".detail")
    assert console.is_alone()
    console.click("button", "Search", exact=True)
    console.shows("c1#m2", ".detail form")
    console.shows("1.0000", ".detail form")
    console.type("textarea", '{"sender": "carl"}', label="Metadata filter")
    console.type("input[type=number]", "1", label="Results")
    console.click("button", "Search", exact=True)
    console.shows("1 similar record", ".detail form")
    console.shows("c1#m2", ".detail form")
    console.type("textarea", "{sender", label="Metadata filter")
    console.click("button", "Search", exact=True)
    console.shows("The filter is not JSON", ".detail [role=alert]")


def test_ids_come_page_by_page_and_a_record_is_deleted(console, index):
    console.start(f"vectors/{index}")
    console.wait(lambda: len(console.driver.find_elements("css selector", "a.entry")) == 100)
    console.click("button", "Load more IDs")
    console.find("button", "Show 53 more of 153")
    console.start(f"vectors/{index}/__default__/{urllib.parse.quote('many#149', safe='')}")
    console.click("button", "Delete")
    console.click("dialog button", "Delete", exact=True)
    console.shows("The record is deleted.", "#toasts")
    reply = requests.get(console.url("vectors", f"/ix/{index}/vectors/fetch"),
                         params={"ids": "many#149"}, timeout=30)
    assert reply.json()["vectors"] == {}


# Access


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_views_of_the_sample(console, index, theme):
    name = unique()
    console.put(f"failForGood/{name}", {})
    failed = console.event(f"failForGood/{name}")
    uid = make_user(console, displayName="Axe", customAttributes='{"a": 1}')
    record = urllib.parse.quote("c1#m1", safe="")
    views = [
        ("events", "a.entry", "failForGood"),
        (f"events/{failed['id']}", ".log-lines", "failed as asked"),
        ("auth", "a.entry", ""), (f"auth/users/{uid}", ".detail h2", "Axe"),
        ("auth/codes", "h2", "Short messages"),
        ("vectors", "article", index), (f"vectors/{index}", "a.entry", "c1#m1"),
        (f"vectors/{index}/__default__/{record}", ".detail table", "tina"),
    ]
    check(console, theme, views)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_views_of_psst(app, theme):
    chat = unique()
    app.put(f"chats/{chat}", {"members": ["tina"]})
    app.get_as("tina", f"chats/{chat}")
    app.get_as("mallory", f"chats/{chat}")
    flags(app, **{FLAG: off(), "greeting": {"defaultValue": {"value": "Hello"}}})
    views = [
        ("rules", "a.entry", chat), ("rules/try", "button", "Try"),
        ("rules/coverage", "button.chip", "never evaluated"),
        ("flags", "input[role=switch]", FLAG),
    ]
    check(app, theme, views)
    app.start("rules")
    app.click("a.entry", f"denied get chats/{chat}" if app.has("a.entry", f"denied get chats/{chat}") else chat)
    app.shows("allow get", ".detail")
    assert app.violations() == []


def check(view, theme, views):
    view.open()
    view.driver.execute_script("localStorage.setItem('hearth-theme', arguments[0])", theme)
    for path, selector, text in views:
        view.open(path)
        view.find(selector, text)
        assert (path, view.violations()) == (path, [])


@pytest.mark.parametrize("path", ["events", "rules", "auth", "vectors", "flags"])
def test_the_views_fit_a_narrow_window(console, path):
    console.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False})
    try:
        console.start(path)
        console.find("h1")
        assert console.driver.execute_script(
            "return document.documentElement.scrollWidth <= innerWidth")
    finally:
        console.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
