"""A functions binary with the environment of production, against Google's addresses over TLS.

Google is a stub with certificates of its own authority, reached through a proxy: it gives tokens,
and Firestore is the suite's, behind a port that takes no other credentials than these tokens.
"""

import datetime
import http.server
import json
import os
import select
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import urllib.parse

import jwt
import pytest
import requests
from conftest import CONFIGURATION, ROOT, free_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.types import Document

# Not one of those that begin with demo-, which never leave the emulator.
PROJECT = "psst-4711"
HOSTS = ["firestore.googleapis.com", "oauth2.googleapis.com"]
ACCOUNT = f"psst@{PROJECT}.iam.gserviceaccount.com"
TOKEN_ADDRESS = "https://oauth2.googleapis.com/token"


def new_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption())


def certificate(subject, key, issuer, issuer_key, names=None):
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)]),
        key.public_key(), x509.random_serial_number(),
        now - datetime.timedelta(hours=1), now + datetime.timedelta(hours=1))
    if names is None:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
    else:
        names = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        builder = builder.add_extension(names, False)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class Tunnel(socketserver.StreamRequestHandler):
    """A proxy that leads Google's addresses to the stub, and no others anywhere."""

    def handle(self):
        host = self.rfile.readline().decode().split()[1].removesuffix(":443")
        while self.rfile.readline().strip():
            pass
        if host not in HOSTS:
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            return
        with socket.create_connection(self.server.target) as stub:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            ends = {self.connection: stub, stub: self.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)


class Google:
    """The stub: what it has issued, what it refuses, and who asked."""

    def __init__(self, folder, backend):
        self.backend = backend
        self.key = new_key()
        self.faults = []
        self.grants = []
        self.tokens = []
        self.lock = threading.Lock()
        authority, own = new_key(), new_key()
        self.authority = folder / "ca.pem"
        self.authority.write_bytes(certificate("Stub CA", authority, "Stub CA", authority))
        (folder / "stub.pem").write_bytes(
            pem(own) + certificate("stub", own, "Stub CA", authority, HOSTS))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "stub.pem")
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.answer(stub.metadata(self.path, self.headers))

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_token = self.headers["Host"] == "oauth2.googleapis.com"
                answer = stub.token(body) if is_token else stub.forward(self, body)
                self.answer(answer)

            def answer(self, answer):
                status, body = answer
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.secure.socket = context.wrap_socket(self.secure.socket, server_side=True)
        self.proxy = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tunnel)
        self.proxy.target = self.secure.server_address
        self.servers = [self.plain, self.secure, self.proxy]
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def issue(self, grant):
        with self.lock:
            self.grants.append(grant)
            if self.faults:
                return self.faults.pop(0), b'{"error": "temporarily_unavailable"}'
            self.tokens.append(f"ya29.secret-{len(self.tokens)}")
            answer = {"access_token": self.tokens[-1], "expires_in": 3599, "token_type": "Bearer"}
            return 200, json.dumps(answer).encode()

    def token(self, body):
        form = dict(urllib.parse.parse_qsl(body.decode()))
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        claims = jwt.decode(
            form["assertion"], self.key.public_key(), algorithms=["RS256"], audience=TOKEN_ADDRESS)
        assert jwt.get_unverified_header(form["assertion"])["kid"] == "key-1"
        assert claims["exp"] - claims["iat"] == 3600
        assert claims["scope"].split(" ") == [
            f"https://www.googleapis.com/auth/{scope}"
            for scope in ("cloud-platform", "firebase.database", "userinfo.email")]
        return self.issue(claims["iss"])

    def metadata(self, path, headers):
        if headers["Metadata-Flavor"] != "Google":
            return 403, b""
        assert path.startswith("/computeMetadata/v1/instance/service-accounts/default/token?")
        return self.issue("metadata")

    def forward(self, request, body):
        with self.lock:
            token = self.tokens[-1] if self.tokens else None
        if request.headers["Authorization"] != f"Bearer {token}":
            return 401, b'{"error": {"code": 401, "message": "No.", "status": "UNAUTHENTICATED"}}'
        reply = requests.post(
            f"http://{self.backend}{request.path}", data=body, timeout=30,
            headers={"Authorization": "Bearer owner", "Content-Type": "application/json"})
        return reply.status_code, reply.content

    def revoke(self):
        with self.lock:
            self.tokens.append("ya29.nobody-has-it")

    def key_file(self, folder):
        path = folder / "key.json"
        path.write_text(json.dumps({
            "type": "service_account", "project_id": PROJECT, "private_key_id": "key-1",
            "private_key": pem(self.key).decode(), "client_email": ACCOUNT,
            "token_uri": TOKEN_ADDRESS}))
        return str(path)


class Worker:
    """Psst's function that records contacts, as Cloud Run would start it."""

    def __init__(self, google, log, **environment):
        port = free_port()
        self.address = f"http://127.0.0.1:{port}/"
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [str(ROOT / ".build" / CONFIGURATION / "psst-functions")],
                stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                env={
                    "PATH": os.environ["PATH"], "PORT": str(port),
                    "FUNCTION_TARGET": "recordContact", "FUNCTION_SIGNATURE_TYPE": "cloudevent",
                    "K_SERVICE": "recordcontact",
                    "HTTPS_PROXY": f"http://127.0.0.1:{google.proxy.server_address[1]}",
                    **environment})
        google.workers.append(self)
        deadline = time.monotonic() + 20
        while True:
            assert self.process.poll() is None and time.monotonic() < deadline, log.read_text()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)

    def written(self, message):
        """Sends the worker the event of a new message; the status of its answer."""
        document = Document.serialize(Document(
            name=f"projects/{PROJECT}/databases/(default)/documents/{message}"))
        length = len(document)
        body = b"\x0a" + bytes([length & 127 | 128, length >> 7] if length > 127 else [length])
        return requests.post(self.address, data=body + document, timeout=60, headers={
            "Content-Type": "application/protobuf", "ce-specversion": "1.0", "ce-id": message,
            "ce-type": "google.cloud.firestore.document.v1.written",
            "ce-source": f"//firestore.googleapis.com/projects/{PROJECT}/databases/(default)",
            "ce-subject": f"documents/{message}", "ce-time": "2026-11-21T07:00:00Z",
            "ce-database": "(default)", "ce-namespace": "(default)", "ce-project": PROJECT,
            "ce-location": "nam5", "ce-document": message}).status_code

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=15)
        return self.log.read_text()


@pytest.fixture()
def google(tmp_path, suite):
    stub = Google(tmp_path, suite.address("firestore"))
    stub.workers = []
    yield stub
    # A test that fails leaves its worker running.
    for worker in stub.workers:
        worker.stop()
    stub.stop()


@pytest.fixture()
def chat(suite):
    """Makes a chat and messages in it; tells when the chat was last changed."""
    os.environ["FIRESTORE_EMULATOR_HOST"] = suite.address("firestore")
    db = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
    name = f"c{time.monotonic_ns()}"
    for uid, role in [("tina", "trainer"), ("carl", "client")]:
        db.document(f"users/{uid}").set({"uid": uid, "displayName": uid, "role": role})
    chat = db.document(f"chats/{name}")
    chat.set({"id": name, "members": ["tina", "carl"], "isGroupChat": False})

    def message(number):
        path = f"chats/{name}/messages/m{number}"
        db.document(path).set({
            "id": f"m{number}", "text": "hello", "senderID": "carl", "readBy": ["carl"],
            "timestamp": datetime.datetime(2026, 11, 21, 7, number)})
        return path

    message.changed = lambda: chat.get().update_time
    return message


def test_a_key_file(google, chat, tmp_path):
    google.faults = [503, 500]
    worker = Worker(
        google, tmp_path / "log", SSL_CERT_FILE=str(google.authority),
        GOOGLE_APPLICATION_CREDENTIALS=google.key_file(tmp_path))
    before = chat.changed()
    assert worker.written(chat(1)) // 100 == 2, worker.log.read_text()
    assert chat.changed() > before
    # Two failures, then one token for all that the function read and wrote.
    assert google.grants == [ACCOUNT] * 3
    assert worker.written(chat(2)) // 100 == 2
    assert len(google.grants) == 3

    google.revoke()
    assert worker.written(chat(3)) // 100 == 2
    assert len(google.grants) == 4
    log = worker.stop()
    assert "ya29" not in log and "PRIVATE" not in log and "assertion" not in log


def test_the_metadata_server(google, chat, tmp_path):
    worker = Worker(
        google, tmp_path / "log", SSL_CERT_FILE=str(google.authority),
        GCE_METADATA_HOST=f"127.0.0.1:{google.plain.server_address[1]}",
        GOOGLE_CLOUD_PROJECT=PROJECT)
    before = chat.changed()
    assert worker.written(chat(1)) // 100 == 2, worker.log.read_text()
    assert chat.changed() > before
    assert google.grants == ["metadata"]
    worker.stop()


def test_strangers_are_not_trusted(google, chat, tmp_path):
    worker = Worker(
        google, tmp_path / "log", GOOGLE_APPLICATION_CREDENTIALS=google.key_file(tmp_path))
    before = chat.changed()
    assert worker.written(chat(1)) >= 500
    assert chat.changed() == before
    assert google.grants == []
    assert "oauth2.googleapis.com" in worker.stop()
