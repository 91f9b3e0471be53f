"""A phone's side of Firestore's streams: what it says, what it believes, and what it insists on.

A `Phone` has a Listen stream and believes what it is told as the SDKs for Apple, Android and the
web do; a `Writer` has a Write stream. A `Conversation` runs steps, each of which is one of the
functions below that are `spoken`.
"""

import collections
import dataclasses
import functools
import hashlib
import queue
import struct
import threading
import typing

import grpc
import requests
from google.cloud.firestore_v1 import types

PROJECT = "demo-psst"
# How long an answer may take, in seconds.
WAIT = 20
# Whether it counts how little is told, and not only what snapshots show.
CHECKS_WHAT_IS_TOLD = True

ListenRequest = types.ListenRequest.pb()
ListenResponse = types.ListenResponse.pb()
WriteRequest = types.WriteRequest.pb()
WriteResponse = types.WriteResponse.pb()
CommitRequest = types.CommitRequest.pb()
CommitResponse = types.CommitResponse.pb()
BatchGetDocumentsRequest = types.BatchGetDocumentsRequest.pb()
BatchGetDocumentsResponse = types.BatchGetDocumentsResponse.pb()
Write = types.Write.pb()
ChangeType = types.TargetChange.pb().TargetChangeType


# Transport


class Ended(Exception):
    """The end of a stream or of a call that failed, with its status."""

    def __init__(self, code, message=""):
        super().__init__(f"{code} {message}".strip())
        self.code = code
        self.message = message


class Stream:
    """A stream in both directions; what arrives is kept until it is asked for."""

    def __init__(self):
        self.incoming = queue.Queue()

    def receive(self):
        """The next message; raises `Ended` after the last one."""
        try:
            message = self.incoming.get(timeout=WAIT)
        except queue.Empty:
            raise AssertionError(f"nothing came within {WAIT} seconds") from None
        if isinstance(message, Ended):
            raise message
        return message


class GRPCStream(Stream):
    """A stream of gRPC."""

    def __init__(self, call, outgoing):
        super().__init__()
        self.call = call
        self.outgoing = outgoing
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for message in self.call:
                self.incoming.put(message)
            self.incoming.put(Ended("OK"))
        except grpc.RpcError as error:
            self.incoming.put(Ended(error.code().name, error.details()))

    def send(self, message):
        self.outgoing.put(message)

    def half_close(self):
        self.outgoing.put(None)

    def cancel(self):
        self.call.cancel()
        self.outgoing.put(None)


class GRPCTransport:
    """Streams and calls over one gRPC connection."""

    SERVICE = "/google.firestore.v1.Firestore"

    def __init__(self, address):
        self.address = address
        self.channel = grpc.insecure_channel(address)

    def metadata(self, _database):
        """What goes beside the messages of a stream that is for a database."""
        return ()

    def stream(self, method, request, response, database):
        call = self.channel.stream_stream(
            f"{self.SERVICE}/{method}", request.SerializeToString, response.FromString)
        outgoing = queue.Queue()
        requests = iter(outgoing.get, None)
        return GRPCStream(call(requests, metadata=self.metadata(database)), outgoing)

    def call(self, method, request, response):
        """The answers to one request; raises `Ended` when it fails."""
        call = self.channel.unary_stream(
            f"{self.SERVICE}/{method}", type(request).SerializeToString, response.FromString)
        try:
            return list(call(request, timeout=WAIT))
        except grpc.RpcError as error:
            raise Ended(error.code().name, error.details()) from None

    def close(self):
        self.channel.close()


# Phrases


class Phrase(typing.NamedTuple):
    """A function whose first argument is given later: a database's name or a conversation."""

    function: typing.Callable
    arguments: tuple
    options: dict

    def __call__(self, first):
        return self.function(first, *self.arguments, **self.options)

    def __repr__(self):
        options = [f"{name}={value!r}" for name, value in self.options.items()]
        return f"{self.function.__name__}({', '.join([*map(repr, self.arguments), *options])})"


def spoken(function):
    """Lets a function be said now and done later."""

    @functools.wraps(function)
    def say(*arguments, **options):
        return Phrase(function, arguments, options)

    return say


# Names and values


class Time(typing.NamedTuple):
    seconds: int
    nanos: int

    @classmethod
    def of(cls, timestamp):
        return cls(timestamp.seconds, timestamp.nanos)

    def proto(self):
        return {"seconds": self.seconds, "nanos": self.nanos}


def full_name(database, path):
    if path.startswith("projects/"):
        return path
    return f"{database}/documents/{path}" if path else f"{database}/documents"


@spoken
def reference(database, path):
    """A value that refers to a document."""
    return {"reference_value": full_name(database, path)}


def encoded(value, database):
    match value:
        case Phrase():
            return value(database)
        case None:
            return {"null_value": 0}
        case bool():
            return {"boolean_value": value}
        case int():
            return {"integer_value": value}
        case float():
            return {"double_value": value}
        case str():
            return {"string_value": value}
        case list():
            return {"array_value": {"values": [encoded(one, database) for one in value]}}
        case dict():
            fields = {name: encoded(one, database) for name, one in value.items()}
            return {"map_value": {"fields": fields}}
    raise TypeError(f"no Firestore value: {value!r}")


def decoded(value):
    kind = value.WhichOneof("value_type")
    match kind:
        case "null_value":
            return None
        case "array_value":
            return [decoded(one) for one in value.array_value.values]
        case "map_value":
            return {name: decoded(one) for name, one in value.map_value.fields.items()}
        case "timestamp_value":
            return Time.of(value.timestamp_value)
    return getattr(value, kind)


# Targets

OPERATORS = {
    "<": "LESS_THAN", "<=": "LESS_THAN_OR_EQUAL", ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL", "==": "EQUAL", "!=": "NOT_EQUAL", "in": "IN",
    "not-in": "NOT_IN", "array-contains": "ARRAY_CONTAINS",
    "array-contains-any": "ARRAY_CONTAINS_ANY",
}


class Composite(typing.NamedTuple):
    operator: str
    filters: tuple


def all_of(*filters):
    return Composite("AND", filters)


def any_of(*filters):
    return Composite("OR", filters)


def filter_proto(condition, database):
    if isinstance(condition, Composite):
        filters = [filter_proto(one, database) for one in condition.filters]
        return {"composite_filter": {"op": condition.operator, "filters": filters}}
    path, operator, operand = condition
    field = {"field_path": path}
    if operand is None:
        name = {"==": "IS_NULL", "!=": "IS_NOT_NULL"}[operator]
        return {"unary_filter": {"op": name, "field": field}}
    return {"field_filter": {
        "field": field, "op": OPERATORS.get(operator, operator),
        "value": encoded(operand, database)}}


def inequality_paths(condition):
    if isinstance(condition, Composite):
        return set().union(*map(inequality_paths, condition.filters))
    path, operator, _ = condition
    return {path} if operator in ("<", "<=", ">", ">=", "!=", "not-in") else set()


@spoken
def query(database, collection, *, parent="", group=False, where=None, order_by=(), limit=None,
          offset=0, start_at=None, start_after=None, end_at=None, end_before=None, select=None):
    """A query's target; as the SDKs do, it spells out orders that are implied."""
    orders = list(order_by)
    sign = "-" if orders and orders[-1].startswith("-") else ""
    ordered = {order.lstrip("-") for order in orders}
    inequalities = inequality_paths(where) if where else set()
    for path in [*sorted(inequalities - {"__name__"}), "__name__"]:
        if path not in ordered:
            orders.append(sign + path)
    structured = {
        "from_": [] if collection is None else [
            {"collection_id": collection, "all_descendants": group}],
        "order_by": [
            {"field": {"field_path": order.lstrip("-")},
             "direction": "DESCENDING" if order.startswith("-") else "ASCENDING"}
            for order in orders],
        "offset": offset,
    }
    if where is not None:
        structured["where"] = filter_proto(where, database)
    if select is not None:
        structured["select"] = {"fields": [{"field_path": path} for path in select]}
    if limit is not None:
        structured["limit"] = {"value": limit}
    for bound, values, before in (
            ("start_at", start_at, True), ("start_at", start_after, False),
            ("end_at", end_at, False), ("end_at", end_before, True)):
        if values is not None:
            structured[bound] = {
                "values": [encoded(value, database) for value in values], "before": before}
    return {"query": {"parent": full_name(database, parent), "structured_query": structured}}


@spoken
def documents(database, *paths):
    """A target of documents."""
    return {"documents": {"documents": [full_name(database, path) for path in paths]}}


@spoken
def malformed(database, **target):
    """A target as it is said."""
    return target


# Writes


class Transform(typing.NamedTuple):
    kind: str
    value: typing.Any


SERVER_TIMESTAMP = Transform("set_to_server_value", None)


def increment(value):
    return Transform("increment", value)


def maximum(value):
    return Transform("maximum", value)


def array_union(*values):
    return Transform("append_missing_elements", list(values))


def array_remove(*values):
    return Transform("remove_all_from_array", list(values))


def transform_proto(path, transform, database):
    if transform is SERVER_TIMESTAMP:
        return {"field_path": path, transform.kind: "REQUEST_TIME"}
    value = encoded(transform.value, database)
    return {"field_path": path, transform.kind: value.get("array_value", value)}


@dataclasses.dataclass(frozen=True)
class DocumentWrite:
    """One write, in the form that the SDKs give it."""

    path: str
    kind: str
    fields: dict = dataclasses.field(default_factory=dict)
    precondition: typing.Any = None

    def as_read(self):
        """Only when the document is as the conversation has last read it."""
        return dataclasses.replace(self, precondition="as read")

    def if_exists(self, exists):
        return dataclasses.replace(self, precondition={"exists": exists})

    def proto(self, database, reads):
        name = full_name(database, self.path)
        write = Write()
        if self.kind == "delete":
            write.delete = name
        elif self.kind == "verify":
            # Google's Python types lack this field of the SDKs, number 5.
            text = name.encode()
            assert len(text) < 128
            write.MergeFromString(bytes([5 << 3 | 2, len(text)]) + text)
        else:
            self._update(write, name, database)
        precondition = self.precondition
        if precondition == "as read":
            version = reads[name]
            precondition = {"update_time": version.proto()} if version else {"exists": False}
        if precondition:
            write.MergeFrom(Write(current_document=precondition))
        return write

    def _update(self, write, name, database):
        values = {path: value for path, value in self.fields.items()
                  if not isinstance(value, Transform)}
        write.MergeFrom(Write(
            update={"name": name, "fields": encoded(values, database)["map_value"]["fields"]},
            update_transforms=[
                transform_proto(path, value, database) for path, value in self.fields.items()
                if isinstance(value, Transform)]))
        if self.kind in ("update", "merge"):
            write.update_mask.SetInParent()
            write.update_mask.field_paths.extend(values)


class doc(typing.NamedTuple):
    """A document, by its path."""

    path: str

    def set(self, **fields):
        return DocumentWrite(self.path, "set", fields)

    def merge(self, **fields):
        return DocumentWrite(self.path, "merge", fields)

    def create(self, **fields):
        return DocumentWrite(self.path, "set", fields, {"exists": False})

    def update(self, **fields):
        return DocumentWrite(self.path, "update", fields, {"exists": True})

    def delete(self):
        return DocumentWrite(self.path, "delete")

    def verify(self):
        return DocumentWrite(self.path, "verify")


# Listening


class Target:
    """What a phone believes of one target."""

    def __init__(self, request):
        self.request = request
        # Answers that are due, in order. While there are any, documents are not believed.
        self.due = []
        self.is_added = False
        self.is_current = False
        self.cause = None
        # What was told, and what of it a snapshot has made true.
        self.documents = {}
        self.shown = {}
        self.told_token = b""
        self.token = b""
        self.read_time = None
        self.mismatch = None

    def begin(self):
        """Goes on with what the last snapshot showed."""
        self.documents = dict(self.shown)
        self.told_token = self.token
        self.is_current = False
        self.cause = None
        self.mismatch = None


def might_contain(bloom, name):
    """Whether a bloom filter may have a name, computed as the SDKs do."""
    bitmap, padding = bloom.bits.bitmap, bloom.bits.padding
    first, second = struct.unpack("<QQ", hashlib.md5(name.encode()).digest())
    bits = 8 * len(bitmap) - padding
    places = ((first + i * second) % 2**64 % bits for i in range(bloom.hash_count))
    return all(bitmap[place // 8] >> place % 8 & 1 for place in places)


class Phone:
    """A Listen stream's client, which survives its streams."""

    def __init__(self, database):
        self.database = database
        self.stream = None
        self.targets = {}
        # The server's choice for a target whose id was 0.
        self.chosen = {}
        self.read_time = Time(0, 0)
        # What each global snapshot has shown, until it is expected.
        self.views = collections.deque()
        self.last_view = {}
        # What was told of documents since a snapshot was last expected.
        self.told = []
        # When documents were deleted, by path.
        self.deletions = {}
        self.log = []

    def connect(self, transport):
        self.stream = transport.stream("Listen", ListenRequest, ListenResponse, self.database)

    def lose(self):
        """Takes note that the stream is no more; what the last snapshot showed is kept."""
        self.stream = None
        self.views.clear()
        self.last_view = {}
        self.told = []
        for target in self.targets.values():
            target.due = []
            target.is_added = False
            target.begin()

    def next_view(self):
        """What the next snapshot shows of the targets that are current."""
        while not self.views:
            self.receive()
        return self.views.popleft()

    def say(self, **request):
        message = ListenRequest(**{"database": self.database, **request})
        self.log.append((">", message))
        self.stream.send(message)

    def listen(self, number, target, **options):
        labels = options.pop("labels", {})
        due = self.targets[number].due if number in self.targets else []
        is_added = number in self.targets and self.targets[number].is_added
        if not isinstance(target, Target):
            target = Target(target)
        target.begin()
        target.due = [*due, "ADD"]
        target.is_added = is_added
        self.targets[number] = target
        self.last_view.pop(number, None)
        self.say(add_target={**target.request, "target_id": number, **options}, labels=labels)

    def unlisten(self, number):
        number = self.chosen.get(number, number)
        self.targets.setdefault(number, Target({})).due.append("REMOVE")
        self.say(remove_target=number)

    def target(self, number):
        return self.targets[self.chosen.get(number, number)]

    def path(self, name):
        root = f"{self.database}/documents/"
        assert name.startswith(root), f"{name} is not of {self.database}"
        return name[len(root):]

    def receive(self):
        """Takes one message, which must be as the contract says, and believes it."""
        message = self.stream.receive()
        self.log.append(("<", message))
        kind = message.WhichOneof("response_type")
        assert kind, "an empty message"
        getattr(self, f"_{kind}")(getattr(message, kind))

    def _target_change(self, change):
        kind = ChangeType.Name(change.target_change_type)
        assert not change.cause.code or kind == "REMOVE", f"{kind} with a cause"
        getattr(self, f"_{kind.lower()}")(change)

    def _add(self, change):
        [number] = change.target_ids
        if number not in self.targets:
            assert self.targets.get(0) and self.targets[0].due, f"ADD of {number}: not asked for"
            self.chosen[0] = number
            self.targets[number] = self.targets.pop(0)
        target = self.targets[number]
        assert target.due[:1] == ["ADD"], f"ADD of {number}; due is {target.due}"
        target.due.pop(0)
        target.is_added = True
        target.is_current = False

    def _remove(self, change):
        assert change.target_ids, "REMOVE names no target"
        for number in change.target_ids:
            target = self.targets.get(number)
            assert target, f"REMOVE of {number}, which was never a target"
            if change.cause.code:
                target.cause = change.cause
                if target.due[:1] == ["ADD"]:
                    target.due.pop(0)
            elif not ("once" in target.request and target.is_current):
                assert target.due[:1] == ["REMOVE"], f"REMOVE of {number}; due is {target.due}"
                target.due.pop(0)
            target.is_added = False
            target.is_current = False

    def _current(self, change):
        assert change.target_ids, "CURRENT names no target"
        assert change.resume_token, "CURRENT has no resume token"
        assert change.HasField("read_time"), "CURRENT has no read time"
        for number in change.target_ids:
            target = self._active(number, "CURRENT")
            if target.due:
                continue
            assert not target.is_current, f"{number} is CURRENT twice"
            target.is_current = True
            target.told_token = change.resume_token

    def _reset(self, change):
        assert change.target_ids, "RESET names no target"
        for number in change.target_ids:
            target = self._active(number, "RESET")
            self.told.append(f"{number} reset")
            target.documents = {}
            target.is_current = False
            target.told_token = b""

    def _no_change(self, change):
        numbers = change.target_ids or [n for n, t in self.targets.items() if t.is_added]
        for number in numbers:
            target = self._active(number, "NO_CHANGE")
            if change.resume_token and not target.due:
                target.told_token = change.resume_token
        if not change.target_ids:
            self._snapshot(change)

    def _snapshot(self, change):
        assert change.HasField("read_time"), "a snapshot has no read time"
        # A token would be kept for targets whose documents are still to come, too.
        is_whole = all(target.is_current and not target.due for target in self.targets.values()
                       if target.is_added or target.due)
        assert change.resume_token or not is_whole, "a snapshot has no resume token"
        time = Time.of(change.read_time)
        assert time >= self.read_time, f"a snapshot goes back from {self.read_time} to {time}"
        self.read_time = time
        view = {}
        for number, target in self.targets.items():
            if not target.is_added or target.due:
                continue
            for path, document in target.documents.items():
                version = Time.of(document.update_time)
                assert version <= time, f"{path} of {version} is in a snapshot of {time}"
            target.shown = dict(target.documents)
            target.token = target.told_token
            if target.is_current:
                target.read_time = time
                view[number] = target.shown
        self.views.append(view)

    def _active(self, number, what):
        target = self.targets.get(number)
        assert target and target.is_added, f"{what} of {number}, which is no target now"
        return target

    def _document_change(self, change):
        document, path = change.document, self.path(change.document.name)
        both = set(change.target_ids) & set(change.removed_target_ids)
        assert not both, f"{path} is in {both} and is not"
        assert document.HasField("create_time") and document.HasField("update_time"), (
            f"{path} has no times")
        assert Time.of(document.create_time) <= Time.of(document.update_time), (
            f"{path} was changed before it was created")
        self._tell(path, "", change.target_ids, change.removed_target_ids)
        for number in change.target_ids:
            if not self.targets[number].due:
                self.targets[number].documents[path] = document

    def _document_delete(self, change):
        path = self.path(change.document)
        assert change.HasField("read_time"), f"the deletion of {path} has no read time"
        self._tell(path, " deleted", [], change.removed_target_ids)
        self.deletions[path] = Time.of(change.read_time)

    def _document_remove(self, change):
        path = self.path(change.document)
        assert change.HasField("read_time"), f"the removal of {path} has no read time"
        self._tell(path, "", [], change.removed_target_ids)

    def _tell(self, path, what, targets, removed_targets):
        assert targets or removed_targets, f"{path} is told of no target"
        for number in (*targets, *removed_targets):
            self._active(number, path)
        numbers = [f"+{n}" for n in sorted(targets)] + [f"-{n}" for n in sorted(removed_targets)]
        self.told.append(" ".join([f"{path}{what}", *numbers]))
        for number in removed_targets:
            if not self.targets[number].due:
                self.targets[number].documents.pop(path, None)

    def _filter(self, existence):
        number, bloom = existence.target_id, existence.unchanged_names
        target = self._active(number, "a filter")
        assert not target.is_current, f"a filter of {number} comes after CURRENT"
        self.told.append(f"{number} has {existence.count}")
        self._check(bloom)
        if target.due or len(target.documents) == existence.count:
            return
        if len(target.request.get("documents", {}).get("documents", [])) == 1:
            assert existence.count == 0, f"a document was counted {existence.count} times"
            target.documents = {}
            return
        if bloom.bits.bitmap:
            for path in list(target.documents):
                if not might_contain(bloom, full_name(self.database, path)):
                    del target.documents[path]
            if len(target.documents) == existence.count:
                return
        target.mismatch = "existence-filter-mismatch" + "-bloom" * bool(bloom.bits.bitmap)
        target.documents = {}
        target.is_current = False
        target.told_token = b""

    @staticmethod
    def _check(bloom):
        assert 0 <= bloom.bits.padding <= 7, f"padding {bloom.bits.padding}"
        if bloom.bits.bitmap:
            assert bloom.hash_count > 0, "a bloom filter without hashes"
        else:
            assert bloom.bits.padding == 0, "an empty bloom filter with padding"


class Writer:
    """A Write stream's client."""

    def __init__(self, database, transport):
        self.database = database
        self.stream = transport.stream("Write", WriteRequest, WriteResponse, database)
        self.stream_id = ""
        self.tokens = []
        # The writes of pushes that are not answered yet.
        self.due = collections.deque()
        self.log = []

    def say(self, **request):
        message = WriteRequest(**request)
        self.log.append((">", message))
        self.stream.send(message)

    def lose(self):
        self.stream = None

    def receive(self):
        response = self.stream.receive()
        self.log.append(("<", response))
        assert response.stream_token, "an answer has no stream token"
        assert response.stream_token not in self.tokens, "a stream token comes twice"
        self.tokens.append(response.stream_token)
        return response


def brief(entry):
    """A message that was said or heard, on one line."""
    sign, message = entry
    return f"{sign} {' '.join(str(message).split())}"[:600]


# Conversations


class Conversation:
    """Runs a dialogue's steps against a server; afterwards every stream must end well.

    `transport` makes the transport for an address.
    """

    def __init__(self, server, database, transport=GRPCTransport):
        self.server = server
        self.own_database = database
        self.make_transport = transport
        self.transport = transport(server.address("firestore"))
        self.phones = {}
        self.writers = {}
        self.name = "phone"
        # The versions of documents, by name: as last written, deleted and read.
        self.versions = {}
        self.deletions = {}
        self.reads = {}
        self.results = []

    @property
    def phone(self):
        if self.name not in self.phones:
            self.phones[self.name] = Phone(self.database(""))
        phone = self.phones[self.name]
        if phone.stream is None:
            phone.connect(self.transport)
        return phone

    @property
    def writer(self):
        return self.writers[self.name]

    def database(self, name):
        """A database of this conversation, or the default one."""
        if name != "(default)":
            name = f"{self.own_database}-{name}" if name else self.own_database
        return f"projects/{PROJECT}/databases/{name}"

    def run(self, steps):
        step = None
        try:
            for step in steps:
                step(self)
            step = "the end of the streams"
            self._hang_up()
        except BaseException as error:
            error.add_note(f"at {step}")
            for name, client in [*self.phones.items(), *self.writers.items()]:
                error.add_note("\n".join([f"{name}:", *map(brief, client.log[-40:])]))
            raise
        finally:
            self.close_streams()
            self.transport.close()

    def _hang_up(self):
        for client in [*self.phones.values(), *self.writers.values()]:
            if client.stream:
                client.stream.half_close()
                end(client, "OK")

    def close_streams(self):
        for client in [*self.phones.values(), *self.writers.values()]:
            if client.stream:
                client.stream.cancel()
                client.lose()

    def note(self, database, writes, response):
        """Remembers the versions that writes have made, which listeners must be told."""
        assert response.HasField("commit_time"), "an answer has no commit time"
        assert len(response.write_results) == len(writes), (
            f"{len(response.write_results)} results of {len(writes)} writes")
        self.results = []
        for write, result in zip(writes, response.write_results):
            name = full_name(database, write.path)
            assert len(result.transform_results) == sum(
                isinstance(value, Transform) for value in write.fields.values())
            self.results += [decoded(value) for value in result.transform_results]
            if write.kind in ("delete", "verify"):
                assert not result.HasField("update_time"), f"a {write.kind} has an update time"
                self.deletions[name] = Time.of(response.commit_time)
            else:
                version = Time.of(result.update_time)
                assert version <= Time.of(response.commit_time), f"{version} is after the commit"
                # Answers of several streams may be taken in any order.
                self.versions[name] = max(version, self.versions.get(name, version))

    def check(self, phone, view):
        """Takes a snapshot as expected, if its documents have the versions that were written."""
        for documents in view.values():
            for path, document in documents.items():
                version = self.versions.get(full_name(phone.database, path))
                assert version in (None, Time.of(document.update_time)), (
                    f"{path} was written at {version}, not {Time.of(document.update_time)}")
        for path, time in phone.deletions.items():
            deletion = self.deletions.get(full_name(phone.database, path), time)
            assert time >= deletion, f"{path} was deleted at {deletion}, not {time}"
        phone.deletions = {}
        phone.last_view = view


def end(client, code):
    """Takes what comes until the stream ends, which it must with a code."""
    try:
        while True:
            client.receive()
    except Ended as ended:
        client.log.append(("<", ended))
        client.lose()
        assert ended.code == code, f"the stream ended with {ended}, not {code}"
        assert code == "OK" or ended.message, f"{code} says nothing"


# Steps: phones


@spoken
def on(talk, name, *steps):
    """Steps of another phone."""
    before, talk.name = talk.name, name
    for step in steps:
        step(talk)
    talk.name = before


@spoken
def connect(talk, database=""):
    """Opens a Listen stream of a database; listening to the first target does so, too."""
    talk.phones[talk.name] = Phone(talk.database(database))
    talk.phones[talk.name].connect(talk.transport)


@spoken
def listen(talk, number, target, once=False, label=None):
    phone = talk.phone
    target = target(phone.database)
    if once:
        target["once"] = True
    phone.listen(number, target, labels={"goog-listen-tags": label} if label else {})


@spoken
def unlisten(talk, number):
    talk.phone.unlisten(number)


@spoken
def say(talk, **request):
    """A message as it is said, to a stream that may not have begun."""
    talk.phone.say(**request)


@spoken
def expect_added(talk, *numbers):
    phone = talk.phone
    while any(n in phone.targets and phone.target(n).due for n in numbers):
        phone.receive()
    for number in numbers:
        assert phone.target(number).is_added, f"{number} was not added"


@spoken
def expect_current(talk, *numbers):
    phone = talk.phone
    while not all(phone.target(number).is_current for number in numbers):
        phone.receive()


@spoken
def expect_removed(talk, *numbers):
    phone = talk.phone
    while any(phone.target(n).due or phone.target(n).is_added for n in numbers):
        phone.receive()


@spoken
def expect_refused(talk, number, code="INVALID_ARGUMENT"):
    """The target was never current and ends, and it alone."""
    phone = talk.phone
    while not phone.target(number).cause:
        assert not phone.target(number).is_current, f"{number} is current, and not refused"
        phone.receive()
    cause = phone.target(number).cause
    name = next(one.name for one in grpc.StatusCode if one.value[0] == cause.code)
    assert name == code, f"{number} ended with {name} {cause.message}, not {code}"
    assert cause.message, f"{code} of {number} says nothing"


@spoken
def expect_ended(talk, code="INVALID_ARGUMENT"):
    """The Listen stream ends."""
    end(talk.phone, code)


@spoken
def expect_snapshot(talk, expected, told=None):
    """The next snapshot that changes anything shows these documents of these targets.

    Documents are paths, or fields by path. Targets that were current change all in one snapshot;
    new ones may become current one after the other. `told` is what is said of documents, and of
    their number unless it is told besides.
    """
    phone = talk.phone
    before = phone.last_view
    while not shows_all(phone, view := phone.next_view(), expected):
        for number, documents in expected.items():
            number = phone.chosen.get(number, number)
            if number not in view or view[number] == before.get(number):
                continue
            assert shows(view[number], documents), (
                f"a snapshot shows {seen(view[number])} of {number}, not {documents}")
            assert number not in before, f"{number} changed in a snapshot without the others"
    for number in expected:
        assert not phone.target(number).mismatch, f"{number} has to start over after a filter"
    talk.check(phone, view)
    messages, phone.told = phone.told, []
    if told is not None and CHECKS_WHAT_IS_TOLD:
        if not any(" has " in one for one in told):
            messages = [one for one in messages if " has " not in one]
        assert sorted(messages) == sorted(told), f"told was {messages}, not {told}"


@spoken
def expect_finally(talk, expected):
    """Snapshots lead to one that shows these documents of these targets."""
    phone = talk.phone
    while not shows_all(phone, view := phone.next_view(), expected):
        pass
    talk.check(phone, view)
    phone.told = []


def seen(documents):
    return {path: {name: decoded(value) for name, value in document.fields.items()}
            for path, document in documents.items()}


def shows(documents, expected):
    """Whether documents are the expected ones, which are paths or fields by path."""
    if documents.keys() != set(expected):
        return False
    return not isinstance(expected, dict) or seen(documents) == expected


def shows_all(phone, view, expected):
    """Whether a snapshot shows the expected documents of each target."""
    numbers = {number: phone.chosen.get(number, number) for number in expected}
    return all(numbers[number] in view and shows(view[numbers[number]], documents)
               for number, documents in expected.items())


@spoken
def disconnect(talk):
    """Loses the connection; what the last snapshot showed is kept."""
    talk.phone.stream.cancel()
    talk.phone.lose()


@spoken
def believe(talk, number, path):
    """Has a document of which the server knows nothing."""
    target = talk.phone.target(number)
    target.shown[path] = next(iter(target.shown.values()))


@spoken
def forget(talk, number, path):
    """Has lost a document."""
    del talk.phone.target(number).shown[path]


@spoken
def resume(talk, *numbers, token=None, read_time=None, counted=True, expected_count=None):
    """Listens again from where the targets were.

    `token` and `read_time` are functions that change what was kept. As newer SDKs do, the phone
    says how many documents it has; older ones have not counted.
    """
    phone = talk.phone
    for number in numbers:
        target = phone.target(number)
        options = {}
        if counted:
            count = len(target.shown) if expected_count is None else expected_count
            options["expected_count"] = {"value": count}
        if read_time:
            options["read_time"] = Time(*read_time(*target.read_time)).proto()
        else:
            options["resume_token"] = token(target.token) if token else target.token
        phone.listen(number, target, **options)


@spoken
def resume_with_token_of(talk, name, number):
    """Listens with the token of another phone."""
    token = talk.phones[name].target(number).token
    resume(number, token=lambda _: token)(talk)


@spoken
def expect_mismatch(talk, number, label):
    """A filter has shown that the phone's documents are others; it starts over, as SDKs do."""
    phone = talk.phone
    while not phone.target(number).mismatch:
        phone.receive()
    request, mismatch = phone.target(number).request, phone.target(number).mismatch
    assert mismatch == label, f"the filter's mismatch is {mismatch}, not {label}"
    phone.unlisten(number)
    phone.listen(number, request, labels={"goog-listen-tags": label})


# Steps: calls


@spoken
def commit(talk, *writes, database="", fails=None):
    database = talk.database(database)
    request = CommitRequest(
        database=database, writes=[write.proto(database, talk.reads) for write in writes])
    try:
        [response] = talk.transport.call("Commit", request, CommitResponse)
    except Ended as ended:
        assert ended.code == fails, f"the commit ended with {ended}, not {fails}"
        return
    assert not fails, f"the commit was made, instead of {fails}"
    talk.note(database, writes, response)


@spoken
def expect_documents(talk, expected, database=""):
    """Reads documents; None is for one that does not exist."""
    database = talk.database(database)
    request = BatchGetDocumentsRequest(
        database=database, documents=[full_name(database, path) for path in expected])
    found = {}
    for response in talk.transport.call(
            "BatchGetDocuments", request, BatchGetDocumentsResponse):
        assert response.HasField("read_time"), "a document was read without a time"
        if response.HasField("found"):
            document = response.found
            assert document.HasField("update_time"), "a document has no update time"
            talk.reads[document.name] = Time.of(document.update_time)
            found[document.name] = {n: decoded(v) for n, v in document.fields.items()}
        else:
            talk.reads[response.missing] = None
            found[response.missing] = None
    assert found == {full_name(database, path): fields for path, fields in expected.items()}


@spoken
def expect_results(talk, *values):
    """What the transforms of the last writes have made."""
    assert talk.results == list(values), f"the results are {talk.results}, not {list(values)}"


@spoken
def reset_server(talk, database=""):
    """Removes all documents of a database, as tests do between runs."""
    url = f"http://{talk.server.address('firestore')}/emulator/v1/{talk.database(database)}"
    reply = requests.delete(f"{url}/documents", timeout=WAIT)
    assert reply.status_code == 200, reply.text


@spoken
def restart_server(talk, anew=False):
    """Restarts the server, which keeps its data unless it starts over."""
    talk.close_streams()
    talk.transport.close()
    talk.server.restart(anew)
    talk.transport = talk.make_transport(talk.server.address("firestore"))


# Steps: the Write stream


@spoken
def open_writes(talk, *writes, database="", named=True, **request):
    """Opens a Write stream by its first message, which a fresh one needs nothing else for."""
    database = talk.database(database)
    talk.writers[talk.name] = Writer(database, talk.transport)
    talk.writer.say(
        **({"database": database} if named else {}),
        writes=[write.proto(database, talk.reads) for write in writes], **request)


@spoken
def expect_opened(talk):
    response = talk.writer.receive()
    assert response.stream_id, "the first answer has no stream id"
    assert not response.write_results, "the first answer has results"
    assert not response.HasField("commit_time"), "the first answer has a commit time"
    talk.writer.stream_id = response.stream_id


@spoken
def push(talk, *writes, token=None, database=None):
    """Sends writes with the last token that came."""
    writer = talk.writer
    writer.due.append(writes)
    named = {} if database is None else {"database": talk.database(database)}
    writer.say(
        stream_token=writer.tokens[-1] if token is None else token,
        writes=[write.proto(writer.database, talk.reads) for write in writes], **named)


@spoken
def expect_pushed(talk, count=1):
    """The next pushes were made, in their order."""
    writer = talk.writer
    for _ in range(count):
        response = writer.receive()
        assert not response.stream_id, "a later answer has a stream id"
        talk.note(writer.database, writer.due.popleft(), response)


@spoken
def expect_push_ended(talk, code):
    """The Write stream ends; what was pushed since is not made."""
    writer = talk.writer
    before = len(writer.tokens)
    end(writer, code)
    assert len(writer.tokens) == before, "an answer came before the stream's end"


@spoken
def close_writes(talk):
    """Sends no more writes; the stream ends well once the others are made."""
    talk.writer.stream.half_close()


@spoken
def reopen_writes(talk, with_id=True, with_token=True):
    """Asks to go on with the last Write stream."""
    old = talk.writer
    old.stream.cancel()
    request = {"stream_id": old.stream_id} if with_id else {}
    if with_token:
        request["stream_token"] = old.tokens[-1]
    open_writes(**request)(talk)
