"""What Psst asks of the database in production: every query has its index in the project's file."""

import datetime
import json
import shutil

from conftest import CONFIGURATION, ROOT, client, started, token
from test_psst_profiles import World


def test_every_query_of_psst_has_its_index(openai_stub, tmp_path):
    openai_stub.control("reset", {})
    shutil.copy(ROOT / "firestore.indexes.json", tmp_path)
    (tmp_path / ".env").write_text(
        f"OPENAI_BASE_URL={openai_stub.origin}/v1\nPSST_CHAT_MODEL=gpt-4o-mini\n")
    (tmp_path / ".secret.local").write_text("OPENAI_API_KEY=sk-test\n")
    binary = str(ROOT / ".build" / CONFIGURATION / "psst-functions")
    with started(tmp_path, "--executable", binary, "--strict-indexes") as suite:
        db = client(suite)
        world = World(db, suite, openai_stub)
        world.finds("knee", ("injuries", "Sore knee"))
        world.finds("back", ("injuries", "Old back"))
        for number in range(3):
            world.say(f"m{number}", f"My knee is sore {number}", number)
        suite.settle()
        world.message("m0").delete()
        world.message("m1").update({"text": "My back is old"})
        db.document(f"chats/{world.chat}").update({"groupName": "Us"})
        suite.settle()
        assert world.profile()["totalItems"] == 2

        found = suite.call("semanticSearch", {"query": "sore knee"}, token(world.trainer))
        assert found.status_code == 200, found.text
        now = datetime.datetime.now(datetime.timezone.utc)
        for number in range(2):
            db.document(f"calendar/{world.trainer}/events/e{number}").set({
                "title": "Call", "status": "scheduled",
                "startTime": now + datetime.timedelta(hours=number),
                "endTime": now + datetime.timedelta(hours=number + 2)})
        suite.settle()
        assert len(list(db.collection("reminders").stream())) == 1
        openai_stub.control("reset", {})
        for function, reply in (("summarizeChat", {"summary": "Knees"}),
                                ("suggestReminder", {"text": None, "dueDate": None}),
                                ("surfaceContext", None)):
            if reply:
                openai_stub.script(chat=[{"json": reply}])
            data = {"chatId": world.chat, "messageId": "m2"}
            found = suite.call(function, data, token(world.trainer))
            assert found.status_code == 200, (function, found.text)
        suite.cli("functions", "run", "remindInactiveClients")
        suite.settle()
        for function, confirm in (("migrateExistingChats", "migrate"),
                                  ("backfillEmbeddings", "backfill"),
                                  ("backfillProfiles", "backfill")):
            world.contact.delete()
            reply = suite.call(function, {"dryRun": False, "confirm": confirm}, "owner")
            assert reply.status_code == 200, (function, reply.text)
            if function == "migrateExistingChats":
                run = reply.json()["result"]["run"]
                undone = suite.call(
                    "rollbackMigration", {"run": run, "dryRun": False, "confirm": "rollback"}, "owner")
                assert undone.status_code == 200, undone.text
        events = json.loads(suite.cli("events", "list", "--json", "--limit", "1000").stdout)
        assert {event["state"] for event in events} == {"succeeded"}
