"""Measures the console's tasks of three clicks, in a suite with a million documents.

    make console-tasks               release build, about three minutes
    .build/venv/bin/python Tests/Compatibility/console_tasks.py --documents 20000 --configuration debug

Prints one line a task: the time until its result is shown, that of each click, and the number of
requests. Then the page's first paint, its memory, and its size.
`--pictures FOLDER` also writes the pictures of the documentation.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import conftest
import requests
from console_browser import Console, started_browser
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

SAMPLE = conftest.ROOT / "Sources/Tooling/Sample/sample.py"


class Task:
    """The clicks of a task, each with the time until its result is shown."""

    def __init__(self, page, name):
        self.page = page
        self.name = name
        self.seconds = []
        page.open()
        page.find("h1")
        self.requests = len(page.requests())

    def click(self, selector, text, shown, exact=False):
        """Clicks and waits until `shown` returns something true."""
        self.page.find(selector, text, exact)
        start = time.perf_counter()
        self.page.click(selector, text, exact)
        self.page.wait(shown, 60)
        self.seconds.append(time.perf_counter() - start)

    def report(self):
        number = len(self.page.requests()) - self.requests
        clicks = " + ".join(f"{seconds * 1000:.0f}" for seconds in self.seconds)
        print(f"{self.name:44} {sum(self.seconds) * 1000:8.0f} = {clicks:20} {number:9}", flush=True)


def find_a_message(page, name, collection, field, text):
    task = Task(page, name)
    task.click("#navigation a", "Firestore", lambda: page.has("form[role=search]"))
    page.type("input", collection, "In the collections")
    page.type("input", field, "where the field")
    page.type("input", text, "starts with")
    task.click("button", "Find", lambda: page.has("[aria-label='Documents found'] .list-row", text))
    task.click("[aria-label='Documents found'] .list-row", text,
               lambda: page.has(".column.wide .value", text))
    task.report()


def wait_for_index(suite):
    """Waits until the index of the field `note` is built, which takes some seconds once."""
    query = {"from": [{"collectionId": "measurements", "allDescendants": True}], "limit": 1,
             "orderBy": [{"field": {"fieldPath": "note"}}]}
    scanned = 2
    while scanned > 1:
        parts = requests.post(
            f"http://{suite.address('firestore')}/v1/projects/{conftest.PROJECT}/databases/(default)"
            "/documents:runQuery", timeout=60, headers={"Authorization": "Bearer owner"},
            json={"structuredQuery": query, "explainOptions": {"analyze": True}}).json()
        statistics = parts[-1]["explainMetrics"]["executionStats"]["debugStats"]
        scanned = int(statistics["index_entries_scanned"])


def retry_an_event(page):
    task = Task(page, "see why an event failed, and retry it")
    task.click("#navigation a", "Events", lambda: page.has("a.entry", "recordContact"))
    task.click("a.entry", "recordContact", lambda: page.has(".log-lines", "The function failed"))
    before = page.text(".log-lines").count("The function failed")
    task.click("button", "Retry", exact=True,
               shown=lambda: page.text(".log-lines").count("The function failed") > before)
    task.report()


def call_as_tina(page):
    page.open("functions/semanticSearch")
    Select(page.find("select", "As")).select_by_visible_text("user …")
    page.type("input", "tina", "User ID")
    page.type("textarea", '{"query": "asthma in cold air", "limit": 3}', "Data")
    page.click("button", "Call", exact=True)
    page.find(".outcome", '"results"')
    task = Task(page, "call a function as Tina, as before")
    task.click("#navigation a", "Functions", lambda: page.has("td a", "semanticSearch"))
    task.click("td a", "semanticSearch", lambda: page.has("button", "Call"))
    task.click("button", "Call", lambda: page.has(".outcome", '"results"'))
    task.report()


def see_a_denial(page, suite):
    requests.get(
        f"http://{suite.address('firestore')}/v1/projects/{conftest.PROJECT}/databases/(default)"
        "/documents/contacts/tina/clients/carl", timeout=30,
        headers={"Authorization": f"Bearer {conftest.token('carl')}"})
    task = Task(page, "see why a read was denied")
    task.click("#navigation a", "Rules", lambda: page.has("a.entry", "get contacts/tina"))
    task.click("a.entry", "get contacts/tina", lambda: page.has(".detail .reasons a", ""))
    task.click(".reasons a", "firestore.rules:", lambda: page.has("[data-line]", "allow"))
    task.report()


def change_a_flag(page):
    task = Task(page, "change a flag")
    flag = "trainer_chat_enabled by default"
    task.click("#navigation a", "Flags", lambda: page.has("input[role=switch]", flag))
    task.click("input[role=switch]", flag, lambda: page.has("button", "Save"))
    task.click("button", "Save", lambda: not page.has("button", "Save"))
    task.report()


def scroll(page, documents):
    task = Task(page, f"to the end of {documents:,} documents")
    task.click("#navigation a", "Firestore", lambda: page.has(".link-row", "measurements"))
    task.click(".link-row", "measurements", lambda: page.has(".list-row span:not(.quiet)")
               and f"{documents:,}" in page.text())
    page.find(".virtual-list").click()
    start = time.perf_counter()
    page.find(".virtual-list").send_keys(Keys.END)
    page.wait(lambda: page.driver.execute_script("""
        const rows = [...document.querySelectorAll(".list-row")];
        return rows.at(-1)?.ariaPosInSet === arguments[0] && rows.at(-1).textContent !== "…";
        """, str(documents)), 60)
    task.seconds.append(time.perf_counter() - start)
    task.report()


def measure_page(page):
    page.open()
    page.find("h1")
    paints = page.driver.execute_script("""
        return performance.getEntriesByType("paint").map((entry) => [entry.name, entry.startTime])""")
    page.driver.execute_cdp_cmd("Performance.enable", {})
    metrics = {entry["name"]: entry["value"] for entry in
               page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}
    files = [path for path in (conftest.ROOT / "emulator/Console/Pages").iterdir()]
    size = sum(path.stat().st_size for path in files)
    for name, milliseconds in paints:
        print(f"{name:44} {milliseconds:8.0f} ms")
    print(f"{'memory of JavaScript':44} {metrics['JSHeapUsedSize'] / 2**20:8.1f} MiB")
    print(f"{'requests of the first view':44} {len(page.requests()):8}")
    print(f"{'embedded':44} {size / 1024:8.0f} KiB in {len(files)} files")


def take_pictures(page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    page.driver.set_window_size(1360, 800)
    for name, path, theme, shown in [
            ("console-home", "", "light", ".view[data-view=home] svg"),
            ("console-firestore", "firestore/chats/tina-carl/messages", "light", ".list-row"),
            ("console-events", "events", "dark", ".entries a")]:
        page.open()
        page.driver.execute_script("localStorage.setItem('hearth-theme', arguments[0])", theme)
        page.open(path)
        page.find(shown)
        if name == "console-events":
            page.click(".entries a", "recordContact")
            page.find(".tree")
        page.wait(lambda: not page.has(".list-row", "…"))
        if name == "console-firestore":
            page.click("[aria-label='Documents of chats/tina-carl/messages'] .list-row", "")
            page.find("[aria-label*='tina-carl/messages/'] .members")
            page.driver.execute_script("document.querySelector('.columns').scrollLeft = 1e4")
        page.driver.save_screenshot(str(folder / f"{name}.png"))
    page.driver.execute_script("localStorage.setItem('hearth-theme', 'system')")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--configuration", default="release")
    parser.add_argument("--pictures", type=pathlib.Path)
    options = parser.parse_args()
    conftest.CONFIGURATION = options.configuration
    worker = str(conftest.ROOT / ".build" / options.configuration / "psst-functions")
    with tempfile.TemporaryDirectory() as folder, \
            conftest.started(conftest.ROOT, "--executable", worker, "--no-build",
                             "--data", f"{folder}/data", ephemeral=False) as suite:
        environment = os.environ | {
            "FIRESTORE_EMULATOR_HOST": suite.address("firestore"),
            "FIREBASE_AUTH_EMULATOR_HOST": suite.address("auth"),
            "FIREBASE_EMULATOR_HUB": suite.address("hub"), "HEARTH_TOKEN": suite.token,
            "GCLOUD_PROJECT": conftest.PROJECT}
        subprocess.run([sys.executable, SAMPLE, "--messages", "3000", "--bulk", str(options.documents)],
                       env=environment, check=True)
        with started_browser() as driver:
            page = Console(driver, suite)
            if options.pictures:
                return take_pictures(page, options.pictures)
            print(f"{'':44} {'ms':>8}   {'of each click':20} {'requests':>9}")
            find_a_message(page, "find a message", "messages", "text", "Happy birthday")
            find_a_message(page, f"find one of {options.documents:,}, first time", "measurements",
                           "note", "felt tired")
            wait_for_index(suite)
            find_a_message(page, f"find one of {options.documents:,}, later", "measurements",
                           "note", "new scale")
            retry_an_event(page)
            call_as_tina(page)
            see_a_denial(page, suite)
            change_a_flag(page)
            scroll(page, options.documents)
            measure_page(page)
    return None


if __name__ == "__main__":
    main()
