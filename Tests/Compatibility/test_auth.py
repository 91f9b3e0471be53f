"""Auth with firebase-admin and with the REST dialogues of the phones' SDKs."""

import base64
import concurrent.futures
import contextlib
import json
import os
import time
import urllib.parse
import uuid

import conftest
import firebase_admin
import pytest
import requests
from conftest import PROJECT
from firebase_admin import auth


@pytest.fixture(scope="module")
def host(suite):
    return suite.address("auth")


@pytest.fixture(scope="module")
def app(host):
    os.environ["FIREBASE_AUTH_EMULATOR_HOST"] = host
    app = firebase_admin.initialize_app(
        None, {"projectId": PROJECT}, name=f"auth-{uuid.uuid4()}")
    yield app
    firebase_admin.delete_app(app)
    del os.environ["FIREBASE_AUTH_EMULATOR_HOST"]


class Client:
    """The requests of an app."""

    def __init__(self, host):
        self.host = host

    def post(self, method, body, **options):
        return requests.post(
            f"http://{self.host}/identitytoolkit.googleapis.com/v1/accounts:{method}",
            params={"key": "any"}, json=body, timeout=30, **options)

    def ok(self, method, body):
        reply = self.post(method, body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def error(self, method, body, status=400):
        reply = self.post(method, body)
        assert reply.status_code == status, reply.text
        error = reply.json()["error"]
        assert error["code"] == status
        assert error["errors"][0]["message"] == error["message"]
        return error["message"]

    def refresh(self, token, **fields):
        return requests.post(
            f"http://{self.host}/securetoken.googleapis.com/v1/token", params={"key": "any"},
            data={"grant_type": "refresh_token", "refresh_token": token, **fields}, timeout=30)

    def control(self, method, path, **options):
        reply = requests.request(
            method, f"http://{self.host}/emulator/v1/projects/{PROJECT}/{path}", timeout=30,
            **options)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def codes(self, email):
        return [c for c in self.control("GET", "oobCodes")["oobCodes"] if c["email"] == email]

    def sign_up(self, email=None, password="secret1"):
        return self.ok("signUp", {"email": email or address(), "password": password,
                                  "returnSecureToken": True})


@pytest.fixture(scope="module")
def client(host):
    return Client(host)


@pytest.fixture
def private(client):
    """A project that hides which addresses have accounts."""
    flag = {"emailPrivacyConfig": {"enableImprovedEmailPrivacy": True}}
    assert client.control("PATCH", "config", json=flag)["emailPrivacyConfig"] == {
        "enableImprovedEmailPrivacy": True}
    yield
    flag["emailPrivacyConfig"]["enableImprovedEmailPrivacy"] = False
    client.control("PATCH", "config", json=flag)


def address():
    return f"user-{uuid.uuid4().hex}@example.com"


def claims(token):
    header, payload, signature = token.split(".")
    assert signature == ""
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none", "typ": "JWT"}
    return json.loads(base64.urlsafe_b64decode(payload + "==="))


# --- Administration -------------------------------------------------------------------------------


def test_an_administrator_manages_a_user(app):
    email = address()
    user = auth.create_user(email=email.upper(), password="secret1", display_name="Tina",
                            phone_number="+15550100", app=app)
    assert (user.email, user.display_name, user.disabled) == (email, "Tina", False)
    assert auth.get_user_by_email(email, app=app).uid == user.uid
    assert auth.get_user_by_phone_number("+15550100", app=app).uid == user.uid

    changed = auth.update_user(user.uid, display_name=auth.DELETE_ATTRIBUTE, photo_url="https://e.example/t.png",
                               email_verified=True, phone_number=auth.DELETE_ATTRIBUTE, disabled=True,
                               app=app)
    assert (changed.display_name, changed.phone_number) == (None, None)
    assert changed.photo_url == "https://e.example/t.png"
    assert changed.email_verified and changed.disabled

    auth.delete_user(user.uid, app=app)
    with pytest.raises(auth.UserNotFoundError):
        auth.get_user(user.uid, app=app)
    with pytest.raises(auth.UserNotFoundError):
        auth.delete_user(user.uid, app=app)


def test_an_administrator_is_refused_what_is_taken_or_malformed(app):
    uid, email = uuid.uuid4().hex, address()
    auth.create_user(uid=uid, email=email, phone_number="+15550111", app=app)
    with pytest.raises(auth.UidAlreadyExistsError):
        auth.create_user(uid=uid, app=app)
    with pytest.raises(auth.EmailAlreadyExistsError):
        auth.create_user(email=email, app=app)
    with pytest.raises(auth.PhoneNumberAlreadyExistsError):
        auth.create_user(phone_number="+15550111", app=app)
    other = auth.create_user(app=app)
    with pytest.raises(auth.EmailAlreadyExistsError):
        auth.update_user(other.uid, email=email, app=app)


def test_custom_claims_are_in_tokens_and_are_bounded(app, client, host):
    user = client.sign_up()
    auth.set_custom_user_claims(user["localId"], {"role": "trainer", "level": 3}, app=app)
    fresh = client.refresh(user["refreshToken"]).json()
    assert claims(fresh["id_token"])["role"] == "trainer"
    assert claims(fresh["id_token"])["level"] == 3
    decoded = auth.verify_id_token(fresh["id_token"], app=app)
    assert decoded["uid"] == user["localId"]

    def update(text):
        return requests.post(
            f"http://{host}/identitytoolkit.googleapis.com/v1/projects/{PROJECT}/accounts:update",
            json={"localId": user["localId"], "customAttributes": text},
            headers={"Authorization": "Bearer owner"}, timeout=30).json()

    assert update(json.dumps({"x": "a" * 1000}))["error"]["message"] == "CLAIMS_TOO_LARGE"
    assert update("[1]")["error"]["message"] == "INVALID_CLAIMS"
    assert update("{")["error"]["message"] == "INVALID_CLAIMS"
    for name in ("sub", "iss", "firebase", "auth_time", "nonce"):
        assert update(json.dumps({name: 1}))["error"]["message"] == f"FORBIDDEN_CLAIM : {name}"
    auth.set_custom_user_claims(user["localId"], None, app=app)
    assert "role" not in claims(client.refresh(user["refreshToken"]).json()["id_token"])


def test_users_are_imported_listed_and_deleted_in_batches(app, client):
    client.control("DELETE", "accounts")
    records = [auth.ImportUserRecord(
        uid=f"batch{n:04}", email=f"batch{n}@example.com", custom_claims={"n": n},
        provider_data=[auth.UserProvider(uid=f"g{n}", provider_id="google.com")])
        for n in range(1000)]
    result = auth.import_users(records, app=app)
    assert (result.success_count, result.failure_count) == (1000, 0)

    assert [user.uid for user in auth.list_users(app=app).iterate_all()] == [
        f"batch{n:04}" for n in range(1000)]
    page = auth.list_users(max_results=300, app=app)
    assert len(page.users) == 300
    assert page.get_next_page().users[0].uid == "batch0300"
    found = auth.get_users([auth.ProviderIdentifier("google.com", "g7"),
                            auth.UidIdentifier("missing"), auth.EmailIdentifier("batch8@example.com")],
                           app=app)
    assert {user.uid for user in found.users} == {"batch0007", "batch0008"}
    assert len(found.not_found) == 1

    taken = auth.import_users([
        auth.ImportUserRecord(uid="other", email="batch1@example.com"),
        auth.ImportUserRecord(uid="fine", email="fine@example.com")], app=app)
    assert (taken.success_count, taken.failure_count) == (1, 1)
    assert taken.errors[0].index == 0

    result = auth.delete_users([f"batch{n:04}" for n in range(1000)], app=app)
    assert (result.success_count, result.failure_count) == (1000, 0)
    assert [user.uid for user in auth.list_users(app=app).iterate_all()] == ["fine"]


def test_a_revoked_token_is_refused(app, client):
    user = client.sign_up()
    time.sleep(1.1)  # Tokens and revocations have whole seconds.
    auth.revoke_refresh_tokens(user["localId"], app=app)
    assert client.error("lookup", {"idToken": user["idToken"]}) == "TOKEN_EXPIRED"
    assert client.refresh(user["refreshToken"]).json()["error"]["message"] == "TOKEN_EXPIRED"
    with pytest.raises(auth.RevokedIdTokenError):
        auth.verify_id_token(user["idToken"], check_revoked=True, app=app)


def test_a_session_cookie_has_the_claims_of_its_token(app, client):
    user = client.sign_up()
    cookie = auth.create_session_cookie(user["idToken"], expires_in=3600, app=app)
    decoded = claims(cookie.decode() if isinstance(cookie, bytes) else cookie)
    assert decoded["iss"] == f"https://session.firebase.google.com/{PROJECT}"
    assert decoded["sub"] == user["localId"]
    assert decoded["exp"] - decoded["iat"] == 3600
    assert auth.verify_session_cookie(cookie, app=app)["uid"] == user["localId"]


def test_accounts_are_queried(client, host):
    client.control("DELETE", "accounts")
    for uid in ("b", "a", "c"):
        requests.post(f"http://{host}/identitytoolkit.googleapis.com/v1/projects/{PROJECT}/accounts",
                      json={"localId": uid}, headers={"Authorization": "Bearer owner"}, timeout=30)

    def query(**body):
        return requests.post(
            f"http://{host}/identitytoolkit.googleapis.com/v1/projects/{PROJECT}/accounts:query",
            json=body, headers={"Authorization": "Bearer owner"}, timeout=30).json()

    assert query(returnUserInfo=False) == {"recordsCount": "3"}
    assert [user["localId"] for user in query()["userInfo"]] == ["a", "b", "c"]
    page = query(order="DESC", limit="1", offset="1")
    assert [user["localId"] for user in page["userInfo"]] == ["b"]
    assert query(expression=[{"email": "x"}])["error"]["message"].startswith("OPERATION_NOT_ALLOWED")
    assert query(sortBy="NAME")["error"]["message"].startswith("OPERATION_NOT_ALLOWED")


def test_links_for_an_administrator(app, client):
    email = address()
    client.sign_up(email)
    settings = auth.ActionCodeSettings(url="https://app.example/done?a=b+c&d")
    for make in (auth.generate_password_reset_link, auth.generate_email_verification_link,
                 auth.generate_sign_in_with_email_link):
        link = make(email, settings, app=app)
        query = urllib.parse.parse_qs(urllib.parse.urlparse(link).query)
        assert query["continueUrl"] == ["https://app.example/done?a=b+c&d"]
        assert query["oobCode"][0]
    with pytest.raises(auth.UserNotFoundError):
        auth.generate_email_verification_link(address(), app=app)


# --- The dialogues of apps ------------------------------------------------------------------------


def test_sign_up_and_sign_in_with_a_password(client):
    email = address()
    user = client.sign_up(email.replace("user", "USER"))
    assert user["kind"] == "identitytoolkit#SignupNewUserResponse"
    assert (user["email"], user["expiresIn"]) == (email, "3600")
    payload = claims(user["idToken"])
    assert payload["iss"] == f"https://securetoken.google.com/{PROJECT}"
    assert payload["aud"] == PROJECT
    assert payload["sub"] == payload["user_id"] == user["localId"]
    assert payload["exp"] - payload["iat"] == 3600
    assert payload["email_verified"] is False
    assert payload["firebase"] == {
        "identities": {"email": [email]}, "sign_in_provider": "password"}

    again = client.ok("signInWithPassword", {"email": email, "password": "secret1"})
    assert again["registered"] is True
    assert again["localId"] == user["localId"]
    shown = client.ok("lookup", {"idToken": again["idToken"]})["users"][0]
    assert shown["providerUserInfo"][0]["providerId"] == "password"
    assert "passwordHash" not in shown
    assert int(shown["lastLoginAt"]) >= int(shown["createdAt"])


@pytest.mark.parametrize("method, body, message", [
    ("signUp", {"email": "a@b.c"}, "MISSING_PASSWORD"),
    ("signUp", {"password": "secret1"}, "MISSING_EMAIL"),
    ("signUp", {"email": "no address", "password": "secret1"}, "INVALID_EMAIL"),
    ("signUp", {"email": "a@b@c", "password": "secret1"}, "INVALID_EMAIL"),
    ("signUp", {"email": "new@b.c", "password": "short"},
     "WEAK_PASSWORD : Password should be at least 6 characters"),
    ("signUp", {"email": "new@b.c", "password": "secret1", "localId": "x"},
     "UNEXPECTED_PARAMETER : User ID"),
    ("signInWithPassword", {"password": "secret1"}, "MISSING_EMAIL"),
    ("signInWithPassword", {"email": "nobody@b.c"}, "MISSING_PASSWORD"),
    ("signInWithPassword", {"email": "nobody@b.c", "password": "secret1"}, "EMAIL_NOT_FOUND"),
    ("signInWithPassword", {"email": "nowhere", "password": "secret1"}, "INVALID_EMAIL"),
    ("signInWithCustomToken", {}, "MISSING_CUSTOM_TOKEN"),
    ("signInWithCustomToken", {"token": "x"}, "INVALID_CUSTOM_TOKEN : Invalid assertion format"),
    ("signInWithCustomToken", {"token": "{}"}, "MISSING_IDENTIFIER"),
    ("signInWithCustomToken", {"token": '{"uid": "u", "claims": {"iss": 1}}'},
     "FORBIDDEN_CLAIM : iss"),
    ("lookup", {}, "MISSING_ID_TOKEN"),
    ("lookup", {"idToken": "x.y.z"}, "INVALID_ID_TOKEN"),
    ("update", {}, "INVALID_REQ_TYPE : Unsupported request parameters."),
    ("update", {"oobCode": "x"}, "INVALID_OOB_CODE"),
    ("update", {"localId": "x", "displayName": "Mallory"},
     "INVALID_REQ_TYPE : Unsupported request parameters."),
    ("delete", {"localId": "x"}, "MISSING_ID_TOKEN"),
    ("sendOobCode", {}, "MISSING_REQ_TYPE"),
    ("sendOobCode", {"requestType": "PASSWORD_RESET"}, "MISSING_EMAIL"),
    ("sendOobCode", {"requestType": "PASSWORD_RESET", "email": "nobody@b.c"}, "EMAIL_NOT_FOUND"),
    ("sendOobCode", {"requestType": "PASSWORD_RESET", "email": "nobody@b.c", "returnOobLink": True},
     "INSUFFICIENT_PERMISSION"),
    ("sendOobCode", {"requestType": "EMAIL_SIGNIN", "email": "a@b.c", "continueUrl": "x"},
     "INVALID_CONTINUE_URI : ((expected an absolute URI with valid scheme and host))"),
    ("resetPassword", {}, "MISSING_OOB_CODE"),
    ("resetPassword", {"oobCode": "x", "newPassword": "secret1"}, "INVALID_OOB_CODE"),
    ("sendVerificationCode", {"phoneNumber": "555"}, "INVALID_PHONE_NUMBER : Invalid format."),
    ("signInWithPhoneNumber", {"code": "1"}, "MISSING_SESSION_INFO"),
    ("signInWithPhoneNumber", {"sessionInfo": "1"}, "MISSING_CODE"),
    ("signInWithPhoneNumber", {"sessionInfo": "1", "code": "1"}, "INVALID_SESSION_INFO"),
    ("signInWithEmailLink", {"email": "a@b.c", "oobCode": "x"}, "INVALID_OOB_CODE"),
    ("createAuthUri", {"identifier": "a@b.c"}, "MISSING_CONTINUE_URI"),
    ("signInWithIdp", {"postBody": "providerId=google.com"}, "MISSING_REQUEST_URI"),
    ("signInWithIdp", {"postBody": "id_token={}", "requestUri": "http://localhost"},
     "INVALID_CREDENTIAL_OR_PROVIDER_ID : Invalid IdP response/credential: http://localhost"),
])
def test_what_apps_switch_on(client, method, body, message):
    assert client.error(method, body) == message


def test_a_taken_address_and_a_wrong_password(client):
    email = address()
    client.sign_up(email)
    assert client.error("signUp", {"email": email.upper(), "password": "secret1"}) == "EMAIL_EXISTS"
    wrong = {"email": email, "password": "wrong-password"}
    assert client.error("signInWithPassword", wrong) == "INVALID_PASSWORD"


def test_privacy_hides_who_has_an_account(client, private):
    email = address()
    client.sign_up(email)
    for body in ({"email": email, "password": "wrong-password"},
                 {"email": address(), "password": "secret1"}):
        assert client.error("signInWithPassword", body) == "INVALID_LOGIN_CREDENTIALS"
    unknown = address()
    reset = client.ok("sendOobCode", {"requestType": "PASSWORD_RESET", "email": unknown})
    assert reset["email"] == unknown
    assert client.codes(unknown) == []
    assert "registered" not in client.ok(
        "createAuthUri", {"identifier": email, "continueUri": "http://localhost"})


def test_of_concurrent_sign_ups_one_wins(client):
    email = address()

    def attempt(_):
        return client.post("signUp", {"email": email, "password": "secret1"})

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        replies = list(threads.map(attempt, range(16)))
    assert sorted(reply.status_code for reply in replies) == [200] + [400] * 15
    assert {reply.json()["error"]["message"] for reply in replies
            if reply.status_code == 400} == {"EMAIL_EXISTS"}


def test_an_anonymous_user_becomes_a_permanent_one(client):
    anonymous = client.ok("signUp", {"returnSecureToken": True})
    payload = claims(anonymous["idToken"])
    assert payload["provider_id"] == "anonymous"
    assert payload["firebase"]["sign_in_provider"] == "anonymous"
    email = address()
    linked = client.ok("signUp", {"idToken": anonymous["idToken"], "email": email,
                                  "password": "secret1"})
    assert linked["localId"] == anonymous["localId"]
    assert "provider_id" not in claims(linked["idToken"])
    signed_in = client.ok("signInWithPassword", {"email": email, "password": "secret1"})
    assert signed_in["localId"] == anonymous["localId"]
    unlinked = client.ok("update", {"idToken": signed_in["idToken"], "deleteProvider": ["password"]})
    assert (unlinked["email"], unlinked["providerUserInfo"]) == (email, [])
    assert client.error("signInWithPassword", {"email": email, "password": "secret1"}) == (
        "INVALID_PASSWORD")


def test_custom_tokens_sign_in(app, client):
    uid = uuid.uuid4().hex
    token = auth.create_custom_token(uid, {"premium": True}, app=app).decode()
    first = client.ok("signInWithCustomToken", {"token": token, "returnSecureToken": True})
    assert first["isNewUser"] is True
    payload = claims(first["idToken"])
    assert (payload["sub"], payload["premium"]) == (uid, True)
    assert payload["firebase"]["sign_in_provider"] == "custom"
    fresh = client.refresh(first["refreshToken"]).json()
    assert claims(fresh["id_token"])["premium"] is True, "claims last as long as the session"
    plain = client.ok("signInWithCustomToken", {"token": json.dumps({"uid": uid})})
    assert plain["isNewUser"] is False
    assert client.error("signInWithCustomToken", {"token": first["idToken"]}).startswith(
        "INVALID_CUSTOM_TOKEN : ((Invalid aud (audience)")


def test_refresh_tokens(client):
    user = client.sign_up()
    reply = client.refresh(user["refreshToken"])
    fresh = reply.json()
    assert fresh["token_type"] == "Bearer"
    assert fresh["expires_in"] == "3600"
    assert fresh["user_id"] == user["localId"]
    assert fresh["access_token"] == fresh["id_token"]
    assert claims(fresh["id_token"])["auth_time"] == claims(user["idToken"])["auth_time"]

    def error(**fields):
        reply = client.refresh(user["refreshToken"], **fields)
        assert reply.status_code == 400
        return reply.json()["error"]["message"]

    assert error(grant_type="") == "MISSING_GRANT_TYPE"
    assert error(grant_type="password") == "INVALID_GRANT_TYPE"
    assert error(refresh_token="") == "MISSING_REFRESH_TOKEN"
    assert error(refresh_token="x") == "INVALID_REFRESH_TOKEN"
    text, signature = user["refreshToken"].split(".")
    content = json.loads(base64.urlsafe_b64decode(text + "==="))
    forged = base64.urlsafe_b64encode(
        json.dumps({**content, "uid": "somebody"}).encode()).rstrip(b"=").decode()
    assert error(refresh_token=f"{forged}.{signature}") == "INVALID_REFRESH_TOKEN"
    client.ok("delete", {"idToken": user["idToken"]})
    assert error() == "USER_NOT_FOUND"


def test_a_disabled_user_gets_no_tokens(app, client):
    email = address()
    user = client.sign_up(email)
    auth.update_user(user["localId"], disabled=True, app=app)
    body = {"email": email, "password": "secret1"}
    assert client.error("signInWithPassword", body) == "USER_DISABLED"
    assert client.error("lookup", {"idToken": user["idToken"]}) == "USER_DISABLED"
    assert client.refresh(user["refreshToken"]).json()["error"]["message"] == "USER_DISABLED"


def test_a_new_password_ends_other_sessions(client):
    email = address()
    user = client.sign_up(email)
    time.sleep(1.1)  # Tokens and revocations have whole seconds.
    changed = client.ok("update", {"idToken": user["idToken"], "password": "another1",
                                   "returnSecureToken": True})
    assert client.error("lookup", {"idToken": user["idToken"]}) == "TOKEN_EXPIRED"
    assert client.refresh(user["refreshToken"]).json()["error"]["message"] == "TOKEN_EXPIRED"
    client.ok("lookup", {"idToken": changed["idToken"]})
    assert client.error("signInWithPassword", {"email": email, "password": "secret1"}) == (
        "INVALID_PASSWORD")
    client.ok("signInWithPassword", {"email": email, "password": "another1"})


def test_a_user_changes_the_profile_but_not_the_rights(client):
    user = client.sign_up()
    changed = client.ok("update", {"idToken": user["idToken"], "displayName": "Tina",
                                   "photoUrl": "https://e.example/t.png", "emailVerified": True})
    assert (changed["displayName"], changed["emailVerified"]) == ("Tina", False)
    token = client.refresh(user["refreshToken"]).json()["id_token"]
    assert claims(token)["name"] == "Tina"
    for body, message in (({"customAttributes": "{}"}, "INSUFFICIENT_PERMISSION"),
                          ({"disableUser": False}, "OPERATION_NOT_ALLOWED")):
        assert client.error("update", {"idToken": token, **body}) == message
    removed = client.ok("update", {"idToken": token, "deleteAttribute": ["DISPLAY_NAME"]})
    assert "displayName" not in removed


def test_password_reset(client):
    email = address()
    client.sign_up(email)
    client.ok("sendOobCode", {"requestType": "PASSWORD_RESET", "email": email})
    code = client.codes(email)[0]
    assert code["requestType"] == "PASSWORD_RESET"
    shown = client.ok("resetPassword", {"oobCode": code["oobCode"]})
    assert (shown["email"], shown["requestType"]) == (email, "PASSWORD_RESET")
    weak = {"oobCode": code["oobCode"], "newPassword": "short"}
    assert client.error("resetPassword", weak).startswith("WEAK_PASSWORD")
    used = {"oobCode": code["oobCode"], "newPassword": "another1"}
    client.ok("resetPassword", used)
    assert client.error("resetPassword", used) == "INVALID_OOB_CODE"
    signed_in = client.ok("signInWithPassword", {"email": email, "password": "another1"})
    assert claims(signed_in["idToken"])["email_verified"] is True


def test_verification_and_change_of_an_address(client):
    email, other = address(), address()
    user = client.sign_up(email)
    client.ok("sendOobCode", {"requestType": "VERIFY_EMAIL", "idToken": user["idToken"]})
    verified = client.ok("update", {"oobCode": client.codes(email)[0]["oobCode"]})
    assert verified["emailVerified"] is True
    client.ok("sendOobCode", {"requestType": "VERIFY_AND_CHANGE_EMAIL", "newEmail": other,
                              "idToken": user["idToken"]})
    code = client.codes(email)[0]
    assert code["newEmail"] == other
    page = requests.get(code["oobLink"], timeout=30)
    assert page.json()["authEmulator"]["email"] == other
    assert client.ok("signInWithPassword", {"email": other, "password": "secret1"})["localId"] == (
        user["localId"])


def test_a_changed_address_can_be_recovered(client):
    email, stolen = address(), address()
    user = client.sign_up(email)
    client.ok("update", {"idToken": user["idToken"], "email": stolen})
    code = client.codes(email)[0]
    assert code["requestType"] == "RECOVER_EMAIL"
    client.ok("update", {"oobCode": code["oobCode"]})
    client.ok("signInWithPassword", {"email": email, "password": "secret1"})


def test_sign_in_with_a_link(client):
    email = address()
    client.ok("sendOobCode", {"requestType": "EMAIL_SIGNIN", "email": email,
                              "continueUrl": "http://localhost:3000/finish#tab"})
    code = client.codes(email)[0]
    page = requests.get(code["oobLink"], allow_redirects=False, timeout=30)
    assert page.status_code == 303
    assert page.headers["Location"].startswith("http://localhost:3000/finish?mode=signIn&")
    assert page.headers["Location"].endswith("#tab")
    other = {"email": address(), "oobCode": code["oobCode"]}
    assert client.error("signInWithEmailLink", other).startswith("INVALID_EMAIL")
    user = client.ok("signInWithEmailLink", {"email": email, "oobCode": code["oobCode"]})
    assert user["isNewUser"] is True
    assert claims(user["idToken"])["email_verified"] is True
    methods = client.ok("createAuthUri", {"identifier": email, "continueUri": "http://localhost"})
    assert methods["signinMethods"] == ["emailLink"]


def test_the_action_page_asks_for_a_password(client):
    email = address()
    client.sign_up(email)
    client.ok("sendOobCode", {"requestType": "PASSWORD_RESET", "email": email})
    link = client.codes(email)[0]["oobLink"]
    told = requests.get(link, timeout=30)
    assert told.status_code == 400
    assert told.json()["authEmulator"]["urlTemplate"].endswith("newPassword=NEW_PASSWORD_HERE")
    form = requests.get(link, headers={"Accept": "text/html"}, timeout=30)
    assert form.headers["Content-Type"].startswith("text/html")
    assert 'name="newPassword"' in form.text
    done = requests.get(link + "&newPassword=another1", timeout=30)
    assert "success" in done.json()["authEmulator"]
    assert requests.get(link + "&newPassword=another2", timeout=30).status_code == 400
    client.ok("signInWithPassword", {"email": email, "password": "another1"})


def test_the_action_page_redirects_to_pages_only(client):
    email = address()
    for target in ("javascript:alert(1)", "http://a.example/\r\nX: y"):
        reply = requests.get(
            f"http://{client.host}/emulator/action", timeout=30, allow_redirects=False,
            params={"mode": "signIn", "oobCode": "x", "continueUrl": target})
        assert reply.status_code == 400, email


def test_the_action_page_shows_addresses_as_text(client):
    """A mark that joins a sign to one character does not hide the sign."""
    email = f'"\u0300<b>"{address()}'
    stored = client.sign_up(email)["email"]
    client.ok("sendOobCode", {"requestType": "PASSWORD_RESET", "email": email})
    link = client.codes(stored)[0]["oobLink"]
    page = requests.get(link + "&x=%22%CC%81%CC%80%3E%CC%80%3Cscript/%CC%80%3E", timeout=30,
                        headers={"Accept": "text/html"})
    assert "<b>" not in page.text
    assert "<script" not in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_sign_in_by_telephone(client):
    session = client.ok("sendVerificationCode", {"phoneNumber": "+1 (555) 01-23"})["sessionInfo"]
    code = [c for c in client.control("GET", "verificationCodes")["verificationCodes"]
            if c["sessionInfo"] == session][0]
    assert len(code["code"]) == 6
    wrong = {"sessionInfo": session, "code": "x"}
    assert client.error("signInWithPhoneNumber", wrong) == "INVALID_CODE"
    right = {"sessionInfo": session, "code": code["code"]}
    user = client.ok("signInWithPhoneNumber", right)
    assert (user["isNewUser"], user["phoneNumber"]) == (True, "+15550123")
    assert claims(user["idToken"])["phone_number"] == "+15550123"
    assert client.error("signInWithPhoneNumber", right) == "INVALID_SESSION_INFO"


def identity(provider, **fields):
    post = urllib.parse.urlencode({"providerId": provider, "id_token": json.dumps(fields)})
    return {"postBody": post, "requestUri": "http://localhost", "returnSecureToken": True}


def test_an_identity_provider_signs_in(client):
    email, subject = address(), uuid.uuid4().hex
    body = identity("google.com", sub=subject, email=email, email_verified=True, name="Tina")
    first = client.ok("signInWithIdp", body)
    assert first["isNewUser"] is True
    assert json.loads(first["rawUserInfo"])["id"] == subject
    payload = claims(first["idToken"])
    assert payload["firebase"]["identities"] == {"email": [email], "google.com": [subject]}
    assert (payload["name"], payload["email_verified"]) == ("Tina", True)
    again = client.ok("signInWithIdp", body)
    assert again["localId"] == first["localId"]
    assert "isNewUser" not in again


def test_an_unverified_address_does_not_open_an_account(client):
    email = address()
    victim = client.sign_up(email)
    body = identity("facebook.com", sub=uuid.uuid4().hex, email=email)
    reply = client.ok("signInWithIdp", body)
    assert reply["needConfirmation"] is True
    assert "idToken" not in reply
    assert reply["localId"] == victim["localId"]


def test_the_owner_of_an_address_takes_it_back(client):
    """Somebody has signed up with an address that is not theirs, before its owner came."""
    email = address()
    squatter = client.sign_up(email)
    time.sleep(1.1)  # Tokens and revocations have whole seconds.
    body = identity("google.com", sub=uuid.uuid4().hex, email=email, email_verified=True)
    owner = client.ok("signInWithIdp", body)
    assert owner["localId"] == squatter["localId"]
    assert client.error("signInWithPassword", {"email": email, "password": "secret1"}) == (
        "INVALID_PASSWORD")
    assert client.refresh(squatter["refreshToken"]).json()["error"]["message"] == "TOKEN_EXPIRED"


def test_sign_in_methods_are_found_by_the_address_at_a_provider(client):
    own, other = address(), address()
    user = client.sign_up(own)
    linked = identity("google.com", sub=uuid.uuid4().hex, email=other, email_verified=True)
    client.ok("signInWithIdp", {**linked, "idToken": user["idToken"]})

    def methods(email):
        reply = client.ok("createAuthUri", {"identifier": email, "continueUri": "http://localhost"})
        return sorted(reply["signinMethods"])

    assert methods(other) == methods(own) == ["google.com", "password"]
    client.ok("update", {"idToken": user["idToken"], "deleteProvider": ["google.com"]})
    assert (methods(other), methods(own)) == ([], ["password"])


def test_a_profile_becomes_that_of_the_provider_that_joins(client):
    email = address()
    user = client.sign_up(email)
    client.ok("update", {"idToken": user["idToken"], "displayName": "Old"})
    joined = client.ok("signInWithIdp", identity(
        "google.com", sub=uuid.uuid4().hex, email=email, email_verified=True, name="New"))
    assert claims(joined["idToken"])["name"] == "New"


def test_a_provider_is_linked_to_one_user(client):
    subject = uuid.uuid4().hex
    first, second = client.sign_up(), client.sign_up()
    body = identity("apple.com", sub=subject)
    client.ok("signInWithIdp", {**body, "idToken": first["idToken"]})
    assert client.error("signInWithIdp", {**body, "idToken": second["idToken"]}) == (
        "FEDERATED_USER_ID_ALREADY_LINKED")
    assert client.ok("signInWithIdp", body)["localId"] == first["localId"]
    client.ok("update", {"idToken": first["idToken"], "deleteProvider": ["apple.com"]})
    assert client.ok("signInWithIdp", body)["localId"] != first["localId"]


@pytest.mark.parametrize("path", [
    "v2/accounts/mfaEnrollment:start", "v2/accounts/mfaSignIn:start",
    f"v2/projects/{PROJECT}/tenants", f"v2/projects/{PROJECT}/inboundSamlConfigs"])
def test_what_is_not_emulated_says_so(host, path):
    reply = requests.post(f"http://{host}/identitytoolkit.googleapis.com/{path}?key=x", json={},
                          headers={"Authorization": "Bearer owner"}, timeout=30)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith("OPERATION_NOT_ALLOWED : ")


@pytest.mark.parametrize("path, headers, status", [
    ("v1/accounts:signUp", {}, 403),
    ("v1/accounts:signUp?key=x", {"Authorization": "Bearer stranger"}, 401),
    (f"v1/projects/{PROJECT}/accounts:batchDelete?key=x", {}, 401),
    (f"v1/projects/{PROJECT}/accounts:query?key=x", {}, 401),
    ("v1/projects/other-project/accounts:lookup", {"Authorization": "Bearer owner"}, 404),
    ("v1/accounts:nonsense?key=x", {}, 404),
    ("v1/signUp?key=x", {}, 404),
    (f"v1/projects/{PROJECT}/signUp/zzz?key=x", {}, 404),
])
def test_credentials_and_paths(host, path, headers, status):
    reply = requests.post(f"http://{host}/identitytoolkit.googleapis.com/{path}", json={},
                          headers=headers, timeout=30)
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]["code"] == status


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"email": 7}', b'{"idToken": {}}', b"\xff",
                                  b'{"users": [{"localId": 1}]}'])
def test_malformed_bodies(host, body):
    reply = requests.post(f"http://{host}/identitytoolkit.googleapis.com/v1/accounts:signUp?key=x",
                          data=body, timeout=30)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith("Invalid JSON payload received.")


def test_pages_of_other_sites_are_refused(host):
    url = f"http://{host}/identitytoolkit.googleapis.com/v1/accounts:signUp?key=x"
    foreign = requests.post(url, json={}, headers={"Origin": "https://evil.example"}, timeout=30)
    assert foreign.status_code == 403
    own = requests.options(url, timeout=30, headers={
        "Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-client-version"})
    assert own.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
    assert own.headers["Access-Control-Allow-Headers"] == "content-type,x-client-version"


def test_texts_that_look_alike_are_one_address(client):
    """Unicode writes an accented letter in two ways; both are the same mailbox and the same user."""
    tag = uuid.uuid4().hex
    composed, decomposed = f"{tag}caf\u00e9@e.example", f"{tag}cafe\u0301@e.example"
    user = client.sign_up(decomposed)
    assert user["email"] == composed
    assert client.error("signUp", {"email": composed, "password": "secret1"}) == "EMAIL_EXISTS"
    assert client.ok("signInWithPassword", {"email": composed, "password": "secret1"})[
        "localId"] == user["localId"]


def test_a_uid_is_in_composed_form(app):
    with pytest.raises(firebase_admin.exceptions.InvalidArgumentError):
        auth.create_user(uid="e\u0301", app=app)
    result = auth.import_users([auth.ImportUserRecord(uid="e\u0301")], app=app)
    assert result.failure_count == 1


@pytest.mark.parametrize("email", ["a@\u0301b@e.example", "a@b\u0600@e.example", "a b@e.example",
                                   "a\u200b@e.example", "@e.example", "a@"])
def test_malformed_addresses(client, email):
    assert client.error("signUp", {"email": email, "password": "secret1"}) == "INVALID_EMAIL"


def test_a_user_does_not_take_anothers_account_at_a_provider(client):
    user = client.sign_up()
    link = {"providerId": "google.com", "rawId": "somebody"}
    assert client.error("update", {"idToken": user["idToken"], "linkProviderUserInfo": link}) == (
        "INSUFFICIENT_PERMISSION")


def test_a_code_is_for_its_user_only(client, app):
    """Somebody asks for a code, gives the address up, and its owner signs up."""
    email, stolen = address(), address()
    first = client.sign_up(email)
    client.ok("sendOobCode", {"requestType": "VERIFY_AND_CHANGE_EMAIL", "newEmail": stolen,
                              "idToken": first["idToken"]})
    code = client.codes(email)[0]["oobCode"]
    client.ok("delete", {"idToken": first["idToken"]})
    owner = client.sign_up(email)
    assert client.error("update", {"oobCode": code}) == "INVALID_OOB_CODE"
    assert auth.get_user(owner["localId"], app=app).email == email


def test_a_code_that_failed_can_be_used_again(client, app):
    email, wanted = address(), address()
    user = client.sign_up(email)
    client.ok("sendOobCode", {"requestType": "VERIFY_AND_CHANGE_EMAIL", "newEmail": wanted,
                              "idToken": user["idToken"]})
    code = client.codes(email)[0]["oobCode"]
    other = client.sign_up(wanted)
    assert client.error("update", {"oobCode": code}) == "EMAIL_EXISTS"
    auth.delete_user(other["localId"], app=app)
    assert client.ok("update", {"oobCode": code})["email"] == wanted


def test_a_sign_in_link_removes_what_a_stranger_has_set(client):
    email = address()
    stranger = client.sign_up(email)
    time.sleep(1.1)  # Tokens and revocations have whole seconds.
    client.ok("sendOobCode", {"requestType": "EMAIL_SIGNIN", "email": email})
    owner = client.ok("signInWithEmailLink", {
        "email": email, "oobCode": client.codes(email)[0]["oobCode"]})
    assert owner["localId"] == stranger["localId"]
    assert client.error("signInWithPassword", {"email": email, "password": "secret1"}) == (
        "INVALID_PASSWORD")
    assert client.refresh(stranger["refreshToken"]).json()["error"]["message"] == "TOKEN_EXPIRED"


@pytest.mark.parametrize("body, message", [
    ({"displayName": "d" * 13_000}, "INVALID_PROFILE_ATTRIBUTE"),
    ({"photoUrl": "https://e.example/" + "p" * 3000}, "INVALID_PROFILE_ATTRIBUTE"),
])
def test_profiles_fit_into_tokens(client, body, message):
    user = client.sign_up()
    assert client.error("update", {"idToken": user["idToken"], **body}).startswith(message)


def test_other_requests_are_served_while_passwords_are_hashed(suite, client, host):
    users = [{"localId": uuid.uuid4().hex, "rawPassword": "secret1"} for _ in range(200)]

    def upload(_):
        return requests.post(
            f"http://{host}/identitytoolkit.googleapis.com/v1/projects/{PROJECT}"
            "/accounts:batchCreate", json={"users": users, "allowOverwrite": True},
            headers={"Authorization": "Bearer owner"}, timeout=110)

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        uploads = [threads.submit(upload, n) for n in range(4)]
        served = 0
        while not all(upload.done() for upload in uploads):
            reply = requests.get(f"http://{suite.address('firestore')}/", timeout=10)
            served += reply.status_code == 200
    assert all(upload.result().status_code == 200 for upload in uploads)
    assert served > 20


@pytest.mark.parametrize("name", ["Ärzte@bücher.example", "用户@例え.jp", "o'neil+tag@e.example",
                                  '"quoted"@e.example', "x" * 200 + "@e.example"])
def test_addresses_in_every_script(client, name):
    email = f"{uuid.uuid4().hex}{name}"
    user = client.sign_up(email)
    assert user["email"] == email.lower()
    assert client.ok("signInWithPassword", {"email": email.upper(), "password": "secret1"})[
        "localId"] == user["localId"]


def test_the_root_says_that_it_is_ready(host):
    assert requests.get(f"http://{host}/", timeout=30).json()["authEmulator"]["ready"] is True


def test_after_a_kill_each_user_is_whole_or_not_there(tmp_path):
    options = ("--no-functions", "--data", str(tmp_path / "data"))
    emails = [address() for _ in range(200)]
    acknowledged = {}

    def sign_up(client, email):
        with contextlib.suppress(requests.RequestException):
            reply = client.post("signUp", {"email": email, "password": "secret1"})
            if reply.status_code == 200:
                acknowledged[email] = reply.json()

    with contextlib.suppress(AssertionError):  # The suite does not end with 0.
        with conftest.started(tmp_path, *options, ephemeral=False) as suite:
            client = Client(suite.address("auth"))
            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                for email in emails:
                    threads.submit(sign_up, client, email)
                conftest.until(lambda: len(acknowledged) > 20, "nobody signs up")
                suite.process.kill()

    assert 20 < len(acknowledged) < 200
    with conftest.started(tmp_path, *options, ephemeral=False) as suite:
        client = Client(suite.address("auth"))
        for email in emails:
            reply = client.post("signInWithPassword", {"email": email, "password": "secret1"})
            if email in acknowledged:
                assert reply.json()["localId"] == acknowledged[email]["localId"]
            elif reply.status_code != 200:
                assert reply.json()["error"]["message"] == "EMAIL_NOT_FOUND"
                client.sign_up(email)
        token = next(iter(acknowledged.values()))["refreshToken"]
        assert client.refresh(token).status_code == 200


def test_a_token_of_another_data_folder_is_refused(client, tmp_path):
    with conftest.started(tmp_path, "--no-functions") as other:
        token = Client(other.address("auth")).sign_up()["refreshToken"]
    assert client.refresh(token).json()["error"]["message"] == "INVALID_REFRESH_TOKEN"
