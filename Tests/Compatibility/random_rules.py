"""Documents, rules about them, and users' requests for two servers, drawn at random from a seed.

Conditions are drawn from a grammar in which they mostly have the type that is asked for; documents
mostly have the types that the conditions expect.
"""

import dataclasses
import random
import re

from google.cloud.firestore_v1 import types
from random_queries import NULL, Value, array, double, integer, mapping, text

BatchRequest = types.BatchGetDocumentsRequest.pb()
CommitRequest = types.CommitRequest.pb()
DocumentRequest = types.GetDocumentRequest.pb()
QueryRequest = types.RunQueryRequest.pb()
StructuredQuery = types.StructuredQuery.pb()
Operator = StructuredQuery.FieldFilter.Operator
Unary = StructuredQuery.UnaryFilter.Operator
Transform = types.DocumentTransform.FieldTransform.pb()

METHODS = ("get", "list", "create", "update", "delete")
COLLECTIONS = [f"c{number}" for number in range(10)]
IDS = ["a", "b", "c", "d", "e", "\u00e9"]
# The last two are never stored at first.
STORED = IDS[:-2]
USERS = {
    None: None,
    "alice": {"level": 2, "admin": True, "email": "alice@example.com", "email_verified": True},
    "bob": {"level": 1.5, "teams": ["red", "blue"], "about": {"n": 1}},
    "\u00e9va": {"email": "eva@example.com", "email_verified": False},
}

# What members of documents and of claims have, by the type that rules expect of them.
FUNCTIONS = """
    function signedIn() { return request.auth != null; }
    function owns(data) { return data.o == request.auth.uid; }
    function twice(n) { let half = n; let whole = half + half; return whole; }
    function either(one, other) { return one || other; }
    function at(path) { return get(path).data; }
    function stored(id) { return exists(/databases/$(database)/documents/c0/$(id)); }
"""

# Every `<kind>` is replaced by an expression of that kind. The first line of a kind ends where an
# expression has become deep.
GRAMMAR = {
    "bool": (
        ["true", "false", "signedIn()", "<data>.f", "request.auth.token.admin",
         "request.auth.uid == <data>.o", "owns(<data>)", "'<name>' in <data>",
         "resource == null", "request.resource == null", "request.auth.token.email_verified",
         "<data>.n == 1", "request.auth == null", "request.method == '<method>'"],
        ["!<bool>", "!(<bool>)", "(<bool> && <bool>)", "(<bool> || <bool>)", "<bool> && <bool>",
         "<bool> || <bool>", "(<bool> ? <bool> : <bool>)", "<num> <order> <num>",
         "<str> <order> <str>", "<any> <equal> <any>", "<num> <equal> <num>",
         "<str> <equal> <str>", "<list> <equal> <list>", "<map> <equal> <map>",
         "<any> in <list>", "<str> in <map>", "<any> in <set>", "<any> is <type>",
         "<str>.matches('<pattern>')", "<list>.hasAny(<list>)", "<list>.hasAll(<list>)",
         "<list>.hasOnly(<list>)", "<set>.hasOnly(<list>)", "<set>.hasAny(<set>)",
         "<set> == <set>", "<time> <order> <time>", "<span> <order> <span>",
         "either(<bool>, <bool>)", "stored(<str>)", "stored('<id>')",
         "exists(<path>)", "existsAfter(<path>)", "<path> == <path>",
         "get(<path>).data.f", "bool(<str>)", "request.time >= <time>", "math.isNaN(<num>)",
         "<keys>.hasOnly([<words>])", "<keys>.hasAny([<words>])", "<keys>.hasAll([<words>])",
         "debug(<bool>)", "<data>.get('f', <bool>)", "<bool> == <bool>"]),
    "num": (
        ["0", "1", "2", "-1", "3.0", "0.5", "<data>.n", "<data>.n", "request.auth.token.level",
         "<data>.m.n", "9223372036854775807"],
        ["(<num> + <num>)", "<num> - <num>", "(<num> * <num>)", "(<num> / <num>)",
         "(<num> % <num>)", "-<num>", "<str>.size()", "<list>.size()", "<map>.size()",
         "<set>.size()", "twice(<num>)", "int(<num>)", "float(<num>)", "int(<str>)", "math.abs(<num>)",
         "math.floor(<num>)", "math.ceil(<num>)", "math.round(<num>)", "math.pow(<num>, <num>)",
         "<data>.get('n', <num>)", "(<bool> ? <num> : <num>)", "<time>.year()", "<time>.toMillis()",
         "<span>.seconds()", "get(<path>).data.n", "at(<path>).n", "getAfter(<path>).data.n",
         "<data>['n']", "<list>[0]"]),
    "str": (
        ["''", "'a'", "'red'", "'alice'", "\"b\"", "'\u00e9'", "<data>.s", "<data>.s", "<data>.o",
         "request.auth.uid", "request.auth.token.email", "id", "database", "resource.id",
         "request.resource.id"],
        ["(<str> + <str>)", "<str>.lower()", "<str>.upper()", "<str>.trim()",
         "<str>.replace('<pattern>', 'x')", "<list>.join('-')", "string(<num>)", "string(<bool>)",
         "<str>[0]", "<str>[0:1]", "<str>.split('<pattern>')[0]", "<data>.get('s', <str>)",
         "<data>.get(['m', 's'], <str>)", "at(<path>).s", "<list>[0]", "(<bool> ? <str> : <str>)",
         "string(<path>)", "<str>.toUtf8().toBase64()"]),
    "list": (
        ["[]", "[1]", "['red', 'blue']", "<data>.l", "<data>.l", "request.auth.token.teams",
         "[1.0, 2]"],
        ["[<any>]", "[<any>, <any>]", "<list>.concat(<list>)", "<list>.removeAll(<list>)",
         "<list>[0:1]", "<keys>", "<map>.values()", "<str>.split('<pattern>')",
         "(<list> + <list>)", "<data>.get('l', <list>)"]),
    "keys": (
        ["<data>.keys()", "<data>.m.keys()", "request.resource.data.diff(resource.data).affectedKeys()",
         "resource.data.diff(request.resource.data).removedKeys()"],
        ["<map>.diff(<map>).affectedKeys()", "<map>.diff(<map>).addedKeys()",
         "<map>.diff(<map>).changedKeys()", "<map>.diff(<map>).unchangedKeys()", "<map>.keys()"]),
    "set": (
        ["<list>.toSet()", "[1, 2].toSet()",
         "request.resource.data.diff(resource.data).changedKeys()"],
        ["<set>.union(<set>)", "<set>.difference(<set>)", "<set>.intersection(<set>)"]),
    "map": (
        ["{}", "<data>", "<data>", "<data>.m", "request.auth.token.about", "{'n': 1}"],
        ["{'a': <any>}", "{'n': <num>, 's': <str>}", "at(<path>)", "<data>.get('m', <map>)"]),
    "any": (
        ["null", "1", "1.0", "'a'", "true", "<data>.x", "<data>.n", "<data>.s", "<data>.t", "<data>.l",
         "<data>.m", "resource", "request.auth"],
        ["<bool>", "<num>", "<str>", "<list>", "<map>", "<set>", "<time>", "<path>",
         "get(<path>)", "<data>.get('<name>', null)"]),
    "time": (
        ["<data>.t", "<data>.t", "timestamp.date(2024, 2, 29)", "timestamp.value(0)"],
        ["<time> + <span>", "<time> - <span>", "<time>.date()"]),
    "span": (
        ["duration.value(1, 'd')", "duration.time(1, 2, 3, 4)", "duration.value(<num>, 's')"],
        ["<time> - <time>", "duration.abs(<span>)", "<span> + <span>", "<time>.time()"]),
    "path": (
        ["/databases/$(database)/documents/<collection>/<id>",
         "/databases/$(database)/documents/<collection>/$(id)",
         "/databases/$(database)/documents/c1/$(<data>.s)"],
        ["/databases/$(database)/documents/<collection>/$(<str>)",
         "path('/databases/(default)/documents/<collection>/' + <str>)"]),
    "data": (["resource.data", "resource.data", "request.resource.data", "at(/databases/$(database)/documents/<collection>/<id>)"], []),
    "order": (["<", "<=", ">", ">="], []),
    "equal": (["==", "==", "!="], []),
    "type": ([
        "int", "float", "number", "string", "bool", "list", "map", "timestamp", "null", "set",
        "path", "duration", "bytes", "latlng", "map_diff"], []),
    "name": (list("fnslmtxo"), []),
    "words": ([", ".join(f"'{name}'" for name in names) for names in (
        "nso", "fnslmtxo", "n", "ls", "nx", "")], []),
    "method": (list(METHODS), []),
    "collection": (COLLECTIONS[:4], []),
    "id": (IDS[:-1], []),
    "pattern": (["a", "[a-z]+", ".*", "r.d", "", "a|b", "[^a]*", "-"], []),
}
# What is known of the documents of a query is little: conditions of lists are about a field and a
# constant.
LISTS = {
    "listed": (
        ["true", "false", "signedIn()", "resource.data.o == request.auth.uid", "resource.data.f",
         "resource.data.n <order> <number>", "resource.data.n <equal> <number>",
         "resource.data.s <equal> <word>", "resource.data.s in [<word>, <word>]",
         "resource.data.n in [<number>, <number>]", "<number> in resource.data.l",
         "<word> in resource.data.l", "resource.data.l.hasAny([<word>, <number>])",
         "request.query.limit <order> 3", "'n' in resource.data", "resource.data.x == null",
         "resource.data.x != null", "request.auth.uid in resource.data.l", "resource.data.n is int",
         "request.query.limit == 2", "owns(resource.data)", "resource.data.m.n == <number>",
         "request.query.orderBy.n == 'ASC'", "request.query.offset == 0",
         "stored('<id>')", "get(<path>).data.f", "resource.data.f == true"],
        ["!(<listed>)", "(<listed> && <listed>)", "(<listed> || <listed>)", "<listed> && <listed>",
         "<listed> || <listed>", "(<listed> ? <listed> : <listed>)", "either(<listed>, <listed>)"]),
    "number": (["0", "1", "2", "1.0", "2.5"], []),
    "word": (["'a'", "'b'", "'red'"], []),
}
GRAMMAR |= LISTS
PLACEHOLDER = re.compile(r"<([a-z]+)>")


@dataclasses.dataclass
class Expression:
    """A production of the grammar, and what stands in its placeholders."""

    kind: str
    production: str
    members: list

    def __str__(self):
        members = iter(self.members)
        return PLACEHOLDER.sub(lambda _match: str(next(members)), self.production)

    def descendants(self):
        for member in self.members:
            yield member
            yield from member.descendants()

    def smaller(self):
        """The expressions that have a part of one of the parts in its place."""
        for descendant in self.descendants():
            if descendant.kind == self.kind and str(descendant) != str(self):
                yield descendant
        if self.members and self.kind in ("bool", "listed"):
            yield from (Expression(self.kind, word, []) for word in ("true", "false"))
        for index, member in enumerate(self.members):
            for other in member.smaller():
                yield Expression(
                    self.kind, self.production,
                    [*self.members[:index], other, *self.members[index + 1:]])


def rules(conditions):
    """The text of rules with a condition for each collection and method."""
    blocks = []
    for collection in sorted({collection for collection, _ in conditions}):
        allowed = "".join(
            f"      allow {method}: if {condition};\n"
            for (of, method), condition in conditions.items() if of == collection)
        blocks.append(f"    match /{collection}/{{id}} {{\n{allowed}    }}\n")
    return (
        "rules_version = '2';\nservice cloud.firestore {\n"
        "  match /databases/{database}/documents {" + FUNCTIONS + "".join(blocks) + "  }\n}\n")


class Draw:
    """What follows from a seed: documents, rules, then requests about them."""

    def __init__(self, seed, database):
        self.random = random.Random(seed)
        self.database = database
        self.root = f"{database}/documents"
        self.documents = {
            f"{collection}/{id_}": self.fields() for collection in COLLECTIONS for id_ in STORED}

    def chance(self, share):
        return self.random.random() < share

    def pick(self, choices):
        return choices[self.random.randrange(len(choices))]

    def name(self, collection):
        return f"{self.root}/{collection}/{self.pick(IDS)}"

    # Rules

    def expression(self, kind, depth=0):
        leaves, branches = GRAMMAR[kind]
        production = self.pick(
            branches if branches and self.chance((1, .7, .4, .2, .1, 0)[min(depth, 5)]) else leaves)
        return Expression(kind, production, [
            self.expression(member, depth + 1) for member in PLACEHOLDER.findall(production)])

    def conditions(self):
        return {
            (collection, method): self.expression("listed" if method == "list" else "bool")
            for collection in COLLECTIONS for method in METHODS}

    # Documents

    def value_of(self, field):
        """A value of the type that rules expect of a field; sometimes of another."""
        if self.chance(.08):
            field = self.pick(list("fnslmto"))
        return {
            "f": lambda: Value(boolean_value=self.chance(.5)),
            "n": lambda: self.pick([integer(1), integer(2), integer(0), double(1), double(2.5)]),
            "s": lambda: text(self.pick(["a", "b", "red", "A-b", "\u00e9"])),
            "l": lambda: array(*self.random.sample(
                [integer(1), integer(2), double(1), text("a"), text("red"), text("alice"), NULL],
                self.random.randrange(3))),
            "m": lambda: mapping({
                name: value for name, value in
                (("n", integer(1)), ("s", text("b")), ("o", NULL)) if self.chance(.7)}),
            "t": self.time,
            "x": lambda: self.pick([NULL, integer(1), text("a"), double(float("nan"))]),
            "o": lambda: text(self.pick(["alice", "bob", "\u00e9va"])),
        }[field]()

    def time(self):
        value = Value()
        value.timestamp_value.seconds = self.pick([0, 1709164800, 1709168523])
        return value

    def fields(self):
        return {name: self.value_of(name) for name in "fnslmtxo" if self.chance(.85)}

    # Requests

    def request(self):
        collection = self.pick(COLLECTIONS)
        draw = self.pick([
            self.document, self.document, self.query, self.query, self.commit, self.commit,
            self.commit, self.batch])
        return self.pick(list(USERS)), draw(collection)

    def document(self, collection):
        return DocumentRequest(name=self.name(collection))

    def batch(self, collection):
        return BatchRequest(
            database=self.database,
            documents=[self.name(collection), self.name(self.pick(COLLECTIONS))])

    def query(self, collection):
        request = QueryRequest(parent=self.root)
        query = request.structured_query
        query.from_.add(collection_id=collection)
        filters = [self.filter() for _ in range(self.pick([0, 1, 1, 1, 2]))]
        if len(filters) == 1:
            query.where.CopyFrom(filters[0])
        elif filters:
            query.where.composite_filter.op = StructuredQuery.CompositeFilter.Operator.AND
            query.where.composite_filter.filters.extend(filters)
        if self.chance(.4):
            query.limit.value = self.pick([1, 2, 3, 10])
        if self.chance(.2):
            query.order_by.add().field.field_path = self.pick(["n", "s", "__name__"])
        return request

    def filter(self):
        filter_ = StructuredQuery.Filter()
        path = self.pick(["f", "n", "n", "n", "s", "s", "o", "o", "l", "x", "m.n"])
        if path == "x":
            filter_.unary_filter.op = self.pick([Unary.IS_NULL, Unary.IS_NOT_NULL])
            filter_.unary_filter.field.field_path = path
            return filter_
        leaf = filter_.field_filter
        leaf.field.field_path = path
        operator, value = {
            "f": lambda: (Operator.EQUAL, Value(boolean_value=self.chance(.7))),
            "n": lambda: self.pick([
                (self.pick([
                    Operator.EQUAL, Operator.EQUAL, Operator.LESS_THAN, Operator.LESS_THAN_OR_EQUAL,
                    Operator.GREATER_THAN, Operator.GREATER_THAN_OR_EQUAL, Operator.NOT_EQUAL]),
                 self.number()),
                (self.pick([Operator.IN, Operator.NOT_IN]), array(self.number(), self.number()))]),
            "s": lambda: self.pick([
                (Operator.EQUAL, self.word()), (Operator.NOT_EQUAL, self.word()),
                (Operator.IN, array(self.word(), self.word()))]),
            "o": lambda: (Operator.EQUAL, text(self.pick(["alice", "bob", "\u00e9va"]))),
            "l": lambda: self.pick([
                (Operator.ARRAY_CONTAINS, self.pick([self.number(), self.word()])),
                (Operator.ARRAY_CONTAINS_ANY, array(self.number(), self.word()))]),
            "m.n": lambda: (Operator.EQUAL, self.number()),
        }[path]()
        leaf.op = operator
        leaf.value.CopyFrom(value)
        return filter_

    def number(self):
        return self.pick([integer(0), integer(1), integer(2), double(1), double(2.5)])

    def word(self):
        return text(self.pick(["a", "b", "red"]))

    def commit(self, collection):
        request = CommitRequest(database=self.database)
        for number in range(self.pick([1, 1, 1, 2, 3])):
            self.write(request.writes.add(), collection if number == 0 else self.pick(COLLECTIONS))
        return request

    def write(self, write, collection):
        name = self.name(collection)
        dice = self.random.random()
        if dice < .25:
            write.delete = name
        else:
            write.update.name = name
            fields = self.fields()
            for field, value in fields.items():
                write.update.fields[field].CopyFrom(value)
            if dice < .6:
                write.update_mask.field_paths.extend(
                    self.random.sample(list("fnslmtxo"), self.random.randrange(4)))
                for field in set(fields) - set(write.update_mask.field_paths):
                    del write.update.fields[field]
            if self.chance(.15):
                write.update_transforms.add(field_path="n", increment=integer(1))
            if self.chance(.1):
                write.update_transforms.add(
                    field_path="l", append_missing_elements=array(text("red")).array_value)
            if self.chance(.1):
                write.update_transforms.add(
                    field_path="t", set_to_server_value=Transform.ServerValue.REQUEST_TIME)
        if self.chance(.2):
            write.current_document.exists = self.chance(.7)
