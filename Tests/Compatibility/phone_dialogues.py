"""What phones say over Firestore's streams and what they must be told: one dialogue a row.

Even target ids are a user's queries, odd ones are what the SDK itself asks about.
"""

from unittest.mock import ANY

from phones import (
    SERVER_TIMESTAMP, all_of, any_of, array_remove, array_union, believe, close_writes, commit,
    connect, disconnect, doc, documents, expect_added, expect_current, expect_documents,
    expect_ended, expect_mismatch, expect_opened, expect_push_ended, expect_pushed,
    expect_refused, expect_removed, expect_results, expect_snapshot, forget, increment, listen,
    malformed, maximum, on, open_writes, push, query, reference, reopen_writes, reset_server,
    restart_server, resume, resume_with_token_of, say, unlisten)

# Where the server says something else than the contract, by title: what it says.
CONTRADICTIONS = {}


def numbered(count, collection="c"):
    """Writes of documents 0, 1, ... whose field n is their number."""
    return [doc(f"{collection}/{n}").set(n=n) for n in range(count)]


ALPHABET = [doc(f"c/{name}").set(n=n) for n, name in enumerate("abcdef")]


def letters(names):
    return [f"c/{name}" for name in names]


INITIAL = {
    "an empty collection is current at once": [
        listen(2, query("c")),
        expect_added(2),
        expect_current(2),
        expect_snapshot({2: []}, told=[]),
    ],
    "one document": [
        commit(doc("c/a").set(n=1, s="é\U0001F600", none=None, list=[1, 2.5], map={"x": True})),
        listen(2, query("c")),
        expect_snapshot(
            {2: {"c/a": {"n": 1, "s": "é\U0001F600", "none": None, "list": [1, 2.5],
                         "map": {"x": True}}}},
            told=["c/a +2"]),
    ],
    "three hundred documents": [
        commit(*numbered(300)),
        listen(2, query("c")),
        expect_snapshot({2: {f"c/{n}": {"n": n} for n in range(300)}}),
    ],
    "a document of a megabyte": [
        commit(doc("c/a").set(text="x" * 1_000_000)),
        listen(2, query("c")),
        expect_snapshot({2: {"c/a": {"text": "x" * 1_000_000}}}),
    ],
    "a document target": [
        commit(doc("c/a").set(n=1), doc("c/b").set(n=2)),
        listen(2, documents("c/a")),
        expect_snapshot({2: {"c/a": {"n": 1}}}, told=["c/a +2"]),
    ],
    "a document target that does not exist is told as deleted": [
        listen(2, documents("c/a")),
        expect_added(2),
        expect_snapshot({2: []}, told=["c/a deleted -2"]),
    ],
    "a document target that is created and deleted": [
        listen(2, documents("c/a")),
        expect_snapshot({2: []}),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: {"c/a": {"n": 1}}}, told=["c/a +2"]),
        commit(doc("c/a").delete()),
        expect_snapshot({2: []}, told=["c/a deleted -2"]),
    ],
    "several documents in one target": [
        commit(doc("c/a").set(n=1), doc("d/b").set(n=2)),
        listen(2, documents("c/a", "d/b", "c/missing")),
        expect_snapshot(
            {2: ["c/a", "d/b"]}, told=["c/a +2", "d/b +2", "c/missing deleted -2"]),
        commit(doc("c/missing").set(n=3), doc("d/b").delete()),
        expect_snapshot(
            {2: ["c/a", "c/missing"]}, told=["c/missing +2", "d/b deleted -2"]),
    ],
    "a document that is named twice in a target is told once": [
        commit(doc("c/a").set(n=1)),
        listen(2, documents("c/a", "c/a")),
        expect_snapshot({2: ["c/a"]}, told=["c/a +2"]),
    ],
    "a collection group, at every depth": [
        commit(doc("g/a").set(n=1), doc("c/x/g/b").set(n=2), doc("c/x/d/y/g/c").set(n=3),
               doc("c/x").set(n=4), doc("gg/a").set(n=5)),
        listen(2, query("g", group=True)),
        expect_snapshot({2: ["g/a", "c/x/g/b", "c/x/d/y/g/c"]}),
        commit(doc("e/z/g/d").set(n=6), doc("e/z").set(n=7)),
        expect_snapshot({2: ["g/a", "c/x/g/b", "c/x/d/y/g/c", "e/z/g/d"]}, told=["e/z/g/d +2"]),
    ],
    "a collection group below a document": [
        commit(doc("c/x/g/a").set(n=1), doc("c/x/d/y/g/b").set(n=2), doc("c/xx/g/c").set(n=3),
               doc("g/d").set(n=4)),
        listen(2, query("g", group=True, parent="c/x")),
        expect_snapshot({2: ["c/x/g/a", "c/x/d/y/g/b"]}),
    ],
    "a collection below a document, and not its namesakes": [
        commit(doc("c/x/d/a").set(n=1), doc("c/y/d/b").set(n=2), doc("d/c").set(n=3)),
        listen(2, query("d", parent="c/x")),
        expect_snapshot({2: ["c/x/d/a"]}),
        commit(doc("c/y/d/e").set(n=4)),
        commit(doc("c/x/d/f").set(n=5)),
        expect_snapshot({2: ["c/x/d/a", "c/x/d/f"]}, told=["c/x/d/f +2"]),
    ],
    "limit": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["n"], limit=2)),
        expect_snapshot({2: letters("ab")}, told=["c/a +2", "c/b +2"]),
    ],
    "limit with offset": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["n"], limit=2, offset=3)),
        expect_snapshot({2: letters("de")}),
    ],
    "offset alone": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["n"], offset=4)),
        expect_snapshot({2: letters("ef")}),
        commit(doc("c/0").set(n=-1)),
        expect_snapshot({2: letters("def")}, told=["c/d +2"]),
    ],
    "names in descending order": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["-__name__"], limit=2)),
        expect_snapshot({2: letters("ef")}),
        commit(doc("c/g").set(n=6)),
        expect_snapshot({2: letters("fg")}, told=["c/g +2", "c/e -2"]),
    ],
    "a field in descending order": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["-n"], limit=3)),
        expect_snapshot({2: letters("def")}),
    ],
    "cursors that include their values": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["n"], start_at=[1], end_at=[3])),
        expect_snapshot({2: letters("bcd")}),
        commit(doc("c/b").update(n=0), doc("c/x").set(n=2)),
        expect_snapshot({2: letters("cdx")}, told=["c/b -2", "c/x +2"]),
    ],
    "cursors that exclude their values": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["n"], start_after=[1], end_before=[3])),
        expect_snapshot({2: letters("c")}),
    ],
    "a cursor with a name": [
        commit(doc("c/a").set(n=1), doc("c/b").set(n=1), doc("c/c").set(n=1)),
        listen(2, query("c", order_by=["n"], start_after=[1, reference("c/a")])),
        expect_snapshot({2: letters("bc")}),
    ],
    "documents without the field of the order are not told": [
        commit(doc("c/a").set(n=1), doc("c/b").set(m=1)),
        listen(2, query("c", order_by=["n"])),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/b").update(n=None)),
        expect_snapshot({2: ["c/a", "c/b"]}),
    ],
}

FILTERS = {
    f"filter {title}": [
        commit(doc("c/a").set(n=1, tags=["x"]), doc("c/b").set(n=2, tags=["x", "y"]),
               doc("c/c").set(n=3, tags=[]), doc("c/d").set(n=None), doc("c/e").set(tags="x"),
               doc("c/f").set(n="1")),
        listen(2, query("c", where=where)),
        expect_snapshot({2: letters(names)}),
        # One that matches in every row enters by a change, beside one that never does.
        commit(doc("c/g").set(other=1), doc("c/h").set(n=2, tags=["x", "z"])),
        expect_snapshot({2: letters(names + "h")}, told=["c/h +2"]),
        commit(doc("c/h").set(other=1)),
        expect_snapshot({2: letters(names)}, told=["c/h -2"]),
    ]
    for title, where, names in [
        ("==", ("n", "==", 2), "b"),
        ("== of another type of number", ("n", "==", 2.0), "b"),
        (">", ("n", ">", 1), "bc"),
        ("<=", ("n", "<=", 2), "ab"),
        ("!=", ("n", "!=", 1), "bcf"),
        ("!= null", ("n", "!=", None), "abcf"),
        ("in", ("n", "in", [2, "1", 7]), "bf"),
        ("not-in", ("n", "not-in", [1, "1"]), "bc"),
        ("array-contains", ("tags", "array-contains", "x"), "ab"),
        ("array-contains-any", ("tags", "array-contains-any", ["x", "z"]), "ab"),
        ("or", any_of(("n", "==", 1), ("n", "==", 2)), "ab"),
        ("and", all_of(("n", ">=", 2), ("tags", "array-contains", "x")), "b"),
        ("or within and",
         all_of(("tags", "array-contains", "x"), any_of(("n", "<", 2), ("n", "==", 2))), "ab"),
    ]
}

FILTERS |= {
    "filter == null": [
        commit(doc("c/a").set(n=None), doc("c/b").set(n=0), doc("c/c").set(m=1)),
        listen(2, query("c", where=("n", "==", None))),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/b").update(n=None), doc("c/a").update(n=1)),
        expect_snapshot({2: ["c/b"]}, told=["c/a -2", "c/b +2"]),
    ],
    "filter by names": [
        commit(*ALPHABET),
        listen(2, query("c", where=("__name__", "in", [reference("c/a"), reference("c/x")]))),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/x").set(n=9), doc("c/y").set(n=9)),
        expect_snapshot({2: ["c/a", "c/x"]}, told=["c/x +2"]),
    ],
    "filter by a field within a map": [
        commit(doc("c/a").set(m={"n": 1}), doc("c/b").set(m={"n": 2})),
        listen(2, query("c", where=("m.n", "==", 1))),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/b").update(m={"n": 1})),
        expect_snapshot({2: ["c/a", "c/b"]}, told=["c/b +2"]),
    ],
}

DELTAS = {
    "a document enters, changes, leaves the filter and is deleted": [
        listen(2, query("c", where=("n", ">", 0))),
        expect_snapshot({2: []}),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: {"c/a": {"n": 1}}}, told=["c/a +2"]),
        commit(doc("c/a").update(n=2)),
        expect_snapshot({2: {"c/a": {"n": 2}}}, told=["c/a +2"]),
        commit(doc("c/a").update(n=0)),
        expect_snapshot({2: []}, told=["c/a -2"]),
        commit(doc("c/a").update(n=3)),
        expect_snapshot({2: {"c/a": {"n": 3}}}, told=["c/a +2"]),
        commit(doc("c/a").delete()),
        expect_snapshot({2: []}, told=["c/a deleted -2"]),
    ],
    "a deleted document comes back as another one": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/a").delete()),
        expect_snapshot({2: []}),
        commit(doc("c/a").create(n=1)),
        expect_snapshot({2: {"c/a": {"n": 1}}}, told=["c/a +2"]),
    ],
    "a document that is deleted and created in one commit is told once": [
        commit(doc("c/a").set(n=1, m=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/a").delete(), doc("c/a").set(n=2)),
        expect_snapshot({2: {"c/a": {"n": 2}}}, told=["c/a +2"]),
    ],
    "a document that comes and goes in one commit is not told": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        commit(doc("c/a").set(n=1), doc("c/b").set(n=1), doc("c/a").delete()),
        expect_snapshot({2: ["c/b"]}, told=["c/b +2"]),
    ],
    "a write that changes nothing is not told": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/a").set(n=1)),
        commit(doc("c/a").update(n=1)),
        commit(doc("c/missing").delete()),
        commit(doc("c/b").set(n=2)),
        expect_snapshot({2: ["c/a", "c/b"]}, told=["c/b +2"]),
    ],
    "what a document of another collection does is not told": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        commit(doc("d/a").set(n=1), doc("c/a/c/b").set(n=1), doc("cc/a").set(n=1)),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"]}, told=["c/a +2"]),
    ],
    "a failed commit is not told": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        commit(doc("c/a").set(n=1), doc("c/b").update(n=1), fails="NOT_FOUND"),
        commit(doc("c/c").set(n=1)),
        expect_snapshot({2: ["c/c"]}, told=["c/c +2"]),
    ],
    "transforms are told by what they made": [
        commit(doc("c/a").set(n=1, list=[1])),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/a").update(n=increment(2), list=array_union(1, 2), at=SERVER_TIMESTAMP)),
        expect_results(3, None, ANY),
        expect_snapshot({2: {"c/a": {"n": 3, "list": [1, 2], "at": ANY}}}, told=["c/a +2"]),
        commit(doc("c/a").merge(n=maximum(9), list=array_remove(1, 2), at=0)),
        expect_snapshot({2: {"c/a": {"n": 9, "list": [], "at": 0}}}, told=["c/a +2"]),
    ],
    "several writes of one document in one commit are told once": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/a").update(n=2), doc("c/a").update(m=3), doc("c/a").update(n=increment(5))),
        expect_snapshot({2: {"c/a": {"n": 7, "m": 3}}}, told=["c/a +2"]),
    ],
    "two hundred documents of a commit are one snapshot": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        commit(*numbered(200)),
        expect_snapshot({2: [f"c/{n}" for n in range(200)]}),
        commit(*[doc(f"c/{n}").delete() for n in range(200)]),
        expect_snapshot({2: []}, told=[f"c/{n} deleted -2" for n in range(200)]),
    ],
    "fifty commits come in their order": [
        listen(2, documents("c/a")),
        expect_snapshot({2: []}),
        *[step for n in range(50) for step in (
            commit(doc("c/a").set(n=n)), expect_snapshot({2: {"c/a": {"n": n}}}))],
    ],
}

SEVERAL_TARGETS = {
    "documents of several targets in one commit are one snapshot": [
        listen(2, query("c")),
        listen(4, query("d")),
        listen(6, documents("e/a")),
        expect_snapshot({2: [], 4: [], 6: []}),
        commit(doc("c/a").set(n=1), doc("d/a").set(n=1), doc("e/a").set(n=1), doc("f/a").set()),
        expect_snapshot(
            {2: ["c/a"], 4: ["d/a"], 6: ["e/a"]}, told=["c/a +2", "d/a +4", "e/a +6"]),
        commit(doc("c/a").delete(), doc("d/a").update(n=2), doc("e/a").delete()),
        expect_snapshot(
            {2: [], 4: {"d/a": {"n": 2}}, 6: []},
            told=["c/a deleted -2", "d/a +4", "e/a deleted -6"]),
    ],
    "a document in two targets is told once": [
        listen(2, query("c")),
        listen(4, query("c", where=("n", ">", 0))),
        expect_snapshot({2: [], 4: []}),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"], 4: ["c/a"]}, told=["c/a +2 +4"]),
    ],
    "a document leaves one target and stays in the other": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        listen(4, query("c", where=("n", ">", 0))),
        expect_snapshot({2: ["c/a"], 4: ["c/a"]}),
        commit(doc("c/a").update(n=0)),
        expect_snapshot({2: {"c/a": {"n": 0}}, 4: []}, told=["c/a +2 -4"]),
        commit(doc("c/a").update(n=5)),
        expect_snapshot({2: {"c/a": {"n": 5}}, 4: ["c/a"]}, told=["c/a +2 +4"]),
        commit(doc("c/a").delete()),
        expect_snapshot({2: [], 4: []}, told=["c/a deleted -2 -4"]),
    ],
    "a document moves from one target to the other": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c", where=("n", "==", 1))),
        listen(4, query("c", where=("n", "==", 2))),
        expect_snapshot({2: ["c/a"], 4: []}),
        commit(doc("c/a").update(n=2)),
        expect_snapshot({2: [], 4: ["c/a"]}, told=["c/a +4 -2"]),
    ],
    "a query, its window and its document at once": [
        commit(*ALPHABET),
        listen(2, query("c")),
        listen(4, query("c", order_by=["n"], limit=1)),
        listen(6, documents("c/a")),
        expect_snapshot({2: letters("abcdef"), 4: ["c/a"], 6: ["c/a"]}),
        commit(doc("c/a").delete()),
        expect_snapshot(
            {2: letters("bcdef"), 4: ["c/b"], 6: []}, told=["c/a deleted -2 -4 -6", "c/b +4"]),
    ],
    "two phones with the same query": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        on("tablet", listen(8, query("c")), expect_snapshot({8: []})),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"]}, told=["c/a +2"]),
        on("tablet", expect_snapshot({8: ["c/a"]}, told=["c/a +8"]), disconnect()),
        commit(doc("c/b").set(n=1)),
        expect_snapshot({2: ["c/a", "c/b"]}, told=["c/b +2"]),
    ],
    "the same query in two targets": [
        listen(2, query("c")),
        listen(4, query("c")),
        expect_snapshot({2: [], 4: []}),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"], 4: ["c/a"]}, told=["c/a +2 +4"]),
        unlisten(2),
        expect_removed(2),
        commit(doc("c/b").set(n=1)),
        expect_snapshot({4: ["c/a", "c/b"]}, told=["c/b +4"]),
    ],
}

FIRST_TWO = query("c", order_by=["n"], limit=2)
# How the SDKs ask for the last two of ascending n.
LAST_TWO = query("c", order_by=["-n", "-__name__"], limit=2)

WINDOWS = {
    "a window is not full yet": [
        listen(2, FIRST_TWO),
        expect_snapshot({2: []}),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"]}, told=["c/a +2"]),
        commit(doc("c/a").delete()),
        expect_snapshot({2: []}, told=["c/a deleted -2"]),
    ],
    "a document is pushed out of the window": [
        commit(*ALPHABET),
        listen(2, FIRST_TWO),
        expect_snapshot({2: letters("ab")}),
        commit(doc("c/0").set(n=-1)),
        expect_snapshot({2: letters("0a")}, told=["c/0 +2", "c/b -2"]),
    ],
    "the window is refilled after a deletion": [
        commit(*ALPHABET),
        listen(2, FIRST_TWO),
        expect_snapshot({2: letters("ab")}),
        commit(doc("c/a").delete()),
        expect_snapshot({2: letters("bc")}, told=["c/a deleted -2", "c/c +2"]),
    ],
    "the window is refilled by several": [
        commit(*ALPHABET),
        listen(2, FIRST_TWO),
        expect_snapshot({2: letters("ab")}),
        commit(doc("c/a").delete(), doc("c/b").delete(), doc("c/c").delete()),
        expect_snapshot(
            {2: letters("de")},
            told=["c/a deleted -2", "c/b deleted -2", "c/d +2", "c/e +2"]),
    ],
    "the window is refilled from far behind": [
        commit(*numbered(200)),
        listen(2, query("c", order_by=["n"], limit=50)),
        expect_snapshot({2: [f"c/{n}" for n in range(50)]}),
        commit(*[doc(f"c/{n}").delete() for n in range(100)]),
        expect_snapshot({2: [f"c/{n}" for n in range(100, 150)]}),
        commit(*[doc(f"c/{n}").delete() for n in range(100, 180)]),
        expect_snapshot({2: [f"c/{n}" for n in range(180, 200)]}),
    ],
    "a document leaves the window by a change and another moves up": [
        commit(*ALPHABET),
        listen(2, FIRST_TWO),
        expect_snapshot({2: letters("ab")}),
        commit(doc("c/a").update(n=9)),
        expect_snapshot({2: letters("bc")}, told=["c/a -2", "c/c +2"]),
    ],
    "a document moves within the window": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["n"], limit=3)),
        expect_snapshot({2: letters("abc")}),
        commit(doc("c/a").update(n=1.5)),
        expect_snapshot(
            {2: {"c/a": {"n": 1.5}, "c/b": {"n": 1}, "c/c": {"n": 2}}}, told=["c/a +2"]),
    ],
    "what happens behind the window is not told": [
        commit(*ALPHABET),
        listen(2, FIRST_TWO),
        expect_snapshot({2: letters("ab")}),
        commit(doc("c/e").delete(), doc("c/z").set(n=26), doc("c/d").update(n=3.5)),
        commit(doc("c/a").update(m=1)),
        expect_snapshot(
            {2: {"c/a": {"n": 0, "m": 1}, "c/b": {"n": 1}}}, told=["c/a +2"]),
    ],
    "a limit to the last ones": [
        commit(*ALPHABET),
        listen(2, LAST_TWO),
        expect_snapshot({2: letters("ef")}),
        commit(doc("c/g").set(n=6)),
        expect_snapshot({2: letters("fg")}, told=["c/g +2", "c/e -2"]),
        commit(doc("c/f").delete(), doc("c/g").delete()),
        expect_snapshot(
            {2: letters("de")},
            told=["c/f deleted -2", "c/g deleted -2", "c/d +2", "c/e +2"]),
    ],
    "a window of a filter": [
        commit(*ALPHABET),
        listen(2, query("c", where=("n", ">", 0), order_by=["n"], limit=2)),
        expect_snapshot({2: letters("bc")}),
        commit(doc("c/b").update(n=0)),
        expect_snapshot({2: letters("cd")}, told=["c/b -2", "c/d +2"]),
    ],
    "a window with an offset moves as a whole": [
        commit(*ALPHABET),
        listen(2, query("c", order_by=["n"], limit=2, offset=1)),
        expect_snapshot({2: letters("bc")}),
        commit(doc("c/a").delete()),
        expect_snapshot({2: letters("cd")}, told=["c/b -2", "c/d +2"]),
        commit(doc("c/a").set(n=0)),
        expect_snapshot({2: letters("bc")}, told=["c/d -2", "c/b +2"]),
    ],
    "a limit of nothing": [
        commit(*ALPHABET),
        listen(2, query("c", limit=0)),
        expect_snapshot({2: []}, told=[]),
    ],
    "a window of a collection group": [
        commit(doc("x/1/g/a").set(n=1), doc("x/2/g/b").set(n=2), doc("x/3/g/c").set(n=3)),
        listen(2, query("g", group=True, order_by=["n"], limit=2)),
        expect_snapshot({2: ["x/1/g/a", "x/2/g/b"]}),
        commit(doc("x/1/g/a").delete()),
        expect_snapshot({2: ["x/2/g/b", "x/3/g/c"]}, told=["x/1/g/a deleted -2", "x/3/g/c +2"]),
    ],
}

CHURN = {
    "added and removed in one breath": [
        commit(*ALPHABET),
        listen(2, query("c")),
        unlisten(2),
        expect_removed(2),
        listen(4, query("c")),
        expect_snapshot({4: letters("abcdef")}),
    ],
    "removed while the other target goes on": [
        listen(2, query("c")),
        listen(4, query("d")),
        expect_snapshot({2: [], 4: []}),
        unlisten(2),
        expect_removed(2),
        commit(doc("c/a").set(n=1), doc("d/a").set(n=1)),
        expect_snapshot({4: ["d/a"]}, told=["d/a +4"]),
    ],
    "removed and added again with its id": [
        commit(doc("c/a").set(n=1), doc("d/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        unlisten(2),
        listen(2, query("d")),
        expect_added(2),
        expect_snapshot({2: ["d/a"]}),
        commit(doc("c/b").set(n=1)),
        commit(doc("d/b").set(n=1)),
        expect_snapshot({2: ["d/a", "d/b"]}, told=["d/b +2"]),
    ],
    "the same id ten times in one breath": [
        commit(doc("c/a").set(n=1)),
        *[step for _ in range(10) for step in (listen(2, query("c")), unlisten(2))],
        listen(2, query("c")),
        expect_added(2),
        expect_snapshot({2: ["c/a"]}),
    ],
    "an id in use is replaced": [
        commit(doc("c/a").set(n=1), doc("d/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        listen(2, query("d")),
        expect_added(2),
        expect_snapshot({2: ["d/a"]}),
        commit(doc("c/a").update(n=2)),
        commit(doc("d/a").update(n=2)),
        expect_snapshot({2: {"d/a": {"n": 2}}}),
    ],
    "an unknown id is removed": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        unlisten(8),
        expect_removed(8),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"]}),
    ],
    "the server chooses the id of target 0": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        listen(0, query("d")),
        expect_snapshot({2: [], 0: []}),
        commit(doc("d/a").set(n=1)),
        expect_snapshot({2: [], 0: ["d/a"]}),
        unlisten(0),
        expect_removed(0),
    ],
    "a hundred targets on a stream": [
        *[listen(2 * n, query("c", where=("n", "==", n))) for n in range(1, 101)],
        expect_snapshot({2 * n: [] for n in range(1, 101)}),
        commit(*[doc(f"c/{n}").set(n=n) for n in range(1, 101)]),
        expect_snapshot(
            {2 * n: [f"c/{n}"] for n in range(1, 101)},
            told=[f"c/{n} +{2 * n}" for n in range(1, 101)]),
        *[unlisten(2 * n) for n in range(1, 100)],
        expect_removed(*[2 * n for n in range(1, 100)]),
        commit(doc("c/1").delete(), doc("c/100").delete()),
        expect_snapshot({200: []}, told=["c/100 deleted -200"]),
    ],
    "limbo documents beside a query": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        listen(1, documents("c/ghost"), label="limbo-document"),
        listen(3, documents("c/a"), label="limbo-document"),
        expect_snapshot({1: [], 3: ["c/a"]}, told=["c/ghost deleted -1", "c/a +3"]),
        unlisten(1),
        unlisten(3),
        expect_removed(1, 3),
        commit(doc("c/a").update(n=2)),
        expect_snapshot({2: {"c/a": {"n": 2}}}, told=["c/a +2"]),
    ],
    "once ends after its documents": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        listen(4, query("c"), once=True),
        expect_snapshot({2: ["c/a"], 4: ["c/a"]}),
        expect_removed(4),
        commit(doc("c/b").set(n=1)),
        expect_snapshot({2: ["c/a", "c/b"]}, told=["c/b +2"]),
    ],
    "the stream ends well while targets are read": [
        commit(*numbered(300)),
        *[listen(2 * n, query("c", where=("n", ">=", n))) for n in range(1, 30)],
    ],
    "the stream breaks while targets are read": [
        commit(*numbered(300)),
        *[listen(2 * n, query("c", where=("n", ">=", n))) for n in range(1, 30)],
        disconnect(),
        listen(2, query("c", where=("n", ">=", 299))),
        expect_snapshot({2: ["c/299"]}),
    ],
}


def cut_in_half(token):
    return token[:len(token) // 2]


def garbage(token):
    return bytes(255 - byte for byte in token)


def prolonged(token):
    return token + b"\0"


def unchanged(seconds, nanos):
    return seconds, nanos


def with_nanoseconds(seconds, nanos):
    return seconds, nanos + 999


def hours_ago(hours):
    return lambda seconds, nanos: (seconds - 3600 * hours, nanos)


RESUME = {
    "resume: nothing has changed": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        resume(2),
        expect_added(2),
        expect_snapshot({2: letters("abcdef")}, told=[]),
    ],
    "resume: only what has changed is told": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        commit(doc("c/a").update(n=7), doc("c/g").set(n=8)),
        resume(2),
        expect_snapshot({2: letters("abcdefg")}, told=["c/a +2", "c/g +2"]),
    ],
    "resume: a document was deleted": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        commit(doc("c/a").delete()),
        resume(2),
        expect_snapshot({2: letters("bcdef")}, told=["c/a deleted -2"]),
    ],
    "resume: a document has left the filter and another has entered": [
        commit(*ALPHABET),
        listen(2, query("c", where=("n", ">", 2))),
        expect_snapshot({2: letters("def")}),
        disconnect(),
        commit(doc("c/d").update(n=0), doc("c/a").update(n=9)),
        resume(2),
        expect_snapshot({2: letters("aef")}, told=["c/d -2", "c/a +2"]),
    ],
    "resume: a document has come and gone": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        commit(doc("c/x").set(n=1)),
        commit(doc("c/x").delete()),
        commit(doc("c/a").update(n=5)),
        resume(2),
        expect_snapshot({2: letters("abcdef")}),
    ],
    "resume: a window": [
        commit(*ALPHABET),
        listen(2, FIRST_TWO),
        expect_snapshot({2: letters("ab")}),
        disconnect(),
        commit(doc("c/0").set(n=-1), doc("c/a").delete(), doc("c/c").update(n=0.5)),
        resume(2),
        expect_snapshot({2: letters("0c")}),
    ],
    "resume: document targets": [
        commit(doc("c/a").set(n=1), doc("c/b").set(n=1)),
        listen(2, documents("c/a")),
        listen(4, documents("c/b")),
        listen(6, documents("c/missing")),
        expect_snapshot({2: ["c/a"], 4: ["c/b"], 6: []}),
        disconnect(),
        commit(doc("c/b").delete(), doc("c/missing").set(n=1)),
        resume(2, 4, 6),
        expect_snapshot({2: ["c/a"], 4: [], 6: ["c/missing"]}),
    ],
    "resume: on the same stream, after the target was removed": [
        commit(doc("c/a").set(n=1), doc("c/b").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: letters("ab")}),
        unlisten(2),
        expect_removed(2),
        commit(doc("c/a").update(n=2)),
        resume(2),
        expect_snapshot({2: letters("ab")}, told=["c/a +2"]),
    ],
    "resume: with the token of a snapshot that told nothing": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        listen(4, query("d")),
        expect_snapshot({2: ["c/a"], 4: []}),
        commit(doc("d/a").set(n=1)),
        expect_snapshot({2: ["c/a"], 4: ["d/a"]}),
        disconnect(),
        commit(doc("c/b").set(n=1), doc("d/b").set(n=1)),
        resume(2, 4),
        expect_snapshot({2: letters("ab"), 4: ["d/a", "d/b"]}),
    ],
    "resume: goes on live": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        disconnect(),
        resume(2),
        expect_snapshot({2: ["c/a"]}),
        commit(doc("c/b").set(n=1)),
        expect_snapshot({2: letters("ab")}, told=["c/b +2"]),
        disconnect(),
        commit(doc("c/c").set(n=1)),
        resume(2),
        expect_snapshot({2: letters("abc")}, told=["c/c +2"]),
    ],
    "resume: after the data was reset": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        reset_server(),
        commit(doc("c/x").set(n=1)),
        resume(2),
        expect_snapshot({2: ["c/x"]}),
    ],
    "the data is reset under a listener": [
        commit(*ALPHABET),
        listen(2, query("c")),
        listen(4, query("c", order_by=["n"], limit=2)),
        listen(6, documents("c/a")),
        expect_snapshot({2: letters("abcdef"), 4: letters("ab"), 6: ["c/a"]}),
        reset_server(),
        expect_snapshot({2: [], 4: [], 6: []}),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"], 4: ["c/a"], 6: ["c/a"]}),
    ],
    "resume: after the server's restart": [
        commit(*ALPHABET),
        listen(2, query("c")),
        listen(4, query("c", order_by=["n"], limit=2)),
        expect_snapshot({2: letters("abcdef"), 4: letters("ab")}),
        commit(doc("c/b").update(n=7)),
        expect_snapshot({2: letters("abcdef"), 4: letters("ac")}),
        commit(doc("c/g").set(n=6)),
        expect_snapshot({2: letters("abcdefg"), 4: letters("ac")}),
        disconnect(),
        commit(doc("c/a").delete()),
        restart_server(),
        commit(doc("c/d").update(m=1)),
        resume(2),
        expect_snapshot({2: letters("bcdefg")}, told=["c/a deleted -2", "c/d +2"]),
        resume(4),
        expect_snapshot({4: letters("cd")}),
    ],
    "resume: after the server has begun anew": [
        commit(*ALPHABET),
        listen(2, query("c")),
        listen(4, documents("c/a")),
        expect_snapshot({2: letters("abcdef"), 4: ["c/a"]}),
        restart_server(anew=True),
        commit(doc("c/x").set(n=1)),
        resume(2, 4),
        expect_snapshot({2: ["c/x"], 4: []}),
    ],
    "resume: the expected count is right": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        resume(2, expected_count=6),
        expect_snapshot({2: letters("abcdef")}, told=[]),
    ],
    "resume: a filter finds what should not be there, and limbo says why": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        believe(2, "c/ghost"),
        resume(2),
        expect_snapshot({2: letters("abcdef")}, told=["2 has 6"]),
        listen(1, documents("c/ghost"), label="limbo-document"),
        expect_snapshot({1: []}, told=["c/ghost deleted -1"]),
        unlisten(1),
        expect_removed(1),
    ],
    "resume: a filter counts what has changed meanwhile, too": [
        commit(*ALPHABET),
        listen(2, query("c", where=("n", ">", 0))),
        expect_snapshot({2: letters("bcdef")}),
        disconnect(),
        believe(2, "c/ghost"),
        commit(doc("c/b").delete(), doc("c/c").update(n=0), doc("c/x").set(n=9)),
        resume(2),
        expect_snapshot({2: letters("defx")}),
    ],
    "resume: a hundred ghosts among a hundred documents": [
        commit(*numbered(100)),
        listen(2, query("c")),
        expect_snapshot({2: [f"c/{n}" for n in range(100)]}),
        disconnect(),
        *[believe(2, f"c/ghost{n}") for n in range(100)],
        resume(2),
        expect_snapshot({2: [f"c/{n}" for n in range(100)]}, told=["2 has 100"]),
    ],
    "resume: a phone that has lost a document begins anew": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        forget(2, "c/b"),
        resume(2),
        expect_mismatch(2, "existence-filter-mismatch-bloom"),
        expect_added(2),
        expect_snapshot({2: letters("abcdef")}),
    ],
    "resume: the documents of a filter's target are all gone": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        disconnect(),
        believe(2, "c/ghost"),
        commit(doc("c/a").delete()),
        resume(2),
        expect_mismatch(2, "existence-filter-mismatch"),
        expect_snapshot({2: []}),
    ],
    "resume: a filter of a window": [
        commit(*ALPHABET),
        listen(2, FIRST_TWO),
        expect_snapshot({2: letters("ab")}),
        disconnect(),
        believe(2, "c/ghost"),
        resume(2),
        expect_snapshot({2: letters("ab")}, told=["2 has 2"]),
    ],
    "resume: a filter of a document target": [
        commit(doc("c/a").set(n=1)),
        listen(2, documents("c/a")),
        expect_snapshot({2: ["c/a"]}),
        disconnect(),
        commit(doc("c/a").delete()),
        resume(2, expected_count=0),
        expect_snapshot({2: []}, told=["c/a deleted -2", "2 has 0"]),
    ],
    "resume by read time": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        commit(doc("c/a").delete(), doc("c/b").update(n=7)),
        resume(2, read_time=unchanged),
        expect_snapshot({2: letters("bcdef")}, told=["c/a deleted -2", "c/b +2"]),
    ],
    "resume by a read time of nanoseconds": [
        commit(*ALPHABET),
        listen(2, query("c")),
        expect_snapshot({2: letters("abcdef")}),
        disconnect(),
        commit(doc("c/a").delete()),
        resume(2, read_time=with_nanoseconds),
        expect_snapshot({2: letters("bcdef")}),
    ],
    "resume by a read time that is too old": [
        commit(*ALPHABET),
        listen(2, query("c")),
        listen(4, FIRST_TWO),
        listen(6, documents("c/a")),
        expect_snapshot({2: letters("abcdef"), 4: letters("ab"), 6: ["c/a"]}),
        disconnect(),
        commit(doc("c/a").delete()),
        resume(2, 4, 6, read_time=hours_ago(48)),
        expect_snapshot({2: letters("bcdef"), 4: letters("bc"), 6: []}),
    ],
    "resume by a read time of the future": [
        listen(2, query("c")),
        listen(4, query("d")),
        expect_snapshot({2: [], 4: []}),
        disconnect(),
        resume(4),
        resume(2, read_time=hours_ago(-1)),
        expect_refused(2),
        expect_snapshot({4: []}),
        commit(doc("d/a").set(n=1)),
        expect_snapshot({4: ["d/a"]}),
    ],
}

RESUME |= {
    f"resume with a token that is {title}": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        listen(4, query("d")),
        expect_snapshot({2: ["c/a"], 4: []}),
        disconnect(),
        resume(2, token=damage),
        resume(4),
        expect_refused(2),
        expect_snapshot({4: []}),
        commit(doc("d/a").set(n=1)),
        expect_snapshot({4: ["d/a"]}),
        # The phone begins anew.
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
    ]
    for title, damage in [
        ("cut in half", cut_in_half), ("garbage", garbage), ("too long", prolonged)]
}

RESUME |= {
    "resume with a token of another database": [
        on("tablet", connect(database="b"), listen(2, query("c")), expect_snapshot({2: []})),
        listen(2, query("c")),
        listen(4, query("d")),
        expect_snapshot({2: [], 4: []}),
        unlisten(2),
        expect_removed(2),
        resume_with_token_of("tablet", 2),
        expect_refused(2),
        commit(doc("d/a").set(n=1)),
        expect_snapshot({4: ["d/a"]}),
    ],
    "resume with a token of another target": [
        commit(doc("c/a").set(n=1), doc("d/a").set(n=1)),
        on("tablet", listen(2, query("c")), expect_snapshot({2: ["c/a"]})),
        listen(2, query("d")),
        expect_snapshot({2: ["d/a"]}),
        disconnect(),
        commit(doc("d/a").delete(), doc("d/b").set(n=1)),
        resume_with_token_of("tablet", 2),
        expect_snapshot({2: ["d/b"]}),
    ],
}

OTHER_PROJECT = "projects/other/databases/(default)/documents"

BAD_TARGETS = {
    f"bad target: {title}": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        listen(4, target),
        expect_refused(4),
        commit(doc("c/a").set(n=1)),
        expect_snapshot({2: ["c/a"]}, told=["c/a +2"]),
        listen(4, query("c")),
        expect_snapshot({2: ["c/a"], 4: ["c/a"]}),
    ]
    for title, target in [
        ("a document's name is a collection's", documents("c")),
        ("a document's name has an empty part", documents("c//a/b")),
        ("a document's id is reserved", documents("c/__a__")),
        ("a document's id is dots", documents("c/..")),
        ("a document's name is none", malformed(documents={"documents": ["hello"]})),
        ("a document of another project", documents(f"{OTHER_PROJECT}/c/a")),
        ("no documents", malformed(documents={})),
        ("one bad document among good ones", documents("c/a", "c")),
        ("a query's parent is a collection", query("c", parent="c")),
        ("a query's parent of another project", query("c", parent=OTHER_PROJECT)),
        ("a query's parent is none", malformed(query={
            "parent": "hello", "structured_query": {"from_": [{"collection_id": "c"}]}})),
        ("no parent", malformed(query={
            "structured_query": {"from_": [{"collection_id": "c"}]}})),
        ("a collection's id has a slash", query("c/d")),
        ("no structured query", malformed(query={"parent": OTHER_PROJECT})),
        ("neither a query nor documents", malformed()),
        ("a negative limit", query("c", limit=-1)),
        ("a negative offset", query("c", offset=-1)),
        ("an unknown operator", query("c", where=("n", 99, 1))),
        ("an empty composite filter", query("c", where=all_of())),
        ("two != filters", query("c", where=all_of(("n", "!=", 1), ("m", "!=", 1)))),
        ("not-in beside in", query("c", where=all_of(("n", "in", [1]), ("m", "not-in", [1])))),
        ("in without values", query("c", where=("n", "in", []))),
        ("in with a single value", query("c", where=("n", "in", 1))),
        ("not-in with eleven values", query("c", where=("n", "not-in", list(range(11))))),
        ("thirty-one disjunctions", query("c", where=any_of(
            *[("n", "==", n) for n in range(31)]))),
        ("two array-contains", query("c", where=all_of(
            ("tags", "array-contains", 1), ("tags", "array-contains", 2)))),
        ("a name that is compared to a text", query("c", where=("__name__", "==", "a"))),
        ("a field path that is none", query("c", where=("a..b", "==", 1))),
        ("an order by one field twice", query("c", order_by=["n", "-n"])),
        ("an order after the name", query("c", order_by=["__name__", "n", "__name__"])),
        ("a cursor of more values than orders", query("c", order_by=["n"], start_at=[1, 2, 3])),
        ("a cursor whose name is a text", query("c", order_by=["n"], start_at=[1, "a"])),
    ]
}

BAD_TARGETS |= {
    "bad target: an id in use is replaced by it": [
        listen(2, query("c")),
        listen(4, query("d")),
        expect_snapshot({2: [], 4: []}),
        listen(2, query("c", limit=-1)),
        expect_refused(2),
        commit(doc("c/a").set(n=1)),
        commit(doc("d/a").set(n=1)),
        expect_snapshot({4: ["d/a"]}, told=["d/a +4"]),
    ],
    "bad target: it is removed all the same": [
        listen(2, query("c", limit=-1)),
        expect_refused(2),
        listen(4, query("c")),
        expect_snapshot({4: []}),
    ],
}

OTHER_DATABASE = "projects/demo-psst/databases/other"

BAD_STREAMS = {
    f"bad stream: {title}": [
        commit(doc("c/a").set(n=1)),
        *opening,
        say(**message),
        expect_ended("INVALID_ARGUMENT"),
        # The server lives on.
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
    ]
    for title, opening, message in [
        ("no database", [], {"database": "", "add_target": {"target_id": 2}}),
        ("a database that is none", [], {"database": "hello", "add_target": {"target_id": 2}}),
        ("a database's id that is none", [],
         {"database": "projects/demo-psst/databases/", "add_target": {"target_id": 2}}),
        ("another database later", [listen(2, query("c")), expect_snapshot({2: ["c/a"]})],
         {"database": OTHER_DATABASE, "remove_target": 2}),
        ("neither add nor remove", [], {}),
        ("neither add nor remove later", [listen(2, query("c")), expect_snapshot({2: ["c/a"]})],
         {}),
    ]
}

WRITES = {
    "write: a handshake, a commit, and the end": [
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=1), doc("c/b").set(n=2)),
        expect_pushed(),
        close_writes(),
        expect_push_ended("OK"),
        expect_documents({"c/a": {"n": 1}, "c/b": {"n": 2}}),
    ],
    "write: ten in flight are answered in their order": [
        open_writes(),
        expect_opened(),
        *[push(doc("c/a").merge(n=increment(1))) for _ in range(10)],
        *[step for n in range(1, 11) for step in (expect_pushed(), expect_results(n))],
        expect_documents({"c/a": {"n": 10}}),
    ],
    "write: a hundred in flight, then the end": [
        open_writes(),
        expect_opened(),
        *[push(doc(f"c/{n}").set(n=n)) for n in range(100)],
        close_writes(),
        expect_pushed(100),
        expect_push_ended("OK"),
        expect_documents({f"c/{n}": {"n": n} for n in range(100)}),
    ],
    "write: tokens go on": [
        open_writes(),
        expect_opened(),
        *[step for n in range(5) for step in (push(doc("c/a").set(n=n)), expect_pushed())],
    ],
    "write: nothing to write has a commit time": [
        open_writes(),
        expect_opened(),
        push(),
        expect_pushed(),
        push(),
        expect_pushed(),
    ],
    "write: a deletion, of a missing document, too": [
        commit(doc("c/a").set(n=1)),
        open_writes(),
        expect_opened(),
        push(doc("c/a").delete(), doc("c/missing").delete()),
        expect_pushed(),
        expect_documents({"c/a": None, "c/missing": None}),
    ],
    "write: an update of a missing document ends the stream, and what came before holds": [
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=1)),
        expect_pushed(),
        push(doc("c/b").set(n=1), doc("c/missing").update(n=1)),
        expect_push_ended("NOT_FOUND"),
        expect_documents({"c/a": {"n": 1}, "c/b": None}),
    ],
    "write: what follows a failure in flight is not made": [
        open_writes(),
        expect_opened(),
        push(doc("c/missing").update(n=1)),
        push(doc("c/a").set(n=1)),
        push(doc("c/b").set(n=1)),
        expect_push_ended("NOT_FOUND"),
        expect_documents({"c/a": None, "c/b": None}),
        # As the SDKs, after they have dropped the first one.
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=1)),
        push(doc("c/b").set(n=1)),
        expect_pushed(2),
        expect_documents({"c/a": {"n": 1}, "c/b": {"n": 1}}),
    ],
    "write: a document exists already": [
        commit(doc("c/a").set(n=1)),
        open_writes(),
        expect_opened(),
        push(doc("c/a").create(n=2)),
        expect_push_ended("ALREADY_EXISTS"),
    ],
    "write: a document is another version": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}}),
        commit(doc("c/a").set(n=2)),
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=3).as_read()),
        expect_push_ended("FAILED_PRECONDITION"),
        expect_documents({"c/a": {"n": 2}}),
    ],
    "write: a bad name": [
        open_writes(),
        expect_opened(),
        push(doc("c").set(n=1)),
        expect_push_ended("INVALID_ARGUMENT"),
    ],
    "write: a document of another database": [
        open_writes(),
        expect_opened(),
        push(doc(f"{OTHER_PROJECT}/c/a").set(n=1)),
        expect_push_ended("INVALID_ARGUMENT"),
    ],
    "write: a document that is too large": [
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(text="x" * 1_100_000)),
        expect_push_ended("INVALID_ARGUMENT"),
    ],
    "write: writes on the first message are refused": [
        open_writes(doc("c/a").set(n=1)),
        expect_push_ended("INVALID_ARGUMENT"),
        expect_documents({"c/a": None}),
    ],
    "write: no database": [
        open_writes(named=False),
        expect_push_ended("INVALID_ARGUMENT"),
    ],
    "write: another database later": [
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=1), database="b"),
        expect_push_ended("INVALID_ARGUMENT"),
        expect_documents({"c/a": None}),
    ],
    "write: a stream is not resumed": [
        open_writes(),
        expect_opened(),
        reopen_writes(),
        expect_push_ended("ABORTED"),
    ],
    "write: a stream is not resumed by its token alone": [
        open_writes(),
        expect_opened(),
        reopen_writes(with_id=False),
        expect_push_ended("ABORTED"),
    ],
    "write: an id without a token is a fresh handshake": [
        open_writes(),
        expect_opened(),
        reopen_writes(with_token=False),
        expect_opened(),
        push(doc("c/a").set(n=1)),
        expect_pushed(),
    ],
    "write: a token that is none": [
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=1), token=b"hello"),
        expect_push_ended("INVALID_ARGUMENT"),
        expect_documents({"c/a": None}),
    ],
    "write: several streams at once": [
        *[on(name, open_writes(), expect_opened()) for name in "xyz"],
        *[on(name, *[push(doc("c/a").merge(n=increment(1))) for _ in range(10)])
          for name in "xyz"],
        *[on(name, expect_pushed(10)) for name in "zxy"],
        expect_documents({"c/a": {"n": 30}}),
    ],
    "write: verify": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}, "c/missing": None}),
        open_writes(),
        expect_opened(),
        push(doc("c/a").verify().as_read(), doc("c/missing").verify().as_read(),
             doc("c/b").set(n=2)),
        expect_pushed(),
        expect_documents({"c/b": {"n": 2}, "c/missing": None}),
        push(doc("c/missing").verify().if_exists(True), doc("c/b").set(n=3)),
        expect_push_ended("NOT_FOUND"),
        expect_documents({"c/b": {"n": 2}}),
    ],
    "write: what transforms have made": [
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=increment(3), at=SERVER_TIMESTAMP, list=array_union(1, 1)),
             doc("c/a").update(n=increment(0.5)),
             doc("c/b").set(n=1)),
        expect_pushed(),
        expect_results(3, ANY, None, 3.5),
        expect_documents({"c/a": {"n": 3.5, "at": ANY, "list": [1]}, "c/b": {"n": 1}}),
    ],
    "write: no-op writes are answered": [
        commit(doc("c/a").set(n=1)),
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=1)),
        expect_pushed(),
        push(doc("c/a").merge()),
        expect_pushed(),
        push(doc("c/b").merge()),
        expect_pushed(),
        expect_documents({"c/a": {"n": 1}, "c/b": {}}),
    ],
    "write: the listener sees each push at its version": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        open_writes(),
        expect_opened(),
        push(doc("c/a").set(n=1)),
        expect_pushed(),
        expect_snapshot({2: {"c/a": {"n": 1}}}, told=["c/a +2"]),
        push(doc("c/a").update(n=2), doc("c/b").set(n=2)),
        expect_pushed(),
        expect_snapshot({2: {"c/a": {"n": 2}, "c/b": {"n": 2}}}, told=["c/a +2", "c/b +2"]),
        push(doc("c/a").delete()),
        expect_pushed(),
        expect_snapshot({2: {"c/b": {"n": 2}}}, told=["c/a deleted -2"]),
    ],
    "write: one phone writes what the other one sees": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        on("tablet", open_writes(), expect_opened(), push(doc("c/a").set(n=1)), expect_pushed()),
        expect_snapshot({2: {"c/a": {"n": 1}}}),
        on("tablet", push(doc("c/missing").update(n=1)), expect_push_ended("NOT_FOUND")),
        commit(doc("c/b").set(n=1)),
        expect_snapshot({2: ["c/a", "c/b"]}, told=["c/b +2"]),
    ],
}

TRANSACTIONS = {
    "transaction: a document is changed as it was read": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}, "c/b": None}),
        commit(doc("c/a").update(n=2).as_read(), doc("c/b").set(n=1).as_read()),
        expect_documents({"c/a": {"n": 2}, "c/b": {"n": 1}}),
    ],
    "transaction: a conflict can be tried again": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}}),
        commit(doc("c/a").set(n=5)),
        commit(doc("c/a").update(n=2).as_read(), fails="FAILED_PRECONDITION"),
        expect_documents({"c/a": {"n": 5}}),
        commit(doc("c/a").update(n=6).as_read()),
        expect_documents({"c/a": {"n": 6}}),
    ],
    "transaction: a document was deleted since it was read": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}}),
        commit(doc("c/a").delete()),
        commit(doc("c/a").set(n=2).as_read(), fails="FAILED_PRECONDITION"),
        expect_documents({"c/a": None}),
        commit(doc("c/a").set(n=2).as_read()),
    ],
    "transaction: a missing document was created since": [
        expect_documents({"c/a": None}),
        commit(doc("c/a").set(n=1)),
        commit(doc("c/a").set(n=2).as_read(), fails="ALREADY_EXISTS"),
        expect_documents({"c/a": {"n": 1}}),
    ],
    "transaction: what was only read is verified": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}, "c/b": None}),
        commit(doc("c/a").verify().as_read(), doc("c/b").verify().as_read(), doc("c/c").set(n=1)),
        commit(doc("c/a").set(n=2)),
        commit(doc("c/a").verify().as_read(), doc("c/c").set(n=2), fails="FAILED_PRECONDITION"),
        expect_documents({"c/c": {"n": 1}}),
    ],
    "transaction: a verified document is not told": [
        commit(doc("c/a").set(n=1)),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        expect_documents({"c/a": {"n": 1}}),
        commit(doc("c/a").verify().as_read(), doc("c/b").set(n=1)),
        expect_snapshot({2: ["c/a", "c/b"]}, told=["c/b +2"]),
    ],
    "transaction: an update of what was not read needs it to exist": [
        commit(doc("c/a").update(n=1), fails="NOT_FOUND"),
        commit(doc("c/a").set(n=1), doc("c/a").update(m=1)),
        expect_documents({"c/a": {"n": 1, "m": 1}}),
    ],
    "transaction: only the first write of a document is as it was read": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}}),
        commit(doc("c/a").update(n=2).as_read(), doc("c/a").update(m=3)),
        expect_documents({"c/a": {"n": 2, "m": 3}}),
    ],
    "transaction: nothing but reads": [
        commit(doc("c/a").set(n=1)),
        expect_documents({"c/a": {"n": 1}}),
        commit(doc("c/a").verify().as_read()),
        commit(),
    ],
}

DATABASES = {
    "two databases know nothing of each other": [
        listen(2, query("c")),
        expect_snapshot({2: []}),
        on("tablet", connect(database="b"), listen(2, query("c")), expect_snapshot({2: []})),
        commit(doc("c/a").set(n=1), database="b"),
        commit(doc("c/b").set(n=2)),
        expect_snapshot({2: {"c/b": {"n": 2}}}, told=["c/b +2"]),
        on("tablet", expect_snapshot({2: {"c/a": {"n": 1}}}, told=["c/a +2"])),
        expect_documents({"c/a": None}),
        expect_documents({"c/a": {"n": 1}}, database="b"),
    ],
    "a named database beside the default one": [
        commit(doc("phones/a").delete(), database="(default)"),
        on("tablet", connect(database="(default)"), listen(2, documents("phones/a")),
           expect_snapshot({2: []})),
        listen(2, documents("phones/a")),
        expect_snapshot({2: []}),
        commit(doc("phones/a").set(n=1), database="(default)"),
        on("tablet", expect_snapshot({2: {"phones/a": {"n": 1}}})),
        commit(doc("phones/a").set(n=2)),
        expect_snapshot({2: {"phones/a": {"n": 2}}}, told=["phones/a +2"]),
        commit(doc("phones/a").delete(), database="(default)"),
        on("tablet", expect_snapshot({2: []})),
    ],
    "a reset of one database leaves the other": [
        commit(doc("c/a").set(n=1)),
        commit(doc("c/a").set(n=1), database="b"),
        listen(2, query("c")),
        expect_snapshot({2: ["c/a"]}),
        on("tablet", connect(database="b"), listen(2, query("c")), expect_snapshot({2: ["c/a"]})),
        reset_server(database="b"),
        on("tablet", expect_snapshot({2: []})),
        commit(doc("c/b").set(n=1)),
        expect_snapshot({2: ["c/a", "c/b"]}, told=["c/b +2"]),
    ],
    "a Write stream of a named database": [
        open_writes(database="b"),
        expect_opened(),
        push(doc("c/a").set(n=1)),
        expect_pushed(),
        expect_documents({"c/a": {"n": 1}}, database="b"),
        expect_documents({"c/a": None}),
    ],
}

DIALOGUES = {
    **INITIAL, **FILTERS, **DELTAS, **SEVERAL_TARGETS, **WINDOWS, **CHURN, **RESUME,
    **BAD_TARGETS, **BAD_STREAMS, **WRITES, **TRANSACTIONS, **DATABASES,
}
