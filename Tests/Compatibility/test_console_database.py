"""The console's Realtime Database: columns, a large node, edits, other clients and rules."""

import json
import os

import pytest
import requests
from conftest import PROJECT, started
from console_browser import Console, started_browser
from selenium.webdriver.common.keys import Keys

FIRST = f"{PROJECT}-default-rtdb"
MANY = int(os.environ.get("HEARTH_CONSOLE_NODES", "5000"))


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "database.rules.json").write_text(
        '{"rules": {"users": {".read": "auth.uid == \'tina\'"}, "open": {".read": true}}}',
        encoding="utf-8")
    with started(folder, "--no-functions") as suite:
        yield suite


@pytest.fixture(scope="module")
def driver():
    with started_browser() as driver:
        yield driver


@pytest.fixture
def page(driver, suite):
    """The console; in the end the browser has logged no error."""
    console = Console(driver, suite)
    console.problems()
    yield console
    assert console.problems() == []


@pytest.fixture
def tree(suite):
    """Reads and writes the tree; at first it is empty."""
    def send(method, path, value=None, instance=FIRST):
        reply = requests.request(
            method, f"http://{suite.address('database')}{path}.json", timeout=30,
            params={"ns": instance}, headers={"Authorization": "Bearer owner"},
            **({"data": json.dumps(value)} if value is not None else {}))
        assert reply.status_code == 200, reply.text
        return reply.json()

    send("DELETE", "/")
    return send


def test_columns_lead_to_a_value(page, tree):
    tree("PUT", "/", {"users": {"tina": {"name": "Tina", "online": True}}, "10": 1, "9": 2, "-1": 3})
    page.open("database")
    page.click(".list-row", "users")
    page.click(".list-row", "tina")
    page.click(".list-row", "name")
    page.shows('"Tina"')
    assert page.driver.current_url.endswith(f"#/database/{FIRST}/users/tina/name")
    assert page.violations() == []
    rows = page.driver.execute_script(
        "return [...document.querySelector('.virtual-list').querySelectorAll('.list-row')]"
        ".map((row) => row.textContent)")
    assert rows == ["-13", "92", "101", "users›"]


def test_a_node_with_many_children_is_loaded_in_pages(page, tree):
    tree("PUT", "/many", {f"k{number:07d}": number for number in range(MANY)})
    page.open(f"database/{FIRST}/many")
    page.find(".list-row", "k0000000")
    # Every page that comes into sight makes the list longer.
    seen = page.find("[aria-label='Children of /many']")
    page.wait(lambda: (seen.send_keys(Keys.END), page.has(".list-row", f"k{MANY - 1:07d}"))[1], 60)
    assert len(page.driver.find_elements("css selector", ".list-row")) < 100


def test_a_change_by_another_client_is_seen(page, tree):
    tree("PUT", "/a", {"b": 1})
    page.open(f"database/{FIRST}/a")
    page.find(".list-row", "b1")
    tree("PUT", "/a/b", 2)
    page.find(".list-row", "b2")
    tree("PUT", "/a/c", True)
    page.find(".list-row", "ctrue")
    tree("DELETE", "/a")
    page.shows("There is no value here.")


def test_values_are_added_edited_and_deleted(page, tree):
    page.open(f"database/{FIRST}/a")
    page.click("[aria-label='Node /a'] button", "Add")
    page.type("dialog input", "b")
    page.type("dialog textarea", '{"x": [1, 2], ".priority": 3}')
    page.click("dialog button", "Add")
    page.find("[aria-label='Node /a/b']")
    assert tree("GET", "/a/b/x") == [1, 2] and tree("GET", "/a/b/.priority") == 3
    page.click("[aria-label='Node /a/b'] button", "Edit")
    edited = page.find("dialog textarea")
    assert json.loads(edited.get_attribute("value")) == {"x": {"0": 1, "1": 2}, ".priority": 3}
    page.type("dialog textarea", '{"x": "é"}')
    page.click("dialog button", "Save")
    page.wait(lambda: tree("GET", "/a/b") == {"x": "é"})
    page.click("[aria-label='Node /a/b'] button", "Delete")
    page.click("dialog button", "Delete")
    page.wait(lambda: tree("GET", "/a") is None)


def test_what_others_wrote_meanwhile_is_not_overwritten(page, tree):
    tree("PUT", "/a", 1)
    page.open(f"database/{FIRST}/a")
    page.click("[aria-label='Node /a'] button", "Edit")
    page.find("dialog textarea")
    tree("PUT", "/a", 2)
    page.type("dialog textarea", "3")
    page.click("dialog button", "Save")
    page.find("dialog .problem", "changed elsewhere meanwhile")
    assert tree("GET", "/a") == 2
    # Browsers log each response with the status of an error.
    assert all("412" in problem for problem in page.problems())


def test_a_new_child_does_not_replace_another_one(page, tree):
    tree("PUT", "/a", {"b": 1})
    page.open(f"database/{FIRST}/a")
    page.click("[aria-label='Node /a'] button", "Add")
    page.type("dialog input", "b")
    page.type("dialog textarea", "2")
    page.click("dialog button", "Add")
    page.find("dialog .problem", "changed elsewhere meanwhile")
    assert tree("GET", "/a/b") == 1
    page.problems()


def test_instances_are_chosen(page, tree):
    tree("PUT", "/", {"only": "here"}, instance="other")
    page.open("database")
    page.find("select", "Instance")
    page.driver.execute_script("""
        const chooser = document.querySelector("select");
        chooser.value = "other";
        chooser.dispatchEvent(new Event("change"));""")
    page.find(".list-row", "only")
    assert page.driver.current_url.endswith("#/database/other")


def test_the_rules_decide_for_a_chosen_user(page, tree):
    tree("PUT", "/", {"users": {"tina": 1}, "open": 1})
    page.open(f"database/{FIRST}/users")
    page.click("[aria-label='Node /users'] button", "Who may read this?")
    page.type("dialog input", "tina")
    page.click("dialog button", "Decide")
    page.shows("Allowed.", "dialog")
    page.type("dialog input", "carl")
    page.click("dialog button", "Decide")
    page.shows("Denied.", "dialog")
    # Browsers log each response with the status of an error.
    assert all("401" in problem for problem in page.problems())
