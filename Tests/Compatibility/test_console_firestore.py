"""The console's Firestore: columns, a large collection, edits, other windows and other sites."""

import datetime
import json
import os

import uuid

import pytest
import requests
from conftest import PROJECT, ROOT, client, free_port, started
from console_browser import Console, started_browser
from google.cloud import firestore
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# `make console-tasks` measures a million documents in a release build.
MANY = int(os.environ.get("HEARTH_CONSOLE_DOCUMENTS", "20000"))


@pytest.fixture(scope="module")
def database(suite):
    return client(suite)


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
def name():
    """A collection of its own."""
    return f"c-{uuid.uuid4().hex[:12]}"


def row(page, text):
    """Waits for a row of a list of documents with a text."""
    return page.find(".list-row", text)


@pytest.fixture(scope="module")
def many(suite, database):
    """A collection of many documents."""
    name = f"many-{uuid.uuid4().hex[:8]}"
    session = requests.Session()
    session.headers["Authorization"] = "Bearer owner"
    root = f"projects/{PROJECT}/databases/(default)/documents"
    for start in range(0, MANY, 500):
        writes = [{"update": {
            "name": f"{root}/{name}/m{number:07d}",
            "fields": {"value": {"integerValue": str(number)},
                       "parity": {"integerValue": str(number % 2)}},
        }} for number in range(start, min(start + 500, MANY))]
        reply = session.post(
            f"http://{suite.address('firestore')}/v1/{root}:commit", json={"writes": writes},
            timeout=60)
        assert reply.ok, reply.text
    return name


def loaded(page):
    """The texts of the rows in sight, or false while some are still to come."""
    return page.driver.execute_script("""
        const rows = [...document.querySelectorAll(".list-row")].map((row) => row.textContent);
        return rows.length && !rows.includes("…") && rows;""")


def test_columns_lead_to_a_document(page, database, name):
    database.document(f"{name}/tina-carl").set({"members": ["tina", "carl"]})
    database.document(f"{name}/tina-carl/messages/m1").set({"text": "How is the knee?"})
    page.open("firestore")
    page.click(".link-row", name)
    page.click(".list-row", "tina-carl")
    page.click(".column.wide .link-row", "messages")
    page.click(".list-row", "m1")
    page.shows("How is the knee?")
    assert page.driver.current_url.endswith(f"#/firestore/{name}/tina-carl/messages/m1")


def test_a_missing_document_with_documents_below_it_is_listed(page, database, name):
    database.document(f"{name}/tina/clients/carl").set({"displayName": "Carl"})
    page.open(f"firestore/{name}")
    page.click(".list-row", "tina")
    page.shows("There is no such document.")
    page.click(".column.wide .link-row", "clients")
    page.click(".list-row", "carl")
    page.shows("Carl")


def test_the_end_and_the_middle_of_a_large_collection(page, many):
    page.open(f"firestore/{many}")
    row(page, "m0000000")
    page.shows(f"{MANY:,}")
    page.find(".virtual-list").send_keys(Keys.END)
    row(page, f"m{MANY - 1:07d}")
    page.driver.execute_script("""
        const list = document.querySelector(".virtual-list");
        list.scrollTop = (list.scrollHeight - list.clientHeight) / 2;""")
    page.wait(lambda: abs(int((loaded(page) or ["m0"])[0][1:]) - MANY // 2) < 100)
    # The browser holds the rows in sight alone.
    assert len(loaded(page)) < 60


def test_rows_are_in_order_without_gaps_while_scrolling(page, many):
    page.open(f"firestore/{many}")
    row(page, "m0000000")
    seen = set()
    last = None
    while len(seen) < 350:
        # The rows of the last step are in sight until the browser draws the next frame.
        shown = page.wait(lambda: loaded(page) != last and loaded(page))
        last = shown
        numbers = [int(text[1:]) for text in shown]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        seen.update(numbers)
        page.driver.execute_script(
            "document.querySelector('.virtual-list').scrollTop += 300")
    assert seen == set(range(max(seen) + 1))


def test_a_query_and_its_code(page, many):
    page.open(f"firestore/{many}")
    page.click("button", "Filter")
    page.type("input", "value", "Field", clear=False)
    page.driver.execute_script("""
        const select = document.querySelector("select[aria-label=Operator]");
        select.value = "<"; select.dispatchEvent(new Event("change"));""")
    page.type("input", "7", "Value")
    page.type("input", "value", "Order by")
    page.driver.execute_script("document.querySelector('select[aria-label=Direction]').value = 'DESCENDING'")
    page.click("button", "Apply")
    page.wait(lambda: [text.split()[0] for text in rows(page)] == [
        f"m000000{number}" for number in reversed(range(7))])
    code = page.text(".code-box")
    assert '.whereField("value", isLessThan: 7)' in code
    assert '.order(by: "value", descending: true)' in code
    assert 'where("value", "<", 7)' in code and 'orderBy("value", "desc")' in code
    page.shows("Index:")


def rows(page):
    return page.driver.execute_script(
        "return [...document.querySelectorAll('.list-row')].map((row) => row.innerText)")


def loaded_rows(page):
    """The rows once all of them are loaded; until then a row shows only "…"."""
    texts = rows(page)
    return None if any(text.startswith("…") for text in texts) else texts


def test_documents_are_found_by_the_beginning_of_a_text(page, database, name):
    texts = ["How is the knee?", "How is work?", "Hello", "how is it"]
    for number, text in enumerate(texts):
        database.document(f"{name}/chat{number}/{name}-messages/m{number}").set({"text": text})
    page.open()
    page.click("#navigation a", "Firestore")
    page.type("input", f"{name}-messages", "In the collections")
    page.type("input", "text", "where the field")
    page.type("input", "How is", "starts with")
    page.click("button", "Find", exact=True)
    page.wait(lambda: loaded(page) and len(loaded(page)) == 2)
    assert "knee" in loaded(page)[0] and "work" in loaded(page)[1]
    page.click(".list-row", "work")
    page.wait(lambda: page.has(".column.wide .value", "How is work?"))
    assert page.driver.current_url.endswith(f"{name}/chat1/{name}-messages/m1")


def test_a_filtered_list_goes_on_behind_its_first_page(page, many):
    page.open(f"firestore/{many}")
    page.click("button", "Filter")
    page.type("input", "parity", "Field", clear=False)
    page.type("input", "1", "Value")
    page.click("button", "Apply")
    page.shows(f"{MANY // 2:,}")
    page.find(".virtual-list").send_keys(Keys.END)
    row(page, f"m{MANY - 1:07d}")
    assert all(int(text.split()[0][1:]) % 2 for text in page.wait(lambda: loaded_rows(page)))


def test_a_document_is_made_edited_and_deleted(page, database, name):
    page.open("firestore")
    page.click("button", "Add")
    page.type("dialog input", name)
    page.click("dialog button", "Continue")
    page.type("dialog input", "tina", "Document ID")
    page.type("dialog textarea", '{"age": 41, "since": {"__timestamp__": "2026-01-02T03:04:05Z"}}',
              "Fields as JSON")
    page.click("dialog button", "Add")
    page.shows("2026-01-02T03:04:05Z")
    page.click("button", "Edit age")
    page.type("dialog textarea", "forty")
    page.click("dialog button", "Save")
    page.shows('"forty" is not an integer.', "dialog")
    page.type("dialog textarea", "42")
    page.click("dialog button", "Save")
    page.wait(lambda: database.document(f"{name}/tina").get().to_dict()["age"] == 42)
    stored = database.document(f"{name}/tina").get().to_dict()
    assert stored["since"].isoformat() == "2026-01-02T03:04:05+00:00"
    page.click("button", "Delete", exact=True)
    page.click("dialog button", "Delete")
    page.wait(lambda: not database.document(f"{name}/tina").get().exists)


def test_two_windows_do_not_overwrite_each_other(page, database, name):
    document = database.document(f"{name}/tina")
    document.set({"age": 41, "city": "Bonn"})
    page.open(f"firestore/{name}/tina")
    page.click("button", "Edit age")
    # Another window, while the dialog is open.
    document.update({"age": 50})
    page.type("dialog textarea", "42")
    page.click("dialog button", "Save")
    page.shows("has been changed elsewhere", "dialog")
    assert document.get().to_dict() == {"age": 50, "city": "Bonn"}
    page.problems()


def seen(page, holds):
    """Waits until the page behind a dialog shows a change of another window."""
    page.wait(lambda: holds(page.driver.execute_script(
        "return document.querySelector('.fields').textContent")))


def test_an_open_dialog_does_not_overwrite_what_others_write_meanwhile(page, database, name):
    document = database.document(f"{name}/tina")
    document.set({"x": "first", "list": ["a", "b", "c"]})
    page.open(f"firestore/{name}/tina")
    for start, change, end in [
            ("Edit x", {"x": "other window"}, "other window"),
            ("Delete list.0", {"list": ["b", "c"]}, "[2]"),
            ("Edit as JSON", {"added": "other window"}, "added")]:
        page.click("button", start)
        page.find("dialog")
        document.update(change)
        seen(page, lambda text, end=end: end in text)
        if start != "Delete list.0":
            page.type("dialog textarea", '{"x": "mine"}')
        for _ in range(2):
            page.click("dialog button", "Delete" if "Delete" in start else "Save")
            page.shows("has been changed elsewhere", "dialog")
        page.click("dialog button", "Cancel")
    assert document.get().to_dict() == {
        "x": "other window", "list": ["b", "c"], "added": "other window"}
    page.problems()


def test_a_document_deleted_meanwhile_is_not_made_again(page, database, name):
    document = database.document(f"{name}/tina")
    document.set({"x": "first", "map": {"key": 1}})
    page.open(f"firestore/{name}/tina")
    page.click("button", "Edit map.key")
    document.delete()
    page.wait(lambda: "There is no such document." in page.text())
    page.type("dialog textarea", "2")
    page.click("dialog button", "Save")
    page.shows("has been changed elsewhere", "dialog")
    page.click("dialog button", "Cancel")
    assert not document.get().exists
    page.problems()


def test_a_deletion_spares_what_has_changed_meanwhile(page, database, name):
    document = database.document(f"{name}/tina")
    document.set({"x": "first"})
    page.open(f"firestore/{name}/tina")
    page.click("button", "Delete", exact=True)
    page.find("dialog")
    document.update({"x": "other window"})
    seen(page, lambda text: "other window" in text)
    page.click("dialog button", "Delete")
    page.shows("has been changed elsewhere", "dialog")
    assert document.get().exists
    page.problems()


def put_rest(suite, path, fields):
    reply = requests.patch(
        f"http://{suite.address('firestore')}/v1/projects/{PROJECT}/databases/(default)/documents"
        f"/{path}", json={"fields": fields}, headers={"Authorization": "Bearer owner"}, timeout=30)
    assert reply.ok, reply.text


def get_rest(suite, path):
    return requests.get(
        f"http://{suite.address('firestore')}/v1/projects/{PROJECT}/databases/(default)/documents"
        f"/{path}", headers={"Authorization": "Bearer owner"}, timeout=30).json()["fields"]


def written(fields):
    """The fields as a text, which tells the negative zero from zero."""
    return json.dumps(fields, sort_keys=True)


ODD = {
    "largest": {"integerValue": str(2**63 - 1)}, "beyond": {"integerValue": "9007199254740993"},
    "zero": {"doubleValue": "-0"}, "none": {"doubleValue": "NaN"},
    "endless": {"doubleValue": "-Infinity"}, "whole": {"doubleValue": 3},
    "place": {"geoPointValue": {"latitude": "-0", "longitude": 13.5}},
    "early": {"timestampValue": "0001-01-01T00:00:00.123456Z"},
    "lines": {"stringValue": "a\r\nb\rc"}, "empty": {"mapValue": {}}, "nothing": {"arrayValue": {}},
    "vector": {"mapValue": {"fields": {
        "__type__": {"stringValue": "__vector__"},
        "value": {"arrayValue": {"values": [{"doubleValue": "-0"}, {"doubleValue": 2}]}}}}},
    "own": {"referenceValue": f"projects/{PROJECT}/databases/(default)/documents/projects/p1"},
    "other": {"referenceValue": "projects/other-app/databases/second/documents/users/tina"},
    "words": {"mapValue": {"fields": {
        "constructor": {"mapValue": {"fields": {"stringValue": {"stringValue": "x"}}}}}}},
    "toString": {"mapValue": {"fields": {"valueOf": {"stringValue": "x"}}}},
    "a.b`c": {"nullValue": None}, " ": {"booleanValue": False},
}


def test_saving_as_json_without_a_change_changes_nothing(page, suite, name):
    put_rest(suite, f"{name}/odd", ODD)
    before = get_rest(suite, f"{name}/odd")
    page.open(f"firestore/{name}/odd")
    page.click("button", "Edit as JSON")
    page.click("dialog button", "Save")
    page.wait(lambda: not page.has("dialog"))
    assert written(get_rest(suite, f"{name}/odd")) == written(before)
    assert "-0" in written(before)


@pytest.mark.parametrize("field", [
    "lines", "own", "other", "vector", "zero", "words.constructor", "a.b`c"])
def test_saving_a_field_without_a_change_changes_nothing(page, suite, name, field):
    put_rest(suite, f"{name}/odd", ODD)
    before = get_rest(suite, f"{name}/odd")
    page.open(f"firestore/{name}/odd")
    page.click("button", f"Edit {field}", exact=True)
    page.click("dialog button", "Save")
    page.wait(lambda: not page.has("dialog"))
    assert written(get_rest(suite, f"{name}/odd")) == written(before)


def test_numbers_are_taken_as_they_are_written(page, suite, name):
    put_rest(suite, f"{name}/numbers", {})
    page.open(f"firestore/{name}/numbers")
    page.click("button", "Edit as JSON")
    page.type("dialog textarea", '{"large": 9007199254740993, "double": 3.0, "exponent": 1e3, "whole": 3}')
    page.click("dialog button", "Save")
    page.wait(lambda: not page.has("dialog"))
    assert get_rest(suite, f"{name}/numbers") == {
        "large": {"integerValue": "9007199254740993"}, "double": {"doubleValue": 3},
        "exponent": {"doubleValue": 1000}, "whole": {"integerValue": "3"}}
    page.click("button", "Edit as JSON")
    page.type("dialog textarea", '{"too large": 1e400}')
    page.click("dialog button", "Save")
    page.shows("1e400 is too large", "dialog")


@pytest.mark.parametrize(("order", "filters"), [
    ("`a.b`", []), ("__name__", []), ("b", [("a", ">=", "0")]), ("b", []), ("", [("b", ">=", "0")])])
def test_ordered_lists_are_complete(page, database, name, order, filters):
    batch = database.batch()
    for number in range(350):
        batch.set(database.document(f"{name}/d{number:03d}"),
                  {"a.b": number % 7, "a": number % 5, "b": number % 3})
    batch.commit()
    page.open(f"firestore/{name}")
    page.click("button", "Filter")
    for field, operator, value in filters:
        page.type("input", field, "Field", clear=False)
        page.driver.execute_script("""
            document.querySelector("select[aria-label=Operator]").value = arguments[0];""", operator)
        page.type("input", value, "Value")
    if order:
        page.type("input", order, "Order by")
    page.click("button", "Apply")
    page.shows("350")
    shown = set()
    last = None
    while len(shown) < 350:
        texts = page.wait(lambda: loaded(page) != last and loaded(page))
        shown.update(text[:4] for text in texts)
        last = texts
        page.driver.execute_script("document.querySelector('.virtual-list').scrollTop += 300")
    assert page.driver.execute_script(
        "return Number(document.querySelector('.list-row').ariaSetSize)") == 350
    assert not page.has(".problem")


def test_missing_documents_behind_the_first_page_are_listed(page, database, name):
    batch = database.batch()
    for number in range(150):
        batch.set(database.document(f"{name}/a{number:03d}"), {"n": number})
    batch.set(database.document(f"{name}/z/below/d"), {"n": 1})
    batch.commit()
    page.open(f"firestore/{name}")
    page.wait(lambda: loaded(page))
    while not page.has(".list-row .missing", "z"):
        page.driver.execute_script("document.querySelector('.virtual-list').scrollTop += 300")


def test_the_list_follows_the_address(page, many):
    page.open(f"firestore/{many}/m{MANY // 2:07d}")
    page.wait(lambda: page.has(".list-row[aria-selected=true]", f"m{MANY // 2:07d}"))


def test_a_time_is_compared_as_a_time(page, database, name):
    for day in (1, 2, 3):
        database.document(f"{name}/d{day}").set({"at": datetime.datetime(2026, 11, day, tzinfo=datetime.timezone.utc)})
    database.document(f"{name}/text").set({"at": "2026-11-09"})
    page.open(f"firestore/{name}")
    page.click("button", "Filter")
    page.type("input", "at", "Field", clear=False)
    page.driver.execute_script(
        'document.querySelector("select[aria-label=Operator]").value = ">="')
    page.type("input", "2026-11-02", "Value")
    page.click("button", "Apply")
    page.wait(lambda: [text.split()[0] for text in rows(page)] == ["d2", "d3"])


def test_hundreds_of_collections_are_all_listed(driver, tmp_path):
    with started(tmp_path, "--no-functions") as suite:
        database = client(suite)
        batch = database.batch()
        for number in range(450):
            batch.set(database.document(f"c{number:03d}/d"), {"n": 1})
        batch.commit()
        page = Console(driver, suite)
        page.open("firestore")
        page.click(".link-row", "c449")
        row(page, "d")


def test_a_change_far_behind_many_commits_shows_at_once(page, database, name):
    database.document(f"{name}/tina").set({"age": 41})
    page.open(f"firestore/{name}/tina")
    page.find(".value", "41", exact=True)
    # The page asks each second; in the meantime there are more commits than one answer holds.
    page.driver.execute_script("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    for number in range(600):
        database.document(f"{name}-others/d{number}").set({"n": number})
    database.document(f"{name}/tina").update({"age": 42})
    # The page sees this in its next poll, after which there is none.
    page.driver.execute_script("""
        const { setTimeout } = window;
        window.setTimeout = (action, wait) => wait === 1000 ? 0 : setTimeout(action, wait);
        delete document.hidden;""")
    page.find(".value", "42", exact=True)


def test_a_page_hidden_during_a_restart_shows_the_new_suite(driver, tmp_path):
    options = ("--no-functions", "--ui-port", str(free_port()))
    with started(tmp_path, *options) as suite:
        client(suite).document("users/tina").set({"age": 41})
        page = Console(driver, suite)
        page.open("firestore/users/tina")
        page.find(".value", "41", exact=True)
        page.driver.execute_script("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    with started(tmp_path, *options) as suite:
        for number in range(3):
            client(suite).document("users/tina").set({"age": 50 + number})
        page.driver.execute_script("delete document.hidden")
        page.find(".value", "52", exact=True)
    page.problems()


@pytest.mark.parametrize(("content", "problem"), [
    ('{"a/b/c": {}}', "has a slash"), ('[{"id": "a"}, {"id": "a"}]', "Two documents have the ID"),
    ('[null]', "A document is a JSON object"), ('{"a": 1}', "A document is a JSON object"),
    ('{"a": ', "not JSON"), ('[{"id": "b", "n": 1}, {"id": "c", "t": {"__timestamp__": "x"}}]', "not a time")])
def test_an_import_that_is_wrong_writes_nothing(page, database, name, tmp_path, content, problem):
    file = tmp_path / "import.json"
    file.write_text(content, encoding="utf-8")
    page.open("firestore")
    page.click("button", "Import")
    page.type("dialog input.mono", name)
    page.driver.find_element(By.CSS_SELECTOR, "dialog input[type=file]").send_keys(str(file))
    page.click("dialog button", "Import")
    page.shows(problem, "dialog")
    assert list(database.collection(name).list_documents()) == []


def test_an_import_of_large_documents(page, database, name, tmp_path):
    file = tmp_path / "large.json"
    file.write_text(json.dumps([{"id": n, "text": "é" * 100_000} for n in range(90)]), encoding="utf-8")
    page.open("firestore")
    page.click("button", "Import")
    page.type("dialog input.mono", name)
    page.driver.find_element(By.CSS_SELECTOR, "dialog input[type=file]").send_keys(str(file))
    # A second press while it runs must not write a second time.
    page.driver.execute_script("""
        const submit = document.querySelector("dialog [type=submit]");
        submit.click(); submit.click();""")
    page.shows("90 documents were imported.", "#toasts")
    assert database.collection(name).count().get()[0][0].value == 90
    assert database.document(f"{name}/7").get().exists


def test_an_edit_of_one_field_keeps_the_others_types(page, database, name):
    values = {"list": [1, {"deep": 1.0}], "whole": 3.0, "big": 2**60, "none": None,
              "place": firestore.GeoPoint(1.5, 2), "bytes": b"\x00\xff", "a.b`c": "odd",
              "link": database.document("users/tina")}
    document = database.document(f"{name}/all")
    document.set(values)
    page.open(f"firestore/{name}/all")
    page.click("summary", "1map")
    page.click("button", "Edit list.1.deep")
    page.type("dialog textarea", "2.5")
    page.click("dialog button", "Save")
    page.wait(lambda: document.get().to_dict()["list"][1]["deep"] == 2.5)
    page.click("button", "Edit as JSON")
    page.click("dialog button", "Save")
    page.wait(lambda: not page.has("dialog"))
    assert document.get().to_dict() == values | {"list": [1, {"deep": 2.5}]}
    assert isinstance(document.get().to_dict()["whole"], float)


def test_changes_show_by_themselves(page, database, name):
    database.document(f"{name}/tina").set({"age": 41})
    page.open(f"firestore/{name}/tina")
    page.find(".value", "41", exact=True)
    database.document(f"{name}/tina").update({"age": 42})
    page.find(".value", "42", exact=True)
    database.document(f"{name}/carl").set({"age": 30})
    row(page, "carl")
    database.document(f"{name}/carl").delete()
    page.wait(lambda: "carl" not in " ".join(rows(page)))


def test_values_are_shown_as_text(page, database, name):
    hostile = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>'
    database.document(f"{name}/{hostile.replace('/', '')}").set({"html": hostile})
    database.document(f"{name}/日本 \"é\" ‮evil").set({"right to left": "‮abc"})
    page.open(f"firestore/{name}")
    page.click(".list-row", "onerror")
    page.shows(hostile)
    page.click(".list-row", "日本")
    page.shows("right to left")
    assert page.driver.execute_script("return window.hacked") is None


def test_a_document_of_a_megabyte_opens_cut(page, database, name):
    text = "x" * 1_000_000
    database.document(f"{name}/large").set({"text": text})
    page.open(f"firestore/{name}/large")
    page.shows("show all (1,000,000)")
    assert len(page.text()) < 5000
    page.click("button", "Show all")
    page.wait(lambda: text in page.text())


def test_documents_are_imported_from_a_file(page, database, name, tmp_path):
    file = tmp_path / "users.json"
    file.write_text(json.dumps({f"u{n}": {"n": n} for n in range(900)}), encoding="utf-8")
    page.open("firestore")
    page.click("button", "Import")
    page.type("dialog input.mono", name)
    page.driver.find_element(By.CSS_SELECTOR, "dialog input[type=file]").send_keys(str(file))
    page.click("dialog button", "Import")
    page.shows("900 documents were imported.", "#toasts")
    assert database.collection(name).count().get()[0][0].value == 900


def test_who_may_read(driver):
    with started(ROOT, "--no-functions") as suite:
        client(suite).document("users/tina").set({"displayName": "Tina"})
        page = Console(driver, suite)
        page.open("firestore/users/tina")
        page.click("button", "Who may read this?")
        page.driver.execute_script("""
            const select = document.querySelector("dialog select");
            select.value = "none"; select.dispatchEvent(new Event("change"));""")
        page.click("dialog button", "Decide")
        page.shows("Denied.", "dialog")
        page.shows("allow", "dialog")
        page.driver.execute_script("""
            const select = document.querySelector("dialog select");
            select.value = "user"; select.dispatchEvent(new Event("change"));""")
        page.type("dialog input", "carl", "User ID")
        page.click("dialog button", "Decide")
        page.shows("Allowed.", "dialog")
        page.problems()


def test_keyboard_alone(page, database, name):
    for n in range(5):
        database.document(f"{name}/d{n}").set({"n": n})
    page.open(f"firestore/{name}")
    row(page, "d4")
    page.find(".virtual-list").send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.wait(lambda: page.driver.current_url.endswith(f"{name}/d2"))
    focused = page.driver.execute_script("return document.activeElement.className")
    assert focused == "virtual-list"


def test_a_suite_that_stops_and_returns(driver, tmp_path):
    options = ("--data", str(tmp_path / "data"), "--no-functions", "--ui-port", str(free_port()))
    with started(tmp_path, *options, ephemeral=False) as suite:
        client(suite).document("users/tina").set({"age": 41})
        page = Console(driver, suite)
        page.open("firestore/users/tina")
        page.find(".value", "41", exact=True)
    page.shows("The suite does not respond.", "#notice")
    with started(tmp_path, *options, ephemeral=False) as suite:
        # Other ports and another token, and the page has not been loaded anew.
        page.wait(lambda: not page.has("#notice"))
        page.find(".value", "41", exact=True)
        client(suite).document("users/tina").update({"age": 42})
        page.find(".value", "42", exact=True)
    page.problems()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility(page, database, name, theme):
    database.document(f"{name}/tina").set({"list": [1, {"a": 1}], "text": "x", "t": None})
    database.document(f"{name}/tina/messages/m").set({"text": "x"})
    page.open()
    page.driver.execute_script("localStorage.setItem('hearth-theme', arguments[0])", theme)
    page.open(f"firestore/{name}/tina/messages")
    row(page, "m")
    page.click("button", "Filter")
    assert page.violations() == []
    page.driver.execute_script("localStorage.removeItem('hearth-theme')")


# MARK: Who may act


def session(suite, **headers):
    return requests.get(f"http://{suite.address('ui')}/session", headers=headers, timeout=10)


def console_token(suite):
    reply = session(suite, **{"Sec-Fetch-Site": "same-origin"})
    assert reply.status_code == 200
    return reply.json()["token"]


def test_a_session_needs_the_own_page_or_the_suites_token(suite):
    assert session(suite).status_code == 403
    assert session(suite, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert session(suite, **{"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert session(suite, Authorization="Bearer wrong").status_code == 403
    assert session(suite, Authorization=f"Bearer {suite.token}").status_code == 200


@pytest.mark.parametrize("path", [
    "/api/hub/hearth/v1/events", "/api/firestore/v1/projects/p/databases/d/documents/c/d",
    "/api/auth/emulator/v1/projects/demo-psst/oobCodes", "/api/vectors/indexes",
    "/api/functions/demo-psst/us-central1/f", "/api/nothing/"])
def test_requests_need_the_sessions_token(suite, path):
    url = f"http://{suite.address('ui')}{path}"
    for headers in ({}, {"X-Hearth-Console": "wrong"}, {"X-Hearth-Console": ""},
                    {"Authorization": f"Bearer {suite.token}"}):
        assert requests.get(url, headers=headers, timeout=10).status_code == 401


@pytest.mark.parametrize(("method", "path"), [
    ("POST", "/hearth/v1/deployments"), ("POST", "/hearth/v1/deployments/rollback"),
    ("DELETE", "/hearth/v1/functions?names=x"), ("GET", "/hearth/v1/workers/environment"),
    ("POST", "/hearth/v1/workers"), ("DELETE", "/hearth/v1/workers/x"),
    ("POST", "/hearth/v1/export"), ("POST", "/hearth/v1/import"), ("POST", "/_admin/export")])
def test_the_console_deploys_nothing_and_reads_no_secrets(suite, method, path):
    reply = requests.request(
        method, f"http://{suite.address('ui')}/api/hub{path}", timeout=10,
        headers={"X-Hearth-Console": console_token(suite)})
    assert reply.status_code == 403
    assert "console" in reply.json()["error"]["message"]


def test_foreign_pages_are_refused(suite):
    token_of_page = console_token(suite)
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"},
                    {"Referer": "https://evil.example/"}):
        for path in ("/", "/session", "/api/hub/hearth/v1/suite"):
            reply = requests.get(
                f"http://{suite.address('ui')}{path}", timeout=10,
                headers={"X-Hearth-Console": token_of_page, **headers})
            assert reply.status_code == 403, (path, headers)
            assert "access-control-allow-origin" not in reply.headers


def test_the_page_cannot_be_framed_and_loads_nothing_foreign(suite):
    for path in ("/", "/app.js", "/session", "/nothing"):
        headers = requests.get(f"http://{suite.address('ui')}{path}", timeout=10).headers
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"


def test_a_stale_token_is_renewed(page, database, name):
    page.open(f"firestore/{name}")
    page.find(".virtual-list")
    page.driver.execute_async_script("""
        const done = arguments[0];
        import("/api.js").then(({ session }) => { session.token = "stale"; done(); });""")
    database.document(f"{name}/late").set({"n": 1})
    row(page, "late")
    page.problems()


def test_files_are_cached_by_their_contents(suite):
    url = f"http://{suite.address('ui')}/app.js"
    first = requests.get(url, timeout=10)
    again = requests.get(url, timeout=10, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert requests.get(f"http://{suite.address('ui')}/../Package.swift", timeout=10).status_code == 404
    assert requests.post(url, timeout=10).status_code == 501
