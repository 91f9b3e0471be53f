"""A real browser, and pages of `pages/` in it that play a scene and report what they see."""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import threading

from phones import WAIT

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
PAGES = pathlib.Path(__file__).parent / "pages"


class Page:
    """A test's side of a page."""

    def __init__(self, settings, log):
        self.settings = settings
        self.reports = queue.Queue()
        self.permissions = threading.Semaphore(0)
        self.log = log

    def sees(self, event):
        """The page's next report, which has to be of this event."""
        try:
            report = self.reports.get(timeout=WAIT)
        except queue.Empty:
            report = {"event": "timeout", "seconds": WAIT}
        assert report["event"] == event, f"{report}\n{self.console()}"
        return report

    def console(self):
        """What the browser tells developers: why it keeps an answer from the page, for example."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(line for line in lines if ":CONSOLE" in line)

    def permit(self):
        """Lets the page go on that waits for it."""
        self.permissions.release()


class PageHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a page's files, its settings and permissions, and takes its reports."""

    def __init__(self, page, *arguments):
        self.page = page
        super().__init__(*arguments, directory=str(PAGES))

    def do_GET(self):
        if self.path == "/settings":
            self.answer(json.dumps(self.page.settings).encode())
        elif self.path == "/permission":
            self.page.permissions.acquire(timeout=WAIT)
            self.answer(b"")
        else:
            super().do_GET()

    def do_POST(self):
        self.page.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(b"")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(handler):
    """A server of its own, under whatever name of this machine; its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def opened(folder, **settings):
    """A page of an origin of its own; the browser's profile and log are in the folder."""
    page = Page(settings, folder / "chromium.log")
    handler = functools.partial(PageHandler, page)
    with served(handler) as port, open(page.log, "wb") as log:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, "--enable-logging=stderr", f"--user-data-dir={folder}/profile",
             f"http://page.localhost:{port}/index.html"],
            stdout=log, stderr=log, start_new_session=True)
        try:
            yield page
        finally:
            # Chromium is several processes.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=10)
