"""A headless Chromium with the console of a suite."""

import contextlib
import shutil

import pytest
from axe_core_python.base import AXE_FILE_PATH
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
SECONDS = 15

# A visible element of a kind whose accessible text contains a text.
FIND = """
const [selector, text, exact] = arguments;
const name = (element) => (element.getAttribute("aria-label")
  ?? (element.labels?.[0]?.textContent || element.textContent) ?? "").replace(/\\s+/g, " ").trim();
return [...document.querySelectorAll(selector)].find((element) =>
  (exact ? name(element) === text : name(element).includes(text))
  && element.getClientRects().length > 0 && !element.disabled) ?? null;
"""


@contextlib.contextmanager
def started_browser(*options):
    """A headless Chromium; skips the test where Debian's package is not installed."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium: apt-get install chromium chromium-driver")
    chrome = webdriver.ChromeOptions()
    chrome.binary_location = CHROMIUM
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--window-size=1400,900", *options):
        chrome.add_argument(option)
    chrome.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=chrome, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


class Console:
    """The console of a suite in a browser, as a person uses it."""

    def __init__(self, driver, suite):
        self.driver = driver
        self.suite = suite
        self.origin = f"http://{suite.address('ui')}"

    def open(self, path=""):
        """Loads the page anew, at a view such as `firestore/users`."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.origin}/#/{path}")
        self.wait(lambda: self.driver.find_elements(By.CSS_SELECTOR, ".view"))

    def wait(self, holds, seconds=SECONDS):
        """Waits until a function returns something true, and returns that."""
        return WebDriverWait(
            self.driver, seconds, poll_frequency=0.02,
            ignored_exceptions=[StaleElementReferenceException],
        ).until(lambda _: holds())

    def find(self, selector, text="", exact=False):
        """The first visible element of a CSS selector with a text, as soon as there is one."""
        return self.wait(lambda: self.driver.execute_script(FIND, selector, text, exact))

    def has(self, selector, text=""):
        return self.driver.execute_script(FIND, selector, text, False) is not None

    def click(self, selector, text="", exact=False):
        self.wait(lambda: self._clicked(selector, text, exact))

    def _clicked(self, selector, text, exact):
        element = self.driver.execute_script(FIND, selector, text, exact)
        if element is None:
            return False
        element.click()
        return True

    def type(self, selector, text, label="", clear=True):
        """Types into the first visible control of a selector, or of a label."""
        element = self.find(selector, label)
        if clear:
            element.send_keys(Keys.CONTROL, "a")
            element.send_keys(Keys.DELETE)
        element.send_keys(text)
        return element

    def text(self, selector="main"):
        return self.driver.execute_script(
            "return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def shows(self, text, selector="main"):
        """Waits until a part of the page shows a text."""
        self.wait(lambda: text in self.text(selector))

    def problems(self):
        """The errors that the browser's console has logged since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE"]

    def requests(self):
        """The paths of the page's requests since it was loaded."""
        return self.driver.execute_script(
            "return performance.getEntriesByType('resource').map(e => new URL(e.name).pathname)")

    def violations(self):
        """What axe finds: the rule and the elements."""
        self.driver.execute_script(AXE_FILE_PATH.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script("""
            const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ["violations"] })
              .then((result) => done(result.violations), (error) => done([{ id: String(error) }]));
            """)
        return [(entry["id"], [node["html"][:200] for node in entry.get("nodes", [])])
                for entry in found]
