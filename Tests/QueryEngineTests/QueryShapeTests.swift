import DocumentModel
import QueryEngine
import StorageEngine
import Testing

@Suite("Orders, cursors, scope and projection")
struct QueryShapeTests {
  @Test(
    "Inequality fields follow the explicit orders by path, in the last direction, then the name"
  )
  func impliedOrders() async throws {
    let engine = try await QueryFixture().engine
    func orders(_ query: Query) throws -> [String] {
      try engine.prepare(query).orders.map { "\($0.path)\($0.descending ? "↓" : "↑")" }
    }
    let inequalities = Query.Filter.and([
      .field("b", .greaterThan, .integer(0)), .field("a", .notEqual, .integer(0)),
      .field("e", .equal, .integer(0)), .field(.documentID, .greaterThan, .name("c/a")),
    ])

    #expect(try orders(.c()) == ["__name__↑"])
    #expect(try orders(.c(inequalities)) == ["a↑", "b↑", "__name__↑"])
    #expect(
      try orders(.c(inequalities, orders: [.by("b", descending: true)]))
        == ["b↓", "a↓", "__name__↓"]
    )
    #expect(
      try orders(.c(orders: [.by("z", descending: true), Query.Order(.documentID)]))
        == ["z↓", "__name__↑"]
    )
    #expect(try orders(.c(.unary("a", .isNull))) == ["__name__↑"])
    #expect(try orders(.c(.unary("a", .isNotNaN))) == ["a↑", "__name__↑"])
  }

  static let cursorTable: [(Query.Cursor?, Query.Cursor?, [String])] = [
    (Query.Cursor([.integer(2)], before: true), nil, ["2a", "2b", "3", "s"]),
    (Query.Cursor([.integer(2)], before: false), nil, ["3", "s"]),
    (nil, Query.Cursor([.integer(2)], before: true), ["1"]),
    (nil, Query.Cursor([.integer(2)], before: false), ["1", "2a", "2b"]),
    (Query.Cursor([.integer(2), .name("c/2a")], before: false), nil, ["2b", "3", "s"]),
    (
      Query.Cursor([.integer(2), .name("c/2b")], before: true),
      Query.Cursor([.integer(3)], before: false), ["2b", "3"]
    ),
    (Query.Cursor([.boolean(true)], before: false), nil, ["1", "2a", "2b", "3", "s"]),
    (Query.Cursor([.timestamp(Timestamp(microseconds: 0))], before: true), nil, ["s"]),
    (Query.Cursor([], before: true), Query.Cursor([], before: false), ["1", "2a", "2b", "3", "s"]),
    (Query.Cursor([.integer(3)], before: true), Query.Cursor([.integer(2)], before: false), []),
  ]

  @Test("Cursors cut before or after what equals them, across types", arguments: cursorTable)
  func cursors(start: Query.Cursor?, end: Query.Cursor?, expected: [String]) async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    try await fixture.write([
      ("c/1", ["f": .integer(1)]), ("c/2a", ["f": .integer(2)]), ("c/2b", ["f": .double(2)]),
      ("c/3", ["f": .integer(3)]), ("c/s", ["f": .string("t")]), ("c/missing", [:]),
    ])
    let query = Query.c(orders: [.by("f")], start: start, end: end)

    #expect(try await fixture.ids(query) == expected)
    try await fixture.buildIndexes()
    let (documents, statistics) = try await fixture.run(query)
    #expect(documents.map(\.name.id) == expected)
    #expect(statistics.indexes.map(\.description) == ["c: f ↑"])

    // The same results in reverse, through the same index.
    func mirrored(_ cursor: Query.Cursor?) -> Query.Cursor? {
      cursor.map { Query.Cursor($0.values, before: !$0.before) }
    }
    let backwards = Query.c(
      orders: [.by("f", descending: true)],
      start: mirrored(end),
      end: mirrored(start)
    )
    let (reversed, use) = try await fixture.run(backwards)
    #expect(reversed.map(\.name.id) == expected.reversed())
    #expect(use.indexes.map(\.description) == ["c: f ↑"])
  }

  @Test("A group is every collection of the id below the parent, in order of full paths")
  func group() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    let paths = ["c/a", "c/a/c/z", "c/a/d/x/c/y", "c/b", "d/x", "d/x/c/a"]
    try await fixture.write(paths.shuffled().map { ($0, ["f": .integer(1)]) })
    let all = ["c/a", "c/a/c/z", "c/a/d/x/c/y", "c/b", "d/x/c/a"]

    for _ in 0..<2 {
      #expect(try await fixture.paths(.c(group: true)) == all)
      #expect(
        try await fixture.paths(.c(group: true, parent: "c/a")) == ["c/a/c/z", "c/a/d/x/c/y"]
      )
      #expect(try await fixture.paths(.c(parent: "c/a")) == ["c/a/c/z"])
      #expect(try await fixture.paths(.c(group: true, parent: "d/x")) == ["d/x/c/a"])
      #expect(try await fixture.paths(.c(.field("f", .equal, .integer(1)), group: true)) == all)
      try await fixture.buildIndexes()
    }
    #expect(try await fixture.run(.c(group: true)).statistics.indexes.count == 1)
  }

  @Test("Without a collection, everything below the parent comes by full path")
  func everything() async throws {
    let fixture = try await QueryFixture()
    let paths = ["c/a", "c/a/c/z", "c/a/d/x/c/y", "c/b", "d/x"]
    try await fixture.write(paths.shuffled().map { ($0, [:]) })
    var query = Query(database: QueryFixture.database, collectionID: nil, allDescendants: true)

    #expect(try await fixture.paths(query) == paths)
    query.filter = .and([
      .field(.documentID, .greaterThanOrEqual, .name("c/a/c/z")),
      .field(.documentID, .lessThan, .name("c/b")),
    ])
    #expect(try await fixture.paths(query) == ["c/a/c/z", "c/a/d/x/c/y"])
    query.filter = nil
    query.allDescendants = false
    query.parent = ResourcePath(["c", "a"])
    #expect(try await fixture.paths(query) == ["c/a/c/z"])
  }

  @Test("A range of names over all collections reads only the part of the tree where they lie")
  func rangesOfNames() async throws {
    let fixture = try await QueryFixture()
    for number in 0..<40 { try await fixture.set("a\(number)/x/deep/y") }
    for path in ["m/a", "m/a/s/b", "m/b", "m/b/s/c/t/d", "n/a"] { try await fixture.set(path) }
    func run(
      _ lower: String,
      _ upper: String,
      parent: String = ""
    ) async throws -> (paths: [String], scanned: Int) {
      let result = try await fixture.run(
        Query(
          database: QueryFixture.database,
          parent: ResourcePath(slashSeparated: parent),
          collectionID: nil,
          allDescendants: true,
          filter: .and([
            .field(.documentID, .greaterThanOrEqual, .name(lower)),
            .field(.documentID, .lessThan, .name(upper)),
          ])
        )
      )
      return (result.documents.map(\.name.path.description), result.statistics.scanned)
    }
    // A collection with everything below it, as clients query it to delete it.
    let collection = try await run("m/\0", "m\0/\0")
    #expect(collection.paths == ["m/a", "m/a/s/b", "m/b", "m/b/s/c/t/d"])
    #expect(collection.scanned <= 5)
    // A document with everything below it, and a part of that.
    let document = try await run("m/b", "m/b\0")
    #expect(document.paths == ["m/b", "m/b/s/c/t/d"])
    #expect(document.scanned <= 5)
    let part = try await run("m/b/s/c", "m/b/s/c/t/z", parent: "m/b")
    #expect(part.paths == ["m/b/s/c/t/d"])
    #expect(try await run("m/b", "n/z", parent: "m/a").paths == [])
  }

  @Test("A projection keeps the selected leaves inside their maps")
  func projection() async throws {
    let fixture = try await QueryFixture()
    try await fixture.set(
      "c/1",
      ["a": .integer(1), "m": .map(["x": .integer(2), "y": .integer(3)]), "z": .null]
    )
    func fields(_ projection: [FieldPath]?) async throws -> MapValue? {
      try await fixture.run(.c(projection: projection)).documents.first?.fields
    }

    #expect(try await fields([]) == fixture.model[QueryFixture.name("c/1")]?.fields)
    #expect(try await fields([.documentID]) == [:])
    #expect(
      try await fields([FieldPath(["m", "x"]), FieldPath(["a", "b"]), FieldPath(["z"])])
        == ["m": .map(["x": .integer(2)]), "z": .null]
    )
  }

  @Test("Offset is counted as skipped, and a limit of zero returns nothing")
  func offsetAndLimit() async throws {
    let fixture = try await QueryFixture()
    try await fixture.write((1...5).map { ("c/\($0)", [:]) })

    let (documents, statistics) = try await fixture.run(.c(offset: 2, limit: 2))
    #expect(documents.map(\.name.id) == ["3", "4"])
    #expect(statistics.skipped == 2)
    #expect(try await fixture.run(.c(offset: 9)).statistics.skipped == 5)
    #expect(try await fixture.ids(.c(limit: 0)) == [])
  }

  @Test("Collections are listed once, with those that hold only deeper documents")
  func collectionIDs() async throws {
    let fixture = try await QueryFixture()
    try await fixture.write(
      ["b/1", "b/2", "a/1/x/1", "a/1/y/1/z/1", "a-/1", "é/1"].map { ($0, [:]) }
    )
    let engine = fixture.engine
    func list(_ parent: [String], after: String? = nil, limit: Int = 10) async throws -> [String] {
      try await fixture.storage.read { snapshot in
        try engine.listCollectionIDs(
          QueryFixture.database,
          parent: ResourcePath(parent),
          after: after,
          limit: limit,
          on: snapshot
        )
      }
    }

    #expect(try await list([]) == ["a", "a-", "b", "é"])
    #expect(try await list([], after: "a", limit: 2) == ["a-", "b"])
    #expect(try await list(["a", "1"]) == ["x", "y"])
    #expect(try await list(["a", "2"]) == [])
  }

  @Test("A query lock knows which names and keys it covers")
  func coverage() async throws {
    let engine = try await QueryFixture().engine
    let one = try engine.prepare(.c(parent: "d/x"))
    let group = try engine.prepare(.c(group: true, parent: "d/x"))

    for (path, inOne, inGroup) in [
      ("d/x/c/a", true, true), ("d/x/c/a/c/b", false, true), ("c/a", false, false),
      ("d/x/e/a", false, false), ("d/x", false, false),
    ] {
      let name = QueryFixture.name(path)
      #expect(one.covers(name) == inOne)
      #expect(group.covers(name) == inGroup)
      #expect(!inOne || one.keyRange.contains(DocumentKeys.key(name)))
      #expect(!inGroup || group.keyRange.contains(DocumentKeys.key(name)))
    }
    #expect(!one.keyRange.contains(DocumentKeys.key(QueryFixture.name("d/x/c/a/c/b"))))
  }
}
