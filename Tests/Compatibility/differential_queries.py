"""Puts random queries to Hearth and to another server and tells where their answers depart.

    .build/venv/bin/python Tests/Compatibility/differential_queries.py [--seed N] [HOST:PORT]

Without an address it starts the official emulator that gcloud brings; without `--hearth HOST:PORT`
it starts .build/release/hearth, or that of CONFIGURATION. Each departure that is known stands below
with an example, which is put first; an unknown one, and an example that departs no more, make the
run fail. An unknown one is shown as the smallest request that still departs alike.
"""

import argparse
import contextlib
import dataclasses
import math
import re
import subprocess
import sys
import tempfile
import time
import typing
import uuid

import grpc
from conftest import started
from differential import official
from google.cloud.firestore_v1 import types
from google.protobuf import text_format
from random_queries import (
    INEQUALITIES, NULL, AggregationRequest, CollectionIdsRequest, DocumentsRequest, Draw,
    PartitionRequest, QueryRequest, StructuredQuery, Value, array, double, geo, inequalities,
    integer, leaves, mapping, text, vector)

CommitRequest = types.CommitRequest.pb()
METHODS = {
    QueryRequest: ("RunQuery", types.RunQueryResponse.pb()),
    AggregationRequest: ("RunAggregationQuery", types.RunAggregationQueryResponse.pb()),
    DocumentsRequest: ("ListDocuments", types.ListDocumentsResponse.pb()),
    CollectionIdsRequest: ("ListCollectionIds", types.ListCollectionIdsResponse.pb()),
    PartitionRequest: ("PartitionQuery", types.PartitionQueryResponse.pb()),
    CommitRequest: ("Commit", types.CommitResponse.pb()),
}
# An answer in more pages than this has no end.
PAGES_MAX = 500
# How often an unknown departure is put anew to make it smaller.
REDUCTIONS_MAX = 400


# Answers


@dataclasses.dataclass
class Answer:
    """What a server says: a status, or results in their order; and how it says it."""

    code: str = "OK"
    text: str = ""
    results: typing.Any = None
    # The sizes of pages, or how many results were skipped.
    form: typing.Any = None

    def __str__(self):
        if self.code != "OK":
            return shortened(f"{self.code} {self.text}")
        if isinstance(self.results, dict):
            return ", ".join(
                f"{name}: {brief(value)}" for name, value in sorted(self.results.items()))
        names = [result[0] if isinstance(result, tuple) else result for result in self.results]
        return shortened(f"{len(names)} results {names} {self.form}")


class Server:
    """A server over gRPC, whose administrator we are."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1)])

    def call(self, request):
        """The messages that answer a request, a status, and its text."""
        method, response = METHODS[type(request)]
        call = self.channel.unary_stream(
            f"/google.firestore.v1.Firestore/{method}", type(request).SerializeToString,
            response.FromString)
        try:
            replies = call(request, timeout=20, metadata=(("authorization", "Bearer owner"),))
            return list(replies), "OK", ""
        except grpc.RpcError as error:
            return [], error.code().name, error.details()

    def store(self, database, documents):
        """Stores documents, given by path."""
        request = CommitRequest(database=database)
        for path, fields in documents.items():
            document = request.writes.add().update
            document.name = f"{database}/documents/{path}"
            for name, value in fields.items():
                document.fields[name].CopyFrom(value)
        _, code, words = self.call(request)
        assert code == "OK", f"documents are refused: {code} {words}"

    def answer(self, request):
        """The answer to a request, all pages of it."""
        if hasattr(request, "page_token"):
            return self.answer_in_pages(request)
        replies, code, words = self.call(request)
        if code != "OK":
            return Answer(code, words)
        if isinstance(request, AggregationRequest):
            [reply] = replies
            return Answer(results=dict(reply.result.aggregate_fields))
        assert replies and all(reply.HasField("read_time") for reply in replies)
        return Answer(
            results=[found(reply.document) for reply in replies if reply.HasField("document")],
            form=sum(reply.skipped_results for reply in replies))

    def answer_in_pages(self, request):
        page = type(request)()
        page.CopyFrom(request)
        results, sizes = [], []
        for _ in range(PAGES_MAX):
            replies, code, words = self.call(page)
            if code != "OK":
                return Answer(code, words)
            [reply] = replies
            if isinstance(request, DocumentsRequest):
                part = [found(document) for document in reply.documents]
            elif isinstance(request, CollectionIdsRequest):
                part = list(reply.collection_ids)
            else:
                part = [brief(cursor) for cursor in reply.partitions]
            results += part
            sizes.append(len(part))
            page.page_token = reply.next_page_token
            if not page.page_token:
                return Answer(results=results, form=sizes)
        return Answer("ENDLESS")


def found(document):
    """A document without its times, of which only it matters that there are any."""
    return (
        document.name.split("/documents/", 1)[1], dict(document.fields),
        document.HasField("create_time") and document.HasField("update_time"))


def difference(request, ours, theirs):
    """In what two answers differ; None when they do not."""
    if (ours.code, theirs.code) != ("OK", "OK"):
        return None if ours.code == theirs.code else f"{ours.code} instead of {theirs.code}"
    if isinstance(ours.results, dict):
        return None if alike(ours.results, theirs.results, set(ours.results)) else "numbers"
    names, other_names = (
        [result[0] if isinstance(result, tuple) else result for result in answer.results]
        for answer in (ours, theirs))
    if names != other_names:
        return "order" if sorted(names) == sorted(other_names) else "results"
    computed = {query_of(request).find_nearest.distance_result_field}
    for one, other in zip(ours.results, theirs.results):
        if isinstance(one, tuple) and not (
                one[2] == other[2] and alike(one[1], other[1], computed)):
            return "fields"
    return None if ours.form == theirs.form else "form"


def alike(fields, others, computed):
    """Whether fields are the same to the bit, but for numbers that were computed."""
    return fields.keys() == others.keys() and all(
        encoded(value) == encoded(others[name]) or (
            name in computed and is_double(value) and is_double(others[name])
            and nearly(value.double_value, others[name].double_value))
        for name, value in fields.items())


def encoded(value):
    return value.SerializeToString(deterministic=True)


def is_double(value):
    return value.WhichOneof("value_type") == "double_value"


def nearly(one, other):
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (
        math.isnan(one) and math.isnan(other))


def query_of(request):
    """The structured query of a request, an empty one when it has none."""
    if isinstance(request, AggregationRequest):
        return request.structured_aggregation_query.structured_query
    return getattr(request, "structured_query", StructuredQuery())


def brief(message):
    return shortened(text_format.MessageToString(message, as_utf8=True, as_one_line=True))


def shortened(words):
    """The words with long runs of one character as that and its count."""
    return re.sub(r"(.)\1{50,}", lambda run: f"{run[1]}*{len(run[0])}", words)


# Known departures


@dataclasses.dataclass
class Departure:
    """A departure that is known, with the smallest request that shows it.

    `explains` says whether it explains a departure of a random request; without it, no random
    request shows it.
    """

    what: str
    example: typing.Any
    explains: typing.Callable | None = None


# What the examples are put about.
DOCUMENTS = {
    "c/a": {"n": integer(1), "v": vector(1, 0), "w": vector(0, 1), "g": geo(0, 0),
            "s": text("x" * 1500 + "b")},
    "c/b": {"n": integer(2), "v": vector(0, 0), "w": vector(-0.0, 1), "g": geo(0, -0.0),
            "s": text("x" * 1500 + "a"), "u": vector(1, 0), "z": integer(2)},
    "c/c": {"u": vector(0, 1), "z": integer(1), "m": mapping({"v": vector(1, 0)})},
    "c/a/d/x": {"n": integer(3)},
    "ghost/a/d/x": {"n": integer(4)},
    **{f"many/{number}": {} for number in range(40)},
}


def request(kind, words):
    """A request in text format; `~` stands for the root, `<1,0>` for a vector."""
    def spell(match):
        return brief(vector(*map(float, match[1].split(","))))

    message = text_format.Parse(re.sub(r"<([-\d.,]+)>", spell, words), kind())
    if not message.parent:
        message.parent = "~"
    return message


def at(message, root):
    """A copy of the message about the documents below a root."""
    copy = type(message)()
    copy.CopyFrom(message)
    return substituted(copy, root)


def substituted(message, root):
    """The message itself, with the root in the place of `~`."""
    for field, value in message.ListFields():
        if field.message_type and field.message_type.GetOptions().map_entry:
            for name in value:
                substituted(value[name], root)
        elif field.message_type:
            for member in [value] if hasattr(value, "ListFields") else value:
                substituted(member, root)
        elif isinstance(value, str) and value.startswith("~"):
            setattr(message, field.name, root + value[1:])
    return message


def query(words, parent="~"):
    return request(QueryRequest, f'parent: "{parent}" structured_query {{ {words} }}')


def total(words, parent="~"):
    return request(
        AggregationRequest, f'parent: "{parent}" structured_aggregation_query {{ '
        f"structured_query {{ {words} }} "
        'aggregations { sum { field { field_path: "n" } } } }')


def nearest(measure, words="", field="v", vector_="<1,0>", more=""):
    return query(
        f'{C} {more} find_nearest {{ vector_field {{ field_path: "{field}" }} limit {{ value: 9 }} '
        f"query_vector {{ {vector_} }} distance_measure: {measure} {words} }}")


def where(path, operator, value):
    return (
        f'field_filter {{ field {{ field_path: "{path}" }} op: {operator} '
        f"value {{ {text_format.MessageToString(value, as_one_line=True)} }} }}")


def documents(words):
    return request(DocumentsRequest, f'collection_id: "c" {words}')


C = 'from_ { collection_id: "c" }'


def refused_with(words, code="INVALID_ARGUMENT"):
    """Explains that they refuse in such words what we answer."""
    return lambda _request, ours, theirs: (
        (ours.code, theirs.code) == ("OK", code) and words in theirs.text)


def answers(words):
    """Explains that they answer what we refuse in such words."""
    return lambda _request, ours, theirs: theirs.code == "OK" != ours.code and words in ours.text


def differs(kind, holds=lambda request: True):
    """Explains a difference of a kind in the answers to such requests."""
    return lambda request, ours, theirs: (
        difference(request, ours, theirs) == kind and holds(request))


def is_tie(request, ours, theirs):
    """Whether nearest documents come in another order only where they are equally near."""
    name = query_of(request).find_nearest.distance_result_field
    if not (inequalities(query_of(request).where) and query_of(request).HasField("find_nearest")
            and difference(request, ours, theirs) in ("order", "results")):
        return False
    pairs = list(zip(ours.results, theirs.results, strict=False))
    return len(ours.results) == len(theirs.results) and all(
        nearly(one[1][name].double_value, other[1][name].double_value)
        for one, other in pairs if name in one[1] and name in other[1])


def never_holds(filter_):
    """Whether a filter has an inequality that never holds, with null or not-a-number."""
    return any(
        leaf.op in INEQUALITIES and any(
            value.WhichOneof("value_type") == "null_value" or math.isnan(value.double_value)
            for value in [leaf.value, *leaf.value.array_value.values])
        for leaf in leaves(filter_) if isinstance(leaf, StructuredQuery.FieldFilter))


# Where the official emulator departs from production.
DEPARTURES = [
    Departure(
        "it cannot partition", request(
            PartitionRequest, "partition_count: 2 structured_query { from_ { collection_id: 'c' "
            "all_descendants: true } order_by { field { field_path: '__name__' } } }"),
        lambda _request, _ours, theirs: theirs.code == "UNIMPLEMENTED"),
    Departure(
        "it answers six aggregations with UNKNOWN",
        request(
            AggregationRequest, "structured_aggregation_query { structured_query { "
            f"{C} }} {'aggregations { count { } } ' * 6} }}"),
        lambda request, _ours, theirs: theirs.code == "UNKNOWN"
        and isinstance(request, AggregationRequest)),
    Departure(
        "it cannot go on after a page that ends with some values, and answers UNKNOWN",
        documents('page_size: 1 order_by: "v"'),
        lambda request, _ours, theirs: theirs.code == "UNKNOWN"
        and isinstance(request, DocumentsRequest) and bool(request.order_by)),
    Departure(
        "with missing documents it ignores the mask", documents("show_missing: true mask { }"),
        differs("fields", lambda request: isinstance(request, DocumentsRequest)
                and request.show_missing and request.HasField("mask"))),
    Departure(
        "with missing documents it takes a negative page size",
        documents("show_missing: true page_size: -1"), answers("Page size must be nonnegative")),
    Departure(
        "it says that more follows when a page is full, and then comes an empty one",
        documents("page_size: 3"),
        lambda request, ours, theirs: difference(request, ours, theirs) == "form"
        and hasattr(request, "page_size") and theirs.form == [*ours.form, 0]),
    Departure(
        "its pages of documents have 30 unless another size is asked for",
        request(DocumentsRequest, 'collection_id: "many"'),
        lambda request, ours, theirs: difference(request, ours, theirs) == "form"
        and isinstance(request, DocumentsRequest) and request.page_size == 0
        and theirs.form[0] == 30),
    Departure(
        "it tells of skipped results with each result, or not at all", query(f"{C} offset: 9"),
        differs("form", lambda request: query_of(request).offset > 0)),
    Departure(
        "it takes null and not-a-number without an operator",
        query(f"{C} where {{ {where('n', 'OPERATOR_UNSPECIFIED', double(math.nan))} }}"),
        answers("Unknown FieldFilter operator")),
    Departure(
        "it tells the cosine of a vector without length", nearest("COSINE"),
        answers("a vector with a magnitude of zero")),
    Departure(
        "it finds no vectors inside maps", nearest("EUCLIDEAN", field="m.v"),
        lambda request, ours, theirs: difference(request, ours, theirs) == "results"
        and "." in query_of(request).find_nearest.vector_field.field_path
        and theirs.results == []),
    Departure(
        "it has no index of names in descending order, which production makes on demand",
        query(f"{C} order_by {{ field {{ field_path: '__name__' }} direction: DESCENDING }}"),
        refused_with("Firestore does not support descending key scans", "FAILED_PRECONDITION")),
]

# Where Hearth departs from production, or may: nobody has asked production about those marked.
OWN = [
    Departure(
        "it orders collection groups below a document by descending names; production lacks the "
        "index",
        query('from_ { collection_id: "d" all_descendants: true } '
              "order_by { field { field_path: '__name__' } direction: DESCENDING }", "~/c/a"),
        refused_with("collection group queries are only allowed if", "FAILED_PRECONDITION")),
    Departure(
        "it sums up fields that are not selected (doubtful)",
        total(f"{C} select {{ fields {{ field_path: 'v' }} }}"),
        refused_with("is not present in the base query's property mask")),
    Departure(
        "it sums up fields although none is selected (doubtful)", total(f"{C} select {{ }}"),
        refused_with("is not supported for base query that only returns keys")),
    Departure(
        "it sums up fields that are selected (doubtful)",
        total(f"{C} select {{ fields {{ field_path: 'n' }} }}"),
        refused_with("Cannot apply property masks when aggregation fields are present")),
    Departure(
        "without a selector it looks at any depth, not at one as with an empty one (doubtful)",
        query(""), lambda request, _ours, _theirs: not query_of(request).from_
        and not isinstance(request, (DocumentsRequest, CollectionIdsRequest))),
    Departure(
        "it tells long values apart by more than their first 1500 bytes",
        query(f"{C} order_by {{ field {{ field_path: 's' }} }}")),
    Departure(
        "it refuses the name as a vector with another status than the one of a missing index",
        nearest("EUCLIDEAN", field="__name__")),
    Departure(
        "it takes not-in in an OR of one (doubtful)",
        query(f"{C} where {{ composite_filter {{ op: OR filters {{ "
              f"{where('n', 'NOT_IN', array(integer(1)))} }} }} }}"),
        refused_with("'NOT_IN' cannot be used in the same query with")),
    Departure(
        "it takes an AND of nothing only as the whole filter (doubtful)",
        query(f"{C} where {{ composite_filter {{ op: AND "
              "filters { composite_filter { op: AND } } } }"),
        answers("Composite filter must have at least one sub-filter")),
    Departure(
        "it counts equal disjuncts more than once (doubtful)",
        query(f"{C} where {{ composite_filter {{ op: OR "
              + f"filters {{ {where('n', 'EQUAL', integer(1))} }} " * 31 + "} }"),
        answers("Too many disjunctions after normalization")),
    Departure(
        "an inequality with null implies an order, although it never holds (doubtful)",
        query(f"{C} where {{ {where('n', 'LESS_THAN', NULL)} }} "
              "order_by { field { field_path: '__name__' } }"),
        lambda request, ours, theirs: never_holds(query_of(request).where)
        and ours.code in ("OK", "INVALID_ARGUMENT") and theirs.code == "OK"),
    Departure(
        "in vectors a zero below zero equals zero (doubtful)",
        query(f"{C} order_by {{ field {{ field_path: 'w' }} }}")),
    Departure(
        "in geo points a zero below zero equals zero (doubtful)",
        query(f"{C} order_by {{ field {{ field_path: 'g' }} }}")),
    Departure(
        "equally near documents come by name and not in the order of an inequality (doubtful)",
        nearest("DOT_PRODUCT", field="u", vector_="<1,1>",
                more=f"where {{ {where('z', 'GREATER_THAN', integer(0))} }}"), is_tie),
    Departure(
        "lists of documents have an order that begins or ends with a space (doubtful)",
        documents('order_by: " n"'), refused_with("Invalid order by clause")),
    Departure(
        "lists of documents have no order by names with a space or a comma (doubtful)",
        documents('order_by: "`a b`"'), answers("Invalid order by clause")),
]


# The run


def reduced(request, departs):
    """The smallest request that still departs alike, by leaving out one part after another."""
    budget = REDUCTIONS_MAX
    while True:
        for candidate in smaller(request):
            budget -= 1
            if budget < 0:
                return request
            if departs(candidate):
                request = candidate
                break
        else:
            return request


def smaller(request):
    """The copies of a request that lack a part, or have a composite's member in its place."""
    for path in parts(request):
        copy = type(request)()
        copy.CopyFrom(request)
        *way, (name, index) = path
        message = copy
        for step, position in way:
            message = getattr(message, step)
            message = message if position is None else message[position]
        if index is None:
            message.ClearField(name)
        elif name == "filters" and len(message.filters) == 1:
            continue
        else:
            del getattr(message, name)[index]
        yield copy


def parts(message, path=()):
    for field, value in message.ListFields():
        if isinstance(value, (str, bytes, bool, int, float)):
            yield *path, (field.name, None)
        elif hasattr(value, "ListFields"):
            yield *path, (field.name, None)
            yield from parts(value, (*path, (field.name, None)))
        else:
            yield from ((*path, (field.name, key)) for key in list(value)
                        ) if hasattr(value, "keys") else (
                            (*path, (field.name, index)) for index in range(len(value)))
            if field.message_type and not hasattr(value, "keys"):
                for index, member in enumerate(value):
                    yield from parts(member, (*path, (field.name, index)))


class Comparison:
    """Two servers, and what has come out so far."""

    def __init__(self, hearth, other):
        self.servers = Server(hearth), Server(other)
        self.counts = {"agrees": 0, "departs as known": 0, "departs": 0, "departs no more": 0}

    def say(self, outcome, words):
        self.counts[outcome] += 1
        if outcome != "agrees" and words:
            print(f"{outcome}: {words}", flush=True)

    def ask(self, request):
        """Both answers, and in what they differ."""
        answers_ = [server.answer(request) for server in self.servers]
        return *answers_, difference(request, *answers_)

    def store(self, database, documents_):
        for server in self.servers:
            server.store(database, documents_)

    def examples(self):
        database = f"projects/queries-{uuid.uuid4().hex[:12]}/databases/(default)"
        self.store(database, DOCUMENTS)
        for departures, who in ((DEPARTURES, "the official emulator"), (OWN, "Hearth")):
            for departure in departures:
                request_ = at(departure.example, f"{database}/documents")
                ours, theirs, what = self.ask(request_)
                explained = what and (
                    departure.explains is None or departure.explains(request_, ours, theirs))
                self.say("departs as known" if explained else "departs no more",
                         f"{who}: {departure.what}"
                         + ("" if explained else f"\n  Hearth: {ours}\n  other:  {theirs}"))

    def known(self, request_, ours, theirs):
        return any(
            departure.explains and departure.explains(request_, ours, theirs)
            for departure in DEPARTURES + OWN)

    def round(self, seed, queries):
        database = f"projects/queries-{uuid.uuid4().hex[:12]}/databases/(default)"
        draw = Draw(seed, database)
        self.store(database, draw.documents)
        for number in range(queries):
            request_ = draw.request()
            ours, theirs, what = self.ask(request_)
            if not what:
                self.say("agrees", None)
            elif self.known(request_, ours, theirs):
                self.say("departs as known", None)
            else:
                self.tell(f"seed {seed}, request {number}", request_, what, draw.root)

    def tell(self, where_, request_, what, root):
        def departs(candidate):
            *both, found_ = self.ask(candidate)
            return found_ == what and not self.known(candidate, *both)

        small = reduced(request_, departs)
        ours, theirs, _ = self.ask(small)
        self.say("departs", "\n".join([
            f"{where_}: {what}: {type(small).__name__} {brief(small)}",
            f"  Hearth: {ours}", f"  other:  {theirs}"]).replace(root, "~"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("address", nargs="?", help="HOST:PORT of a running server")
    parser.add_argument("--hearth", help="HOST:PORT of a running Hearth")
    parser.add_argument("--seed", type=int, help="of the first round; another one follows")
    parser.add_argument("--rounds", type=int, default=6, help="databases (default: 6)")
    parser.add_argument("--queries", type=int, default=400, help="of each (default: 400)")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    with contextlib.ExitStack() as stack:
        hearth = options.hearth
        if not hearth:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            suite = stack.enter_context(
                started(folder, "--no-functions", stderr=subprocess.DEVNULL))
            hearth = suite.address("firestore")
        comparison = Comparison(hearth, options.address or stack.enter_context(official()))
        comparison.examples()
        for round_ in range(options.rounds):
            comparison.round(seed + round_, options.queries)
    print(f"seeds {seed} to {seed + options.rounds - 1}: "
          + ", ".join(f"{outcome}: {count}" for outcome, count in comparison.counts.items()))
    return 1 if comparison.counts["departs"] or comparison.counts["departs no more"] else 0


if __name__ == "__main__":
    sys.exit(main())
