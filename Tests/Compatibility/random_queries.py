"""Documents and queries for two servers, drawn at random from a seed.

Much is drawn from small sets, so that much is equal, much ties and much is missing.
"""

import random

from google.cloud.firestore_v1 import types

AggregationRequest = types.RunAggregationQueryRequest.pb()
CollectionIdsRequest = types.ListCollectionIdsRequest.pb()
Document = types.Document.pb()
DocumentsRequest = types.ListDocumentsRequest.pb()
PartitionRequest = types.PartitionQueryRequest.pb()
QueryRequest = types.RunQueryRequest.pb()
StructuredQuery = types.StructuredQuery.pb()
Value = types.Value.pb()

Composite = StructuredQuery.CompositeFilter
Operator = StructuredQuery.FieldFilter.Operator
Unary = StructuredQuery.UnaryFilter.Operator

LISTS = (Operator.IN, Operator.ARRAY_CONTAINS_ANY, Operator.NOT_IN)
INEQUALITIES = (
    Operator.LESS_THAN, Operator.LESS_THAN_OR_EQUAL, Operator.GREATER_THAN,
    Operator.GREATER_THAN_OR_EQUAL, Operator.NOT_EQUAL, Operator.NOT_IN)
NEGATIONS = (Unary.IS_NOT_NULL, Unary.IS_NOT_NAN)

IDS = [
    "a", "aa", "a-", "b", "B", "\u00e9", "e\u0301", "\uff5e", "\U0001f600", "__id5__", "__id-7__",
    "__id10__", "__id9__", "z", "0", "a b", "a.b", "____", "x" * 300]
COLLECTIONS = [["c"]] * 9 + [
    ["d"], ["c", "d"], ["c", "d"], ["c", "c"], ["d", "c"], ["c", "d", "c"], ["ghost", "d"],
    ["\u00e9"], ["c", "0x"]]
PATHS = [
    "a", "b", "c", "n", "k", "t", "m", "v", "s", "`q.d`", "`\u00e9 \\``", "m.a", "m.b", "m.x",
    "m.`y.z`", "m.`\\`q`", "m.a.b", "nothing"]
MEMBERS = ["a", "b", "x", "y.z", "`q", "\u00e9"]


# Values


def integer(number):
    return Value(integer_value=number)


def double(number):
    return Value(double_value=number)


def text(characters):
    return Value(string_value=characters)


def array(*values):
    value = Value()
    value.array_value.SetInParent()
    value.array_value.values.extend(values)
    return value


def mapping(fields):
    value = Value()
    value.map_value.SetInParent()
    for name, member in fields.items():
        value.map_value.fields[name].CopyFrom(member)
    return value


def vector(*numbers):
    return mapping({"__type__": text("__vector__"), "value": array(*map(double, numbers))})


def geo(latitude, longitude):
    value = Value()
    value.geo_point_value.SetInParent()
    value.geo_point_value.latitude = latitude
    value.geo_point_value.longitude = longitude
    return value


def time(seconds, nanos=0):
    value = Value()
    value.timestamp_value.SetInParent()
    value.timestamp_value.seconds = seconds
    value.timestamp_value.nanos = nanos
    return value


NULL = Value(null_value=0)
NAN = double(float("nan"))
NUMBERS = [
    integer(number) for number in (0, 1, -1, 2, 3, 7, 2**53, 2**53 + 1, 2**63 - 1, -2**63)
] + [
    double(number) for number in (
        0.0, -0.0, 1.0, 1.5, -1.0, 0.1, 0.2, 2.0**53, 2.0**63, -2.0**63, 1e308, 5e-324,
        float("nan"), float("inf"), -float("inf"))]
TIMES = [
    time(0), time(0, 1000), time(0, 999999000), time(-1, 500000000), time(1700000000, 123456000),
    time(-62135596800), time(253402300799, 999999000)]
TEXTS = [text(characters) for characters in (
    "", "a", "aa", "b", "B", "\u00e9", "e\u0301", "\uff5e", "\U0001f600", "\0", "a\0", "__x__",
    "x" * 1400, "x" * 1400 + "a")]
BYTES = [Value(bytes_value=data) for data in (b"", b"\0", b"\xff", b"a", b"a\0", b"x" * 1400)]
# A zero below zero and a vector in an array are examples among the departures.
GEO_POINTS = [geo(0, 0), geo(1, 2), geo(1, -2), geo(-1, 2), geo(90, 180), geo(-90, -180)]
VECTORS = [vector(*numbers) for numbers in (
    (1, 0), (0, 1), (1, 1), (2, 0), (-1, 0), (0, 0), (3, 4), (1, 0, 0), (1,), (0.5, 0.25))]


def names_of(path):
    """The names of maps' members along a field path, without its quotes."""
    names, name, quoted, characters = [], "", False, iter(path)
    for character in characters:
        if quoted and character == "\\":
            name += next(characters)
        elif character == "`":
            quoted = not quoted
        elif character == "." and not quoted:
            names.append(name)
            name = ""
        else:
            name += character
    return [*names, name]


def value_at(fields, path):
    value = None
    for name in names_of(path):
        if name not in fields:
            return None
        value = fields[name]
        fields = value.map_value.fields
    return value


def leaves(filter_):
    """The filters of one field, in whatever composites they are."""
    kind = filter_.WhichOneof("filter_type")
    if kind == "composite_filter":
        return [leaf for member in filter_.composite_filter.filters for leaf in leaves(member)]
    return [getattr(filter_, kind)] if kind else []


def inequalities(filter_):
    """The paths of a filter's inequalities."""
    return {
        leaf.field.field_path for leaf in leaves(filter_)
        if leaf.op in (NEGATIONS if isinstance(leaf, StructuredQuery.UnaryFilter)
                       else INEQUALITIES)}


class Draw:
    """What follows from a seed: the documents of a database, then requests about them."""

    def __init__(self, seed, database, count=90):
        self.random = random.Random(seed)
        self.database = database
        self.root = f"{database}/documents"
        self.documents = {}
        for _ in range(count):
            self.documents.setdefault(self.path(), self.fields())
        self.paths = sorted(self.documents)

    def chance(self, share):
        return self.random.random() < share

    def pick(self, choices):
        return choices[self.random.randrange(len(choices))]

    def name(self, path):
        return f"{self.root}/{path}"

    # Documents

    def path(self):
        return "/".join(f"{id_}/{self.pick(IDS)}" for id_ in self.pick(COLLECTIONS))

    def fields(self):
        fields = {}
        for name in "abc":
            if self.chance(.75):
                fields[name] = self.value() if self.chance(.6) else self.pick(
                    [integer(1), integer(2), double(1), NULL, text("a"), Value(boolean_value=True)])
        for name, share, draw in (
                ("n", .85, lambda: self.pick(NUMBERS)), ("t", .7, self.array),
                ("m", .7, self.map), ("v", .7, lambda: self.pick(VECTORS))):
            if self.chance(share):
                fields[name] = draw() if self.chance(.9) else self.scalar()
        for name, share, draw in (
                ("k", .8, lambda: integer(self.random.randrange(4))),
                ("s", .5, lambda: self.pick(TEXTS)), ("q.d", .5, self.scalar),
                ("\u00e9 `", .3, self.scalar)):
            if self.chance(share):
                fields[name] = draw()
        return fields

    def scalar(self):
        return self.pick([
            lambda: NULL, lambda: Value(boolean_value=self.chance(.5)),
            lambda: self.pick(NUMBERS), lambda: self.pick(NUMBERS), lambda: self.pick(NUMBERS),
            lambda: self.pick(TIMES), lambda: self.pick(TEXTS), lambda: self.pick(TEXTS),
            lambda: self.pick(BYTES), self.reference, lambda: self.pick(GEO_POINTS)])()

    def reference(self):
        path = self.pick(["c/a", "c/b", "c/a/d/x", "c/__id5__", "c/\U0001f600", "b/z"])
        root = self.pick([self.root] * 4 + [
            "projects/other/databases/(default)/documents",
            self.root.replace("(default)", "other")])
        return Value(reference_value=f"{root}/{path}")

    def array(self, depth=0):
        return array(*(self.element(depth) for _ in range(self.pick([0, 1, 1, 2, 2, 3]))))

    def element(self, depth):
        if self.chance(.15) and depth < 2:
            return self.map(depth + 1)
        return self.scalar() if self.chance(.3) else self.pick([
            integer(1), double(1), integer(2), text("a"), text("b"), NULL, NAN])

    def map(self, depth=0):
        names = self.random.sample(MEMBERS, self.pick([0, 1, 1, 2, 3]))
        return mapping({name: self.value(depth + 1) for name in names})

    def value(self, depth=0):
        dice = self.random.random()
        if depth < 3 and dice < .1:
            return self.array(depth)
        if depth < 3 and dice < .2:
            return self.map(depth)
        return self.pick(VECTORS) if dice < .25 else self.scalar()

    # Operands

    def present(self, path):
        values = [value_at(fields, path) for fields in self.documents.values()]
        return [value for value in values if value is not None]

    def operand(self, path):
        if path == "__name__":
            return self.key()
        present = self.present(path) if self.chance(.75) else []
        return self.pick(present) if present else self.value()

    def member(self, path):
        """An operand that is compared with an array's elements."""
        present = [element for value in self.present(path) for element in value.array_value.values]
        return self.pick(present) if present and self.chance(.75) else self.element(1)

    def key(self):
        if self.chance(.02):
            return self.value()
        path = self.pick(self.paths) if self.chance(.8) else self.path()
        return Value(reference_value=self.name(path))

    # Queries

    def filter(self, filter_, depth=0, negates=True):
        if depth < 3 and self.chance(.45 if depth == 0 else .2):
            composite = filter_.composite_filter
            composite.SetInParent()
            if not self.chance(.01):
                composite.op = self.pick([Composite.AND, Composite.AND, Composite.OR])
            count = 0 if self.chance(.015) else self.pick([1, 2, 2, 2, 3])
            for index in range(count):
                self.filter(composite.filters.add(), depth + 1, negates and index == 0)
        else:
            self.leaf(filter_, negates or self.chance(.03))

    def leaf(self, filter_, negates):
        path = "__name__" if self.chance(.1) else self.pick(PATHS)
        if self.chance(.1 if path != "__name__" else .05):
            filter_.unary_filter.field.field_path = path
            filter_.unary_filter.op = self.pick(
                [Unary.IS_NULL, Unary.IS_NAN] + (list(NEGATIONS) if negates else []))
            return
        operators = [*INEQUALITIES[:4], *[Operator.EQUAL] * 3, Operator.IN]
        if negates:
            operators += [Operator.NOT_EQUAL, Operator.NOT_IN]
        if path in ("t", "a", "b", "c", "m.x"):
            operators += [Operator.ARRAY_CONTAINS, Operator.ARRAY_CONTAINS_ANY] * (
                6 if path == "t" else 1)
        operator = self.pick(operators)
        draw = self.member if operator in (
            Operator.ARRAY_CONTAINS, Operator.ARRAY_CONTAINS_ANY) else self.operand
        if operator in LISTS and not self.chance(.005):
            count = self.pick([0, 10, 11, 30, 31] if self.chance(.05) else [1, 2, 2, 3, 4, 5])
            operand = array(*(draw(path) for _ in range(count)))
        else:
            operand = draw(path)
        filter_.field_filter.field.field_path = path
        filter_.field_filter.op = operator
        filter_.field_filter.value.CopyFrom(operand)

    def scope(self, query):
        """Chooses the collections; returns the parent, and whether they have no id."""
        dice = self.random.random()
        if dice < .01:
            return self.root, True
        selector = query.from_.add()
        below = self.name(f"{'c' if self.chance(.8) else 'ghost'}/{self.pick(IDS)}")
        if dice < .6:
            selector.collection_id = "c"
        elif dice < .65:
            selector.collection_id = self.pick(["d", "\u00e9", "ghost", "nothing", "0x"])
        elif dice < .75:
            selector.collection_id = self.pick(["d", "c"])
            return below, False
        elif dice < .92:
            selector.collection_id = self.pick(["c", "d", "d"])
            selector.all_descendants = True
            return (below if self.chance(.2) else self.root), False
        else:
            selector.all_descendants = self.chance(.8)
            return (below if self.chance(.3) else self.root), True
        return self.root, False

    def query(self, ordered=True):
        query = StructuredQuery()
        parent, kindless = self.scope(query)
        if kindless:
            self.kindless(query)
        elif self.chance(.7):
            self.filter(query.where)
        if ordered:
            if not kindless:
                self.order(query)
            self.cursors(query)
            if self.chance(.2):
                query.limit.value = self.pick([0, 1, 2, 3, 5, 10, 100, 1000, -1])
            if self.chance(.12):
                query.offset = self.pick([0, 1, 1, 2, 2, 5, 5, 100, -1])
        if self.chance(.25):
            query.select.SetInParent()
            for _ in range(self.pick([0, 1, 1, 2, 3])):
                query.select.fields.add().field_path = (
                    "__name__" if self.chance(.25) else self.pick(PATHS))
        return parent, query

    def kindless(self, query):
        for _ in range(self.pick([0, 0, 1, 2])):
            query.where.composite_filter.op = Composite.AND
            leaf = query.where.composite_filter.filters.add().field_filter
            leaf.field.field_path = "__name__" if self.chance(.95) else "a"
            leaf.op = self.pick([*INEQUALITIES, Operator.EQUAL, Operator.IN])
            key = self.key()
            leaf.value.CopyFrom(array(key, self.key()) if leaf.op in LISTS else key)
        if self.chance(.4):
            order = query.order_by.add()
            order.field.field_path = "__name__"
            order.direction = self.pick([0, 1, 1, 1, 2])

    def order(self, query):
        if self.chance(.4):
            return
        unequal = sorted(inequalities(query.where) - {"__name__"})
        self.random.shuffle(unequal)
        paths = [self.pick(PATHS) for _ in range(self.pick([1, 1, 1, 2, 2, 3]))]
        if self.chance(.7):
            paths = (unequal + paths)[:max(len(unequal), len(paths))]
        if not self.chance(.03):
            paths = list(dict.fromkeys(paths))
        if self.chance(.35):
            paths.append("__name__")
        if self.chance(.01):
            paths.append("b")
        direction = self.random.randrange(3)
        for path in paths:
            order = query.order_by.add()
            order.field.field_path = path
            if self.chance(.3):
                direction = self.random.randrange(3)
            order.direction = direction

    def cursors(self, query):
        ordered = len(query.order_by)
        for cursor, share in ((query.start_at, .25), (query.end_at, .2)):
            if not self.chance(share) or not (ordered or self.chance(.1)):
                continue
            cursor.SetInParent()
            cursor.before = self.chance(.5)
            count = self.random.randint(1, ordered) if ordered else 1
            if self.chance(.04):
                count = self.pick([0, ordered + 1])
            document = self.pick(self.paths) if self.chance(.7) else None
            for index in range(count):
                path = query.order_by[index].field.field_path if index < ordered else "__name__"
                value = None
                if document and path == "__name__":
                    value = Value(reference_value=self.name(document))
                elif document:
                    value = value_at(self.documents[document], path)
                cursor.values.add().CopyFrom(self.operand(path) if value is None else value)

    # Requests

    def request(self):
        draw, = self.random.choices(
            [self.run_query, self.aggregation, self.nearest, self.list_documents,
             self.list_collection_ids, self.partition], [60, 15, 12, 10, 2, 1])
        return draw()

    def run_query(self):
        parent, query = self.query()
        return QueryRequest(parent=parent, structured_query=query)

    def aggregation(self):
        parent, query = self.query()
        if self.chance(.8):
            query.ClearField("select")
        if (query.HasField("start_at") or query.HasField("end_at")) and self.chance(.6):
            # Which documents a limit or an offset leaves depends on the order.
            query.limit.value = self.pick([1, 2, 3, 5, 8])
            query.offset = self.pick([0, 0, 1, 2, 3])
        request = AggregationRequest(parent=parent)
        request.structured_aggregation_query.structured_query.CopyFrom(query)
        count = self.pick([0, 5, 6]) if self.chance(.02) else self.pick([1, 1, 2, 2, 3])
        for index in range(count):
            aggregation = request.structured_aggregation_query.aggregations.add()
            kind = self.pick(["count", "sum", "avg"])
            getattr(aggregation, kind).SetInParent()
            if kind != "count":
                getattr(aggregation, kind).field.field_path = (
                    "__name__" if self.chance(.02) else self.pick(["n", "n", "k", "k", *PATHS]))
            elif self.chance(.4):
                aggregation.count.up_to.value = self.pick([1, 2, 3, 3, 10, 10, 1000, 0, -1])
            if self.chance(.6):
                aggregation.alias = self.pick(
                    ["__x__", "a.b", "a b", "1"] if self.chance(.03) else [f"x{index}", "y"])
        return request

    def nearest(self):
        parent, query = self.query(ordered=self.chance(.05))
        if self.chance(.3):
            query.ClearField("where")
        search = query.find_nearest
        search.vector_field.field_path = "v" if self.chance(.9) else self.pick(["m.a", "a", "t"])
        search.query_vector.CopyFrom(
            self.value() if self.chance(.02) else self.pick([*VECTORS, vector(-1, 2)]))
        search.distance_measure = 0 if self.chance(.01) else self.pick([1, 2, 3])
        search.limit.value = self.pick(
            [0, -1, 1001] if self.chance(.02) else [1, 2, 3, 10, 100, 1000])
        if self.chance(.5):
            search.distance_result_field = self.pick(
                ["__x__", "m.a", "a b", "__name__"] if self.chance(.06) else ["dist", "a", "m"])
        if self.chance(.4):
            search.distance_threshold.value = self.pick(
                [float("nan"), float("inf")] if self.chance(.02)
                else [0, .5, 1, 1.5, 2, -1, 5, 10])
        return QueryRequest(parent=parent, structured_query=query)

    def list_documents(self):
        request = DocumentsRequest(
            parent=self.pick([self.root] * 4 + [
                self.name(f"c/{self.pick(IDS)}"), self.name(f"ghost/{self.pick(IDS)}")]),
            collection_id=self.pick(["c", "c", "c", "c", "d", "d", "\u00e9", "ghost", ""]))
        if self.chance(.5):
            request.page_size = self.pick([1, 2, 5, 10, 300, 1000, -1])
        request.show_missing = self.chance(.3)
        if self.chance(.05 if request.show_missing else .35):
            request.order_by = ", ".join(
                self.pick(["n", "__name__", *PATHS]) + self.pick(["", "", " desc", " asc", " DESC"])
                for _ in range(self.pick([1, 1, 2])))
            if self.chance(.03):
                request.order_by = self.pick(["a,", "a sideways", ",", "a  desc", "a.", " a"])
        if self.chance(.3):
            request.mask.SetInParent()
            for _ in range(self.pick([0, 1, 2])):
                request.mask.field_paths.append(self.pick([*PATHS, "__name__"]))
        return request

    def list_collection_ids(self):
        parent = self.pick([self.root, *(self.name(f"{id_}/{self.pick(IDS)}")
                                         for id_ in ("c", "c", "ghost"))])
        return CollectionIdsRequest(parent=parent, page_size=self.pick([0, 0, 1, 2, 3]))

    def partition(self):
        parent, query = self.query(ordered=self.chance(.1))
        query.ClearField("where")
        return PartitionRequest(
            parent=parent, structured_query=query, partition_count=self.pick([1, 2, 5, 0]))
