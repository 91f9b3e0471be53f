"""Runs the dialogues of phones, each in databases of its own."""

import contextlib
import uuid

import pytest
from conftest import started
from phone_dialogues import DIALOGUES
from phones import Conversation, restart_server


class DurableServer:
    """A suite of its own that keeps its data over restarts."""

    def __init__(self, folder):
        self.folder = folder
        self.stack = contextlib.ExitStack()
        self.start(anew=True)

    def start(self, anew):
        if anew:
            self.data = self.folder / uuid.uuid4().hex
        options = ("--no-functions", "--data", str(self.data))
        self.suite = self.stack.enter_context(started(self.folder, *options, ephemeral=False))

    def stop(self):
        """Stops the suite, which has to be able to."""
        try:
            self.stack.close()
        finally:
            self.suite.process.kill()

    def restart(self, anew):
        self.stop()
        self.start(anew)

    def address(self, service):
        return self.suite.address(service)


def restarts(steps):
    return any(step.function is restart_server.__wrapped__ for step in steps)


@pytest.fixture
def server(steps, tmp_path, request):
    """The suite of all, or one of its own for a dialogue that restarts it."""
    if not restarts(steps):
        yield request.getfixturevalue("suite")
        return
    server = DurableServer(tmp_path)
    yield server
    server.stop()


@pytest.mark.parametrize("steps", DIALOGUES.values(), ids=DIALOGUES)
def test_dialogue(steps, server):
    Conversation(server, f"phones-{uuid.uuid4().hex[:12]}").run(steps)
