"""Data folders that earlier versions wrote, left as a killed process leaves them."""

import pathlib
import tarfile

from conftest import client, started

FOLDERS = pathlib.Path(__file__).parent / "folders"

# What folders/layout-1.tar.gz was made of: twelve users, one changed, one deleted, one note.
USERS = {
    f"u{i:02d}": {"n": i, "name": f"User {i}", "tags": ["a", "b"], "m": {"x": i * 0.5}}
    for i in range(12)
}
USERS["u01"]["n"] = 100
del USERS["u02"]


def read(db):
    return {one.id: one.to_dict() for one in db.collection("users").stream()}


def test_a_folder_of_the_first_layout_is_taken_over(tmp_path):
    with tarfile.open(FOLDERS / "layout-1.tar.gz") as archive:
        archive.extractall(tmp_path / "data", filter="data")
    options = ("--no-functions", "--data", str(tmp_path / "data"))

    with started(tmp_path, *options, ephemeral=False) as suite:
        db = client(suite)
        assert read(db) == USERS
        assert db.document("users/u03/notes/first").get().to_dict() == {"text": "hello"}
        before = db.document("users/u04").get()
        # The clock and the log go on where they were.
        written = db.document("users/u04").update({"n": 7})
        assert written.update_time > before.update_time
        past = db.document("users/u04").get(read_time=before.read_time)
        assert past.to_dict() == USERS["u04"]

    with started(tmp_path, *options, ephemeral=False) as suite:
        assert read(client(suite)) == USERS | {"u04": USERS["u04"] | {"n": 7}}
