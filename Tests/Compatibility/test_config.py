"""Secrets and variables at a terminal and from standard input, and what is said when nothing guards the documents."""

import os
import pty
import select
import signal
import subprocess
import termios
import time

import conftest
import pytest

PEM = "-----BEGIN KEY-----\nQUJD\n-----END KEY-----\n"


class Terminal:
    """`hearth functions config set` at a terminal of its own."""

    def __init__(self, folder, *arguments):
        self.pid, self.main = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(conftest.hearth(), ["hearth", "functions", "config", "set", *arguments])
        self.shown = ""

    def wait_for(self, words):
        end = time.monotonic() + 30
        while words not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self.main], [], [], 0.1)[0]:
                self.read()

    def read(self):
        """Reads what is there; false at the end."""
        try:
            part = os.read(self.main, 4096)
        except OSError:  # Linux has no end of file for a terminal.
            return False
        self.shown += part.decode()
        return bool(part)

    def type(self, text):
        os.write(self.main, text.encode())

    def echoes(self):
        return bool(termios.tcgetattr(self.main)[3] & termios.ECHO)

    def end(self):
        """The status of the command, and whether the terminal shows again what is typed."""
        # The terminal outlives the command, because this process has it open.
        _, status = os.waitpid(self.pid, 0)
        echoes = self.echoes()
        while select.select([self.main], [], [], 0)[0] and self.read():
            pass
        os.close(self.main)
        return status, echoes


@pytest.fixture
def project(tmp_path):
    (tmp_path / "firebase.json").write_text('{"functions": {"source": "."}}', encoding="utf-8")
    return tmp_path


def secrets(project):
    file = project / ".secret.local"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def config(project, *arguments, given=b""):
    return subprocess.run(
        [conftest.hearth(), "functions", "config", *arguments], cwd=project, input=given,
        capture_output=True, timeout=60, check=False)


def test_a_secret_is_asked_for_and_never_shown(project):
    terminal = Terminal(project, "--secret", "API_KEY", "OTHER")
    terminal.wait_for("Value of API_KEY (not shown while you type): ")
    assert not terminal.echoes()
    terminal.type("hush-one\n")
    terminal.wait_for("Value of OTHER")
    terminal.type("hush-twx\x7fo\n")
    terminal.wait_for("OTHER is set in .secret.local.")

    assert terminal.end() == (0, True)
    assert "hush" not in terminal.shown and "twx" not in terminal.shown
    assert secrets(project) == "API_KEY=hush-one\nOTHER=hush-two\n"
    assert (project / ".secret.local").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_the_terminal_as_it_was(project, end):
    terminal = Terminal(project, "--secret", "API_KEY")
    terminal.wait_for("Value of API_KEY")
    terminal.type("hus")
    # Ctrl-C and Ctrl-\ as a person sends them.
    if end in (signal.SIGINT, signal.SIGQUIT):
        terminal.type("\x03" if end == signal.SIGINT else "\x1c")
    else:
        os.kill(terminal.pid, end)

    status, echoes = terminal.end()
    assert os.WTERMSIG(status) == end and echoes
    assert secrets(project) == ""


@pytest.mark.parametrize(("typed", "complaint"), [
    ("\n", "Nothing was entered for API_KEY, so nothing was changed."),
    ("  \n", "Nothing was entered for API_KEY, so nothing was changed."),
    ("\x04", "Nothing was entered for API_KEY, so nothing was changed."),
    ("one\ntwo\n", "Several lines were entered"),
    ("x" * 5000 + "\n", "longer than a terminal can pass on"),
])
def test_what_cannot_be_a_secret_is_refused_in_words(project, typed, complaint):
    terminal = Terminal(project, "--secret", "API_KEY")
    terminal.wait_for("Value of API_KEY")
    terminal.type(typed)
    terminal.wait_for(complaint)

    status, echoes = terminal.end()
    assert os.WEXITSTATUS(status) == 1 and echoes
    assert secrets(project) == ""


def test_a_variable_is_asked_for_and_shown(project):
    terminal = Terminal(project, "CHAT_MODEL")
    terminal.wait_for("Value of CHAT_MODEL: ")
    terminal.type("small\n")
    terminal.wait_for("CHAT_MODEL is set in .env.local.")

    assert terminal.end()[0] == 0
    assert "small" in terminal.shown
    assert (project / ".env.local").read_text(encoding="utf-8") == "CHAT_MODEL=small\n"


def test_a_secret_of_several_lines_is_read_from_standard_input(project):
    reply = config(project, "set", "--secret", "SIGNING_KEY", given=PEM.encode())
    assert reply.returncode == 0, reply.stderr
    assert b"Value of" not in reply.stderr
    shown = config(project, "get", "SIGNING_KEY", "--reveal")
    assert shown.stdout.decode() == PEM


@pytest.mark.parametrize(("arguments", "given", "status", "complaint"), [
    (("--secret", "API_KEY=hush"), b"", 2, "does not belong on the command line"),
    (("--secret", "API_KEY="), b"", 2, "does not belong on the command line"),
    (("--secret", "API_KEY", "OTHER"), b"x", 2, "set one secret at a time"),
    (("--secret", "API_KEY"), b"", 1, "config unset --secret API_KEY` removes a secret"),
    (("--secret", "API_KEY"), b"\n\n", 1, "Standard input is empty"),
    (("--secret", "API_KEY"), b"\xff\n", 1, "is not UTF-8"),
    (("--secret", "API_KEY"), b"a\0b\n", 1, "has a NUL character"),
    (("--secret", "API_KEY"), b"x" * 70_000, 1, "longer than 65536 bytes"),
    (("--secret", "K_SERVICE"), b"x", 1, "reserved for the platform"),
    (("--secret", "API-KEY"), b"x", 1, "not a valid name"),
    (("gym-name=Tina",), b"", 1, "Did you mean GYM_NAME?"),
    (("a.b=1",), b"", 1, "Did you mean A_B?"),
    (("CHAT_MODEL",), b"", 1, "Give CHAT_MODEL=VALUE"),
    (("CHAT_MODEL",), b"", 1, "config set CHAT_MODEL=` makes a variable empty"),
])
def test_what_is_given_wrongly_is_refused_and_not_repeated(project, arguments, given, status, complaint):
    reply = config(project, "set", *arguments, given=given)
    assert reply.returncode == status
    assert complaint in reply.stderr.decode()
    assert b"hush" not in reply.stderr and reply.stdout == b""
    assert sorted(file.name for file in project.iterdir()) == ["firebase.json"]


def test_a_variable_may_be_empty_on_purpose(project):
    assert config(project, "set", "CHAT_MODEL=").returncode == 0
    assert (project / ".env.local").read_text(encoding="utf-8") == 'CHAT_MODEL=""\n'


RULES = "rules_version = '2'; service cloud.firestore {{ match /databases/{{d}}/documents {{ {} }} }}"
OPEN = "match /{document=**} { allow read, write: if true; }"
FOR_USERS = "match /{document=**} { allow read, write: if request.auth != null; }"
CLOSED = "match /notes/{id} { allow read: if request.auth != null; }"


@pytest.mark.parametrize(("match", "options", "notice", "finding"), [
    (None, (), "There is no firestore.rules, so everybody may read and write everything",
     "none are in force"),
    (CLOSED, ("--no-rules",), "Security rules are off (--no-rules)", "none are in force"),
    (OPEN, (), "firestore.rules allows everybody to read and write everything",
     "firestore.rules allows everybody to read and write everything"),
    (FOR_USERS, (), "firestore.rules allows every user who is signed in to read and write everything",
     "firestore.rules allows every user who is signed in"),
    (CLOSED, (), None, "firestore.rules decides on the requests of apps"),
])
def test_start_and_doctor_say_when_everything_is_open(tmp_path, match, options, notice, finding):
    if match:
        (tmp_path / "firestore.rules").write_text(RULES.format(match), encoding="utf-8")

    def doctor(*arguments):
        report = subprocess.run(
            [conftest.hearth(), "doctor", *arguments], cwd=tmp_path, capture_output=True,
            text=True, timeout=60, check=False)
        lines = [line for line in report.stdout.splitlines() if line.startswith("security rules")]
        assert len(lines) == 1, report
        return lines[0]

    if not options:
        # No suite is found by the file of a folder that is not there.
        before = doctor("--data-folder", str(tmp_path / "none"))
        assert ("no firestore.rules here" if match is None else finding) in before
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        with conftest.started(tmp_path, "--no-functions", *options, stderr=log) as suite:
            line = doctor("--hub", suite.address("hub"))
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert (" ok " if notice is None else " note ") in line and finding in line
    if notice is None:
        assert "everybody" not in log and "read and write everything" not in log
    else:
        assert notice in log


@pytest.mark.parametrize("value, is_told", [(None, True), ("x", False)])
def test_a_secret_without_a_value_is_told_when_its_function_is_deployed(
        project, value, is_told):
    sentence = "The secret SAMPLE_SECRET of variables is not set"
    if value:
        (project / ".secret.local").write_text(f"SAMPLE_SECRET={value}\n", encoding="utf-8")
    binary = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "SampleFunctions")

    with open(project / "notes", "wb") as notes:
        with conftest.started(project, "--executable", binary, stderr=notes) as suite:
            deployed = suite.cli("deploy")

    assert (sentence in deployed.stdout + deployed.stderr) == is_told
    assert (sentence in (project / "notes").read_text(encoding="utf-8")) == is_told


@pytest.mark.parametrize("value", [
    "x\u2028y", "x\u2029y", "x\x0by", "x\x0cy", "x\x85y", "x\u2028", "x\x0b", "\u0301st \"q", "x=\u0338y",
    "'\u0301\\\u0301\"\u0301", "x\r\ny\rz", " #x ", "$x",
])
@pytest.mark.parametrize("secret", [[], ["--secret"]])
def test_no_character_of_a_value_is_lost(project, value, secret):
    done = config(project, "set", *secret, "KEY", given=value.encode() + b"\r\n")
    assert done.returncode == 0, done.stderr

    read = config(project, "get", "--reveal", "KEY")
    assert read.stdout == value.encode() + b"\n", read.stderr


def test_a_value_may_begin_with_a_combining_mark(project):
    assert config(project, "set", "KEY=\u0338x").returncode == 0

    assert config(project, "get", "KEY").stdout == "\u0338x\n".encode()
