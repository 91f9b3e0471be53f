"""A suite's REST APIs: Firestore, Auth and the hub, with errors of one line."""

import base64
import datetime
import http.client
import json
import os
import threading

OWNER = {"Authorization": "Bearer owner", "Content-Type": "application/json"}
WRITES_MAX = 400  # in one request
BYTES_MAX = 4_000_000  # of one request, well below Firestore's ten megabytes
HUB = "127.0.0.1:4400"
START = (
    "start one with `make start`, or run this as `hearth exec -- python3 "
    "Sources/Tooling/Sample/sample.py`; --firestore and --auth name other addresses")


class SuiteError(Exception):
    """What went wrong and what to do, in one line."""


class Server:
    """A server that is asked with JSON, over one connection for each thread."""

    def __init__(self, name, address, timeout=120):
        self.name = name
        self.address = address
        host, _, port = address.replace("http://", "").rpartition(":")
        if not host or not port.isdigit():
            raise SuiteError(f"The address of {name} is {address!r}; give HOST:PORT.")
        self.host, self.port, self.timeout = host.strip("[]"), int(port), timeout
        self.local = threading.local()

    def request(self, method, path, body=None, headers=OWNER):
        """Sends a request and returns the status and the response's JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode()
        for attempt in range(2):
            connection = getattr(self.local, "connection", None)
            is_new = connection is None
            if is_new:
                connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
                self.local.connection = connection
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                data = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.local.connection = None
                # A kept connection may have been closed in the meantime; sets can be repeated.
                if is_new or attempt:
                    reason = getattr(error, "strerror", None) or str(error) or "no response"
                    raise SuiteError(
                        f"No suite responds at {self.address} ({self.name}: {reason}); {START}."
                    ) from error
        try:
            return response.status, json.loads(data or b"{}")
        except ValueError as error:
            raise SuiteError(
                f"{self.address} does not speak {self.name}'s protocol; {START}.") from error

    def ask(self, method, path, body=None, headers=OWNER):
        """Sends a request that must succeed and returns the response's JSON."""
        status, answer = self.request(method, path, body, headers)
        if status != 200:
            error = answer.get("error", answer) if isinstance(answer, dict) else answer
            message = error.get("message", error) if isinstance(error, dict) else error
            raise SuiteError(f"{self.name} at {self.address} refused {path}: {status}, {message}")
        return answer


class Firestore(Server):
    def __init__(self, address, project):
        super().__init__("Firestore", address)
        self.root = f"projects/{project}/databases/(default)/documents"

    def check(self):
        """Fails unless a Firestore serves the project."""
        self.request("GET", f"/v1/{self.root}/users/nobody")

    def write(self, documents, writes_max=WRITES_MAX, progress=lambda count: None):
        """Sets documents, given as pairs of path and fields, in order."""
        batch, size = [], 0
        for path, fields in documents:
            write = json.dumps(
                {"update": {"name": f"{self.root}/{path}", "fields": encoded(fields)}},
                ensure_ascii=False)
            if batch and (len(batch) == writes_max or size + len(write) > BYTES_MAX):
                self.commit(batch)
                progress(len(batch))
                batch, size = [], 0
            batch.append(write)
            size += len(write)
        if batch:
            self.commit(batch)
            progress(len(batch))

    def commit(self, writes):
        """Makes writes that are JSON texts already."""
        body = '{"writes":[' + ",".join(writes) + "]}"
        self.ask("POST", f"/v1/{self.root}:commit", body.encode())


class Auth(Server):
    def __init__(self, address, project):
        super().__init__("Auth", address)
        self.path = f"/identitytoolkit.googleapis.com/v1/projects/{project}/accounts"

    def import_accounts(self, accounts):
        """Writes accounts with given uids, replacing those of the same uid; fires no function."""
        answer = self.ask("POST", f"{self.path}:batchCreate",
                          {"users": accounts, "allowOverwrite": True})
        for error in answer.get("error") or []:
            uid = accounts[error.get("index", 0)]["localId"]
            raise SuiteError(f"Auth did not take the account {uid}: {error.get('message')}")


class Hub(Server):
    """The hub, through which triggers are switched off and events are awaited."""

    def __init__(self, address):
        super().__init__("the hub", address)
        token = os.environ.get("HEARTH_TOKEN", "")
        self.authorized = {"Authorization": f"Bearer {token}"} if token else None

    def addresses(self):
        """The addresses of the suite's services, by name."""
        found = self.ask("GET", "/emulators", headers={})
        return {name: f"{e['host']}:{e['port']}" for name, e in found.items()}

    def set_triggers(self, enabled):
        verb = "enable" if enabled else "disable"
        self.ask("PUT", f"/functions/{verb}BackgroundTriggers", headers={})

    def has_functions(self):
        """Whether functions are deployed; true if it may not ask."""
        if self.authorized is None:
            return True
        return bool(self.ask("GET", "/hearth/v1/functions", headers=self.authorized))

    def settle(self, seconds=100):
        """Waits until events are delivered; false if it may not ask or it takes longer."""
        if self.authorized is None:
            return False
        status, _ = self.request("POST", f"/hearth/v1/settle?timeoutSeconds={seconds}",
                                 headers=self.authorized)
        return status == 200


def find_hub():
    """The hub of the environment, or that of the usual port; none if nobody is there."""
    address = os.environ.get("FIREBASE_EMULATOR_HUB")
    try:
        hub = Hub(address or HUB)
        return hub, hub.addresses()
    except SuiteError:
        if address:
            raise
        return None, {}


def encoded(fields):
    """A document's fields in Firestore's JSON."""
    return {name: value_json(value) for name, value in fields.items()}


def value_json(value):
    if value is None:
        return {"nullValue": None}
    if isinstance(value, bool):
        return {"booleanValue": value}
    if isinstance(value, int):
        return {"integerValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime):
        return {"timestampValue": timestamp(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [value_json(element) for element in value]}}
    return {"mapValue": {"fields": encoded(value)}}


def timestamp(time):
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
