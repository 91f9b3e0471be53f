#!/usr/bin/env python3
"""Fills a running suite with a lively Psst: people, chats, profiles, calendars and oddities."""

import argparse
import datetime
import json
import os
import sys
import time

sys.dont_write_bytecode = True

import answers  # noqa: E402  (the line above keeps __pycache__ out of the sources)
import measurements  # noqa: E402
from connections import Auth, Firestore, SuiteError, find_hub  # noqa: E402
from documents import Sample  # noqa: E402

MESSAGES = 3000
LIVE_BATCH = 10  # writes of one request while triggers run
LIVE_SHARE = 10  # at most one message in so many is written while triggers run
PROJECT = "demo-psst"
FIRESTORE, AUTH = "127.0.0.1:8080", "127.0.0.1:9099"

DESCRIPTION = """\
Fills a running suite with a lively Psst: trainers and their clients, three months of chats that
end an hour ago, what the trainers learned, calendars, reminders, and a few documents that break
the model on purpose (their ids begin with "odd-").

The older messages are written while triggers are off. The latest ones are written while they
run, so that events, logs and causes can be looked at. One of these events does not succeed:
recordContact on chats/odd-full-chat/messages/m0002 ends dead, because the chat is almost 1 MiB
large. Delete the chat's field "notes" and retry the event.

Running it again sets the same documents again; with the same --now they are the same in every
field. Documents of other names stay."""

EXAMPLES = """\
examples:
  make sample                                 a suite with all of this, until Ctrl-C
  python3 Sources/Tooling/Sample/sample.py    into the suite that `make start` runs
  hearth exec --no-functions -- python3 Sources/Tooling/Sample/sample.py --messages 300
  python3 Sources/Tooling/Sample/sample.py --bulk 1000000

Sign in as tina@example.com, or anybody else, with the password "secret1"; ada@example.com has the
claim "admin". Addresses come from the options, else from FIRESTORE_EMULATOR_HOST,
FIREBASE_AUTH_EMULATOR_HOST and FIREBASE_EMULATOR_HUB, which `hearth exec` sets, else from the hub
at 127.0.0.1:4400."""


def arguments():
    parser = argparse.ArgumentParser(
        description=DESCRIPTION, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    environment = os.environ.get
    parser.add_argument("--messages", type=positive, metavar="N",
                        help="about how many messages (default 3000; each chat has at least one "
                        "conversation, which makes about 200)")
    parser.add_argument("--live", type=not_negative, default=150, metavar="N",
                        help="how many of them, the latest, are written while triggers run "
                        "(default 150, at most a tenth)")
    parser.add_argument("--bulk", type=not_negative, default=0, metavar="N",
                        help="write N small documents into `measurements`; without --messages, "
                        "write nothing else")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other chats (default 1)")
    parser.add_argument("--now", type=moment, metavar="TIME",
                        help="the time that counts as now, such as 2026-11-27T09:00:00Z")
    parser.add_argument("--project", default=environment("GCLOUD_PROJECT") or PROJECT,
                        help="the project (default GCLOUD_PROJECT, else demo-psst)")
    parser.add_argument("--firestore", metavar="HOST:PORT",
                        default=environment("FIRESTORE_EMULATOR_HOST"))
    parser.add_argument("--auth", metavar="HOST:PORT",
                        default=environment("FIREBASE_AUTH_EMULATOR_HOST"))
    parser.add_argument("--answers", metavar="FILE",
                        help="write the answers of a scripted model to these messages, for "
                        "`openai-stub --script FILE`, and end; needs no suite")
    return parser.parse_args()


def positive(text):
    number = not_negative(text)
    if number == 0:
        raise argparse.ArgumentTypeError("give 1 or more")
    return number


def not_negative(text):
    if not text.replace("_", "").isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def moment(text):
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time like 2026-11-27T09:00:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=datetime.timezone.utc)


def main():
    options = arguments()
    now = options.now or datetime.datetime.now(datetime.timezone.utc)
    messages = options.messages or MESSAGES
    live = min(options.live, messages // LIVE_SHARE)
    sample = Sample(messages, live, options.seed, now)
    if options.answers:
        with open(options.answers, "w", encoding="utf-8") as file:
            json.dump(answers.script(sample), file, ensure_ascii=False, indent=1)
        return
    # The hub of another suite must not be asked.
    is_elsewhere = options.firestore and not os.environ.get("FIREBASE_EMULATOR_HUB")
    hub, found = (None, {}) if is_elsewhere else find_hub()
    firestore = Firestore(
        options.firestore or found.get("firestore", FIRESTORE), options.project)
    auth = Auth(options.auth or found.get("auth", AUTH), options.project)
    firestore.check()
    if options.messages or not options.bulk:
        fill(sample, firestore, auth, hub)
    if options.bulk:
        uids = [person["uid"] for person in sample.clients]
        measurements.write(firestore, uids, options.bulk, sample.end)


def fill(sample, firestore, auth, hub):
    began = time.monotonic()
    auth.import_accounts(sample.accounts)
    say(f"{len(sample.accounts)} accounts")
    # Without functions no event is delivered, so that waiting for them would not end.
    if hub is not None and not hub.has_functions():
        hub = None
        say("no functions are deployed")
    elif hub is None:
        say("no hub is known, so functions, if there are any, run for every message")
    else:
        hub.set_triggers(False)
    off = ", while triggers are off" if hub is not None else ""
    try:
        firestore.write(sample.documents.items())
    finally:
        if hub is not None:
            hub.set_triggers(True)
    say(f"{len(sample.documents):,} documents{off}")
    firestore.write(sample.live, LIVE_BATCH)
    say(f"{len(sample.live)} documents more")
    if hub is not None and hub.settle():
        say("their events are delivered")
    # Written by recordContact, too; without functions nobody else does it.
    firestore.write(sample.final.items())
    messages = sum(len(chat.messages) for chat in sample.chats)
    say(f"{messages:,} messages in {len(sample.chats)} chats; done in "
        f"{time.monotonic() - began:.1f} s")


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except SuiteError as error:
        sys.exit(f"sample: {error}")
    except KeyboardInterrupt:
        sys.exit("sample: stopped; run it again to complete the data")
