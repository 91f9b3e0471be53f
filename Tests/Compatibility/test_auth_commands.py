"""`hearth auth`, `hearth call --as` and exports, with a suite of their own."""

import json
import subprocess

import conftest
import pytest
import requests
from conftest import CONFIGURATION, ROOT
from test_auth import Client, address, claims


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auth")
    binary = str(ROOT / ".build" / CONFIGURATION / "SampleFunctions")
    with conftest.started(folder, "--executable", binary) as suite:
        yield suite


def run(suite, *arguments):
    done = suite.cli(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_user_from_creation_to_deletion(samples):
    email = address()
    uid = run(samples, "auth", "create", email, "--password", "secret1", "--name", "Tina",
              "--claims", '{"role": "trainer"}', "--verified")
    signed_in = Client(samples.address("auth")).ok(
        "signInWithPassword", {"email": email, "password": "secret1"})
    assert signed_in["localId"] == uid
    assert claims(signed_in["idToken"])["role"] == "trainer"
    assert claims(signed_in["idToken"])["email_verified"] is True

    assert email in run(samples, "auth", "list")
    lines = run(samples, "auth", "list", "--json").splitlines()
    assert json.loads(lines[0])["localId"]
    assert all("passwordHash" not in line for line in lines)
    token = claims(run(samples, "auth", "token", email))
    assert (token["sub"], token["email"], token["name"]) == (uid, email, "Tina")
    assert token["firebase"]["sign_in_provider"] == "password"
    unchanged = json.loads(run(samples, "auth", "list", "--json").splitlines()[0])
    assert "customAuth" not in unchanged

    run(samples, "auth", "claims", email, '{"role": "client"}')
    assert json.loads(run(samples, "auth", "claims", uid)) == {"role": "client"}
    assert json.loads(run(samples, "call", "whoAmI", "--as", email)) == uid
    run(samples, "auth", "delete", email)
    gone = samples.cli("auth", "token", email)
    assert gone.returncode == 1
    assert "hearth auth create" in gone.stderr


def test_a_call_as_a_user_has_the_claims(samples):
    email = address()
    run(samples, "auth", "create", email, "--claims", '{"admin": true}')
    assert json.loads(run(samples, "call", "adminOnly", "--as", email)) is True
    plain = address()
    run(samples, "auth", "create", plain)
    assert samples.cli("call", "adminOnly", "--as", plain).returncode == 1
    run(samples, "call", "adminOnly", "--as", plain, "--claims", '{"admin": true}')


@pytest.mark.parametrize("arguments, status, words", [
    (("auth", "create", "nowhere"), 1, "not an e-mail address"),
    (("auth", "creat", "a@e.example"), 2, "Did you mean `hearth auth create`?"),
    (("auth", "create", "a@e.example", "--password", "short"), 1, "WEAK_PASSWORD"),
    (("auth", "create", "a@e.example", "--claims", "role"), 2, "must be a JSON object"),
    (("auth", "create", "a@e.example", "--claims", '{"sub": 1}'), 1, "FORBIDDEN_CLAIM : sub"),
    (("auth", "claims", "nobody"), 1, "There is no user nobody"),
    (("auth", "claims", "nobody", "[]"), 2, "must be a JSON object"),
    (("auth", "list", "--limit", "0"), 2, "--limit is 0"),
    (("auth", "delete"), 2, "Missing expected argument"),
    (("call", "whoAmI", "--as", "nobody@e.example"), 1, "There is no user nobody@e.example"),
])
def test_wrong_commands(samples, arguments, status, words):
    done = samples.cli(*arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert "a@e.example" not in run(samples, "auth", "list"), "what is refused makes no user"


def test_a_deletion_with_a_misspelled_name_deletes_none(samples):
    email = address()
    run(samples, "auth", "create", email)
    assert samples.cli("auth", "delete", email, "nobody").returncode == 1
    assert email in run(samples, "auth", "list")
    assert run(samples, "auth", "delete", email, email) == "Deleted 1 user."


def test_an_export_has_the_users_in_firebases_form(samples, tmp_path):
    email = address()
    uid = run(samples, "auth", "create", email, "--password", "secret1")
    folder = tmp_path / "export"
    assert "user" in run(samples, "export", str(folder))
    metadata = json.loads((folder / "firebase-export-metadata.json").read_text())
    assert metadata["auth"]["path"] == "auth_export"
    accounts = json.loads((folder / "auth_export" / "accounts.json").read_text())
    assert accounts["kind"] == "identitytoolkit#DownloadAccountResponse"
    user = next(user for user in accounts["users"] if user["localId"] == uid)
    assert (user["email"], user["emailVerified"]) == (email, False)
    config = json.loads((folder / "auth_export" / "config.json").read_text())
    assert config["signIn"] == {"allowDuplicateEmails": False}

    with conftest.started(tmp_path, "--no-functions", "--import", str(folder)) as other:
        client = Client(other.address("auth"))
        assert client.ok("signInWithPassword", {"email": email, "password": "secret1"})[
            "localId"] == uid


def test_metrics_count_requests(samples):
    client = Client(samples.address("auth"))
    client.error("signUp", {"email": "nowhere", "password": "secret1"})
    text = requests.get(f"http://{samples.address('hub')}/metrics", timeout=30).text
    assert 'hearth_auth_requests_total{method="signUp",outcome="refused"}' in text
    client.post("nonsense", {})
    assert "nonsense" not in requests.get(
        f"http://{samples.address('hub')}/metrics", timeout=30).text


def test_exec_has_the_address(tmp_path):
    done = subprocess.run(
        [conftest.hearth(), "exec", "--no-functions", "--", "sh", "-c",
         "curl -s http://$FIREBASE_AUTH_EMULATOR_HOST/"],
        capture_output=True, text=True, timeout=60, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["authEmulator"]["ready"] is True


def test_the_hub_lists_the_service(samples):
    listed = requests.get(f"http://{samples.address('hub')}/emulators", timeout=30).json()
    assert f"{listed['auth']['host']}:{listed['auth']['port']}" == samples.address("auth")


def test_a_client_at_the_wrong_port_is_led_to_auth(samples):
    reply = requests.post(
        f"http://{samples.address('firestore')}/identitytoolkit.googleapis.com/v1/accounts:signUp",
        json={}, timeout=30)
    assert reply.status_code == 404
    assert f"Auth answers at {samples.address('auth')}" in reply.json()["error"]["message"]
