"""Runs the dialogues of phones, each in databases of its own."""

import contextlib
import uuid

import pytest
from conftest import started
from phone_dialogues import CONTRADICTIONS, DIALOGUES
from phones import Conversation, restart_server


class DurableServer:
    """A suite that keeps its data over restarts."""

    def __init__(self, folder, stack):
        self.folder = folder
        self.stack = stack
        self.data = None
        self.restart(anew=True)

    def restart(self, anew):
        self.stack.close()
        if anew:
            self.data = self.folder / uuid.uuid4().hex
        options = ("--no-functions", "--data", str(self.data))
        self.suite = self.stack.enter_context(started(self.folder, *options, ephemeral=False))

    def address(self, service):
        return self.suite.address(service)


def restarts(steps):
    return any(step.function is restart_server.__wrapped__ for step in steps)


def row(title):
    marks = []
    if title in CONTRADICTIONS:
        marks.append(pytest.mark.xfail(reason=CONTRADICTIONS[title], strict=True))
    return pytest.param(DIALOGUES[title], id=title, marks=marks)


@pytest.mark.parametrize("steps", map(row, DIALOGUES))
def test_dialogue(steps, request, tmp_path):
    with contextlib.closing(contextlib.ExitStack()) as stack:
        server = (DurableServer(tmp_path, stack) if restarts(steps)
                  else request.getfixturevalue("suite"))
        Conversation(server, f"phones-{uuid.uuid4().hex[:12]}").run(steps)
