"""The runbook of docs/psst.md as one test: rules, migration, 10, 50 and 100 percent, and back to 0.

A copy of production is made from a managed export. At each step its users write as themselves, under
the access rules, with Google's client and their ID tokens.
"""

import shutil

import conftest
import pytest
from conftest import client, token
from google.api_core.exceptions import PermissionDenied
from google.cloud import firestore
from test_psst_app import as_user, cover
from test_psst_migration import REAL, ROLL_BACK, call, chat, stored, user

# Where the flag's hash places two clients among all users, in percent.
PLACES = {"carl": 78.8, "cleo": 10.2}


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """A managed export of a production that knows no contacts, apart from a removal by Tina."""
    folder = tmp_path_factory.mktemp("production")
    with conftest.started(folder, "--no-functions") as production:
        db = client(production)
        user(db, "tina", "trainer")
        user(db, "olga", role=None)
        for name in ("carl", "cleo", "greg"):
            user(db, name)
            chat(db, f"tina-{name}", "tina", name)
        chat(db, "olga-carl", "olga", "carl")
        chat(db, "runners", "tina", "carl", "cleo", "ghost", group=True)
        db.document("contacts/tina/removed/greg").set({"removedAt": firestore.SERVER_TIMESTAMP})
        done = production.cli("export", str(folder / "out"), "--format", "firebase")
        assert done.returncode == 0, done.stderr
    # `gcloud firestore export` has the same files in a folder of its own.
    shutil.move(folder / "out/firestore_export", folder / "managed")
    return folder / "managed"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("psst")
    for file in ("firestore.rules", "firestore.indexes.json"):
        shutil.copy(conftest.ROOT / file, folder)
    binary = str(conftest.ROOT / ".build" / conftest.CONFIGURATION / "psst-functions")
    with conftest.started(folder, "--executable", binary, "--strict-indexes") as suite:
        yield suite


class Walk:
    """The users of the copy, who write at each step."""

    def __init__(self, suite):
        self.suite, self.count = suite, 0

    def write(self, uid, chat_id):
        """Tells whether the rules let a user write a message, edit it and read the chat."""
        self.count += 1
        reference = as_user(self.suite, uid).document(f"chats/{chat_id}/messages/m{self.count}")
        try:
            reference.create({
                "id": reference.id, "text": "Hello", "senderID": uid, "readBy": [uid],
                "timestamp": firestore.SERVER_TIMESTAMP})
            reference.update({"text": "Hello again"})
        except PermissionDenied:
            return False
        assert reference.get().get("text") == "Hello again"
        return True

    def chat(self, uid, other):
        """The result of createChat, or the text of its refusal."""
        reply = self.suite.call("createChat", {"members": [uid, other]}, token(uid)).json()
        return reply["result"] if "result" in reply else reply["error"]["message"]

    def everybody_writes(self):
        """Who has a chat writes to it, whatever the percentage; a removal alone stops the two."""
        for uid, chat_id in [
                ("tina", "tina-carl"), ("carl", "tina-carl"), ("cleo", "tina-cleo"),
                ("carl", "olga-carl"), ("olga", "olga-carl"), ("cleo", "runners")]:
            assert self.write(uid, chat_id), (uid, chat_id)
        for uid in ("tina", "greg"):
            assert not self.write(uid, "tina-greg")
            assert as_user(self.suite, uid).document("chats/tina-greg").get().exists
        # The same two people get the chat that they have.
        for uid, chat_id in [("carl", "tina-carl"), ("greg", "tina-greg"), ("carl", "olga-carl")]:
            other = chat_id.removesuffix(f"-{uid}")
            assert self.chat(uid, other) == {"chatId": chat_id, "created": False}

    def begin(self, db, percent):
        """Clients begin chats with a trainer who has not added them, and with one who has."""
        trainer = f"new-{percent}-{self.count}"
        user(db, trainer, "trainer")
        for uid, place in PLACES.items():
            reply = self.chat(uid, trainer)
            if place <= percent:
                assert reply == "This trainer hasn't added you yet"
                db.document(f"contacts/{trainer}/clients/{uid}").set({"clientId": uid})
                reply = self.chat(uid, trainer)
            assert reply["created"], reply
            assert self.write(uid, reply["chatId"]) and self.write(trainer, reply["chatId"])
        peer = f"peer-{percent}-{self.count}"
        user(db, peer)
        reply = self.chat("carl", peer)
        if PLACES["carl"] <= percent:
            assert reply == "You can message people you share a group with"
        assert self.chat("tina", trainer)["created"]


@pytest.mark.timeout(180)
def test_the_roll_out_and_the_way_back(suite, export):
    imported = suite.cli("import", str(export))
    assert imported.returncode == 0, imported.stderr
    db, walk = client(suite), Walk(suite)

    # Week 1: the rules are deployed, the check is off, and nobody has a contact.
    walk.everybody_writes()
    walk.begin(db, 0)

    # Week 2, and 3 in production: the migration.
    dry = call(suite, "migrateExistingChats", {})
    assert dry["counts"]["created"] > 0 and stored(db, "tina") == {}
    skips = {skip["path"]: skip["reason"] for skip in dry["skips"]}
    assert "removed" in skips["contacts/tina/clients/greg"]
    assert "no role" in skips["users/olga"] and "contacts/tina/clients/ghost" in skips
    real = call(suite, "migrateExistingChats", REAL)
    assert real["backup"] and real["counts"] == dry["counts"]
    assert sorted(stored(db, "tina")) == ["carl", "cleo"] and sorted(stored(db, "olga")) == ["carl"]
    assert call(suite, "migrateExistingChats", REAL)["counts"]["created"] == 0
    walk.everybody_writes()

    # Week 4: the check covers more and more.
    for percent in (10, 50, 100):
        cover(db, percent)
        walk.everybody_writes()
        walk.begin(db, percent)

    # A removal holds against the next migration; a contact alone cannot be deleted.
    contact = as_user(suite, "tina").document("contacts/tina/clients/cleo")
    with pytest.raises(PermissionDenied):
        contact.delete()
    batch = as_user(suite, "tina").batch()
    batch.delete(contact)
    batch.set(as_user(suite, "tina").document("contacts/tina/removed/cleo"),
              {"removedAt": firestore.SERVER_TIMESTAMP})
    batch.commit()
    assert not walk.write("cleo", "tina-cleo")
    again = call(suite, "migrateExistingChats", {"trainerIds": ["tina"], **REAL})
    assert again["contacts"] == [] and "cleo" not in stored(db, "tina")
    batch = as_user(suite, "tina").batch()
    batch.delete(as_user(suite, "tina").document("contacts/tina/removed/cleo"))
    batch.commit()

    # Back to 0 percent, without a deployment, and the migration is rolled back.
    cover(db, 0)
    walk.everybody_writes()
    walk.begin(db, 0)
    suite.settle()
    back = call(suite, "rollbackMigration", {"run": real["run"], **ROLL_BACK})
    assert "contacts/tina/clients/carl" in back["removed"] and back["counts"]["kept"] == 0
    assert stored(db, "tina") == {} and stored(db, "olga") == {}
    walk.everybody_writes()
