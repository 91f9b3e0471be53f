"""Runs the dialogues of phones, each in databases of its own."""

import contextlib
import hashlib
import json
import subprocess
import uuid

import pytest
from conftest import started
from phone_dialogues import DIALOGUES
from phones import Conversation, GRPCTransport, close_writes, restart_server
from web_channels import RoughTransport, WebChannelTransport

TRANSPORTS = [GRPCTransport, WebChannelTransport, RoughTransport]


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


def has(steps, phrase):
    return any(step.function is phrase.__wrapped__ for step in steps)


@pytest.fixture
def server(steps, tmp_path, request):
    """The suite of all, or one of its own for a dialogue that restarts it."""
    if not has(steps, restart_server):
        yield request.getfixturevalue("suite")
        return
    server = DurableServer(tmp_path)
    yield server
    server.stop()


def test_a_channel_over_http2(suite):
    url = f"http://{suite.address('firestore')}/google.firestore.v1.Firestore/Listen/channel"
    opening = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", "--data", "count=0", f"{url}?VER=8&RID=1"],
        capture_output=True, text=True, timeout=20, check=True).stdout
    session = json.loads(opening.split("\n", 1)[1])[0][1][1]
    told = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", f"{url}?SID={session}&RID=rpc&AID=0&CI=1"],
        capture_output=True, text=True, timeout=20, check=True).stdout
    assert told == '14\n[[1,["noop"]]]'


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda transport: transport.__name__)
@pytest.mark.parametrize("steps", DIALOGUES.values(), ids=DIALOGUES)
def test_dialogue(steps, transport, server, request):
    if transport is not GRPCTransport and has(steps, close_writes):
        pytest.skip("a page cannot close one direction of a stream")
    # Filters hash full names, which have the database: a random one would now and then make a
    # false positive.
    database = hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    Conversation(server, f"phones-{database}", transport).run(steps)
