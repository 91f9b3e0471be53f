import DocumentModel
import QueryEngine
import QueryModel
import StorageEngine
import Synchronization
import TestSupport
import Testing

@Suite("Indexes")
struct IndexTests {
  @Test("A scan of more candidates than allowed asks for the index made for its query")
  func requests() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 10))
    try await Self.fill(fixture, 11)
    try await fixture.write((0..<10).map { ("d/x/c/\($0)", ["a": .integer(1)]) })
    let a = Query.Filter.field("a", .equal, .integer(1))
    let queries: [Query] = [
      .c(a, parent: "d/x"),
      .c(),
      .c(a, limit: 1),
    ]
    for query in queries { _ = try await fixture.run(query) }
    try await fixture.buildIndexes()
    #expect(fixture.engine.indexes().isEmpty)

    _ = try await fixture.run(.c(.and([.field("b", .lessThan, .integer(9)), a])))
    _ = try await fixture.run(.c(group: true))
    _ = try await fixture.run(.c(orders: [.by("b", descending: true), .by("a")]))
    try await fixture.buildIndexes()
    #expect(
      fixture.engine.indexes().map(\.definition.description) == [
        "c (collection group): __name__ ↑", "c: a ↑, b ↑", "c: b ↑, a ↓, __name__ ↓",
      ]
    )
    #expect(!fixture.engine.indexes().map(\.isReady).contains(false))
  }

  @Test("What is asked often gets its index, however small the collection")
  func frequentRequests() async throws {
    let fixture = try await QueryFixture(.init(wastedCandidatesMax: 1000))
    try await Self.fill(fixture, 100)
    let query = Query.c(.field("b", .equal, .integer(7)))
    let (documents, first) = try await fixture.run(query)
    #expect(first.scanned == 100 && documents.count < 50)
    for _ in 0..<8 { _ = try await fixture.run(query) }
    // These queries return most documents, so an index would save little.
    for _ in 0..<50 { _ = try await fixture.run(.c(.field("b", .greaterThanOrEqual, .integer(0)))) }
    try await fixture.buildIndexes()
    #expect(fixture.engine.indexes().isEmpty)

    for _ in 0..<5 { _ = try await fixture.run(query) }
    try await fixture.buildIndexes()
    #expect(fixture.engine.indexes().map(\.definition.description) == ["c: b ↑"])
    #expect(try await fixture.run(query).statistics.scanned == documents.count)
  }

  @Test("An index that costs more than it would cost to build goes, unless it is used")
  func idleIndexes() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 10, idleWritesMax: 40))
    try await Self.fill(fixture, 50)
    let used = Query.c(.field("a", .equal, .integer(1)))
    let idle = Query.c(.field("b", .equal, .integer(7)))
    for query in [used, idle] { _ = try await fixture.run(query) }
    try await fixture.buildIndexes()
    #expect(fixture.engine.indexes().count == 2)

    func rewrite(_ number: Int) async throws {
      for id in 0..<20 {
        let value = FirestoreValue.integer(Int64(number * 100 + id))
        try await fixture.set("c/w\(id)", ["a": value, "b": value])
      }
      _ = try await fixture.run(used)
      try await fixture.buildIndexes()
    }
    // 20 entries for new documents, then 40 for each change of them, in an index of 70 entries.
    try await rewrite(0)
    try await rewrite(1)
    #expect(fixture.engine.indexes().count == 2)
    try await rewrite(2)
    #expect(fixture.engine.indexes().map(\.definition.description) == ["c: a ↑"])
    #expect(try await fixture.run(idle).documents.isEmpty == false)
  }

  @Test("With an index, the cost follows the result and not the collection")
  func cost() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 50))
    try await Self.fill(fixture, 400)
    let few = Query.c(
      .and([
        .field("a", .equal, .integer(1)), .field("b", .greaterThanOrEqual, .integer(10)),
        .field("b", .lessThan, .integer(20)),
      ])
    )
    let top = Query.c(orders: [.by("b", descending: true)], limit: 5)
    let merged = Query.c(
      .and([.field("a", .equal, .integer(1)), .field("b", .equal, .integer(7))])
    )
    let either = Query.c(.field("b", .in, .array([.integer(3), .integer(2)])), limit: 2)
    for query in [few, top, merged, either] {
      #expect(try await fixture.run(query).statistics.scanned > 200)
    }
    try await fixture.buildIndexes()

    #expect(try await fixture.run(few).statistics.scanned == 10)
    #expect(try await fixture.run(top).statistics.scanned == 5)
    // Each disjunct's first entry, and the entry after the first result.
    #expect(try await fixture.run(either).statistics.scanned <= 3)
    #expect(try await fixture.run(merged).statistics.scanned == 1)
  }

  @Test("Collections whose ids differ only in their Unicode form have indexes of their own")
  func unicodeForms() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 3))
    let forms = ["caf\u{E9}", "cafe\u{301}"]
    for (number, form) in forms.enumerated() {
      for id in 0..<6 {
        try await fixture.set("d/\(number)/\(form)/\(id)", ["n": .integer(Int64(id % 2))])
      }
    }
    for (number, form) in forms.enumerated() {
      let query = Query(
        database: QueryFixture.database,
        parent: ResourcePath(),
        collectionID: form,
        allDescendants: true,
        filter: .field("n", .equal, .integer(1))
      )
      for _ in 0..<2 {
        let found = try await fixture.run(query).documents.map(\.name.path)
        #expect(found == [1, 3, 5].map { ResourcePath(["d", "\(number)", form, "\($0)"]) })
        try await fixture.buildIndexes()
      }
    }
    #expect(fixture.engine.indexes().count == 2)
  }

  @Test("Of several usable indexes, the one with the fewest entries is read")
  func selectivity() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    try await Self.fill(fixture, 200)
    let a = Query.Filter.field("a", .equal, .integer(1))
    let b = Query.Filter.field("b", .equal, .integer(7))
    _ = try await fixture.run(.c(a))
    _ = try await fixture.run(.c(b))
    try await fixture.buildIndexes()

    let (_, statistics) = try await fixture.run(.c(.and([a, b])))
    #expect(statistics.indexes.map(\.description) == ["c: b ↑"])
    #expect(statistics.scanned == 1)
  }

  @Test("Values that tie in the index come in their true order", arguments: [false, true])
  func longValues(descending: Bool) async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    let long = String(repeating: "x", count: 1490)
    let texts = (0..<20).map { long + String(repeating: "x", count: $0) }
    try await fixture.write(
      texts.shuffled().enumerated().map { ("c/\($0.offset)", ["f": .string($0.element)]) }
    )
    let order = Query.c(orders: [.by("f", descending: descending)])
    let middle = Query.c(
      .field("f", .greaterThan, .string(texts[5])),
      orders: [.by("f", descending: descending)],
      start: descending ? Query.Cursor([.string(texts[15])], before: false) : nil,
      end: descending ? nil : Query.Cursor([.string(texts[15])], before: true)
    )
    let one = Query.c(
      orders: [.by("f", descending: descending)],
      start: Query.Cursor([.string(texts[17])], before: true),
      end: Query.Cursor([.string(texts[17])], before: false)
    )
    for query in [order, middle, one] { _ = try await fixture.run(query) }
    try await fixture.buildIndexes()

    for (query, expected) in [(order, texts[...]), (middle, texts[6..<15]), (one, texts[17...17])] {
      let (documents, statistics) = try await fixture.run(query)
      let found = documents.map { $0.fields["f"] }
      let wanted = expected.map { FirestoreValue?.some(.string($0)) }
      #expect(found == (descending ? wanted.reversed() : wanted))
      #expect(!statistics.indexes.isEmpty)
    }
  }

  @Test("Disjuncts whose values tie in the index keep to their own", arguments: [false, true])
  func longDisjuncts(descending: Bool) async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    // Filters accept the value. An index, which encodes zeros with more bytes, stores a part of it.
    let long = String(repeating: "\0", count: 1400)
    try await fixture.write(
      (0..<12).map { ("c/\($0)", ["f": .string(long + ["p", "q", "r"][$0 % 3])]) }
    )
    let either = Query.c(
      .field("f", .in, .array([.string(long + "p"), .string(long + "q")])),
      orders: [.by("f", descending: descending)]
    )
    _ = try await fixture.run(either)
    try await fixture.buildIndexes()

    for limit in [nil, 1, 5, 8] {
      var query = either
      query.limit = limit
      let (documents, statistics) = try await fixture.run(query)
      let expected = ReferenceEvaluator(query: query).results(fixture.model.values)
      #expect(documents.map(\.name.id) == expected.map(\.name.id))
      #expect(!statistics.indexes.isEmpty)
    }
  }

  @Test("A disjunct of one name takes no others along from an index in another order")
  func nameDisjunct() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    try await fixture.write((0..<6).map { ("c/\($0)", ["b": .integer(1)]) })
    let query = Query.c(
      .or([
        .field(.documentID, .notEqual, .reference(QueryFixture.name("c/5"))),
        .field(.documentID, .equal, .reference(QueryFixture.name("c/2"))),
      ]),
      orders: [.by("b"), .by("__name__", descending: true)]
    )
    for indexed in [.c(orders: [.by("b")]), query] { _ = try await fixture.run(indexed) }
    try await fixture.buildIndexes()

    let (documents, statistics) = try await fixture.run(query)
    #expect(documents.map(\.name.id) == ["4", "3", "2", "1", "0"])
    #expect(statistics.indexes.map(\.description) == ["c: b ↑", "c: b ↑, __name__ ↓"])
  }

  @Test("A write between reading and indexing a document is not undone")
  func conflict() async throws {
    // engine                 writer
    // reads c/1 (a: 1)
    //                        writes c/1 (a: 2) and its entry
    // commits a: 1 → refused
    // reads c/1 (a: 2), commits
    let storage = InterleavedStorage()
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0), storage: storage.base)
    try await fixture.set("c/1", ["a": .integer(1)])
    try await fixture.set("c/2", ["a": .integer(1)])
    try await fixture.engine.load(from: storage)
    let query = Query.c(.field("a", .equal, .integer(1)))
    _ = try await fixture.run(query)
    storage.afterRead { try await fixture.set("c/1", ["a": .integer(2)]) }
    try await fixture.buildIndexes()

    #expect(storage.refusals == 1)
    #expect(try await fixture.ids(query) == ["2"])
    #expect(try await fixture.ids(.c(.field("a", .equal, .integer(2)))) == ["1"])
    try await RandomQueryTests.expectEntriesMatchDocuments(fixture)
  }

  @Test("A snapshot older than an index does not use it")
  func olderSnapshot() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    try await Self.fill(fixture, 20)
    let query = Query.c(.field("a", .equal, .integer(1)))
    _ = try await fixture.run(query)
    let prepared = try fixture.engine.prepare(query)
    let engine = fixture.engine
    let old = try await fixture.storage.read { OldSnapshot(base: $0) }
    try await fixture.buildIndexes()
    var statistics = try engine.run(prepared, on: old) { _ in true }

    #expect(statistics.indexes.isEmpty)
    #expect(statistics.returned == 20)
    statistics = try await fixture.run(query).statistics
    #expect(statistics.indexes.count == 1)
  }

  @Test("A reset empties the indexes of its database alone")
  func reset() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    try await Self.fill(fixture, 5)
    let query = Query.c(.field("a", .equal, .integer(1)))
    _ = try await fixture.run(query)
    try await fixture.buildIndexes()
    var other = StorageBatch()
    fixture.engine.reset(DatabaseName(project: "other"), in: &other)
    #expect(other.operations.isEmpty)

    var batch = StorageBatch()
    let prefix = DocumentKeys.databasePrefix(QueryFixture.database)
    batch.deleteRange(DocumentKeys.keyspace, from: prefix, to: keyAfter(prefix: prefix))
    fixture.engine.reset(QueryFixture.database, in: &batch)
    try await fixture.storage.commit(batch)
    fixture.model = [:]
    #expect(try await fixture.ids(query) == [])
    try await fixture.set("c/new", ["a": .integer(1)])
    let (documents, statistics) = try await fixture.run(query)
    #expect(documents.map(\.name.id) == ["new"])
    #expect(statistics.scanned == 1)
  }

  @Test(
    "An offset counted by an index's entries passes over what matches, NaN and other types not",
    arguments: [false, true],
    [Query.FieldOperator.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual]
  )
  func offsetsByEntries(descending: Bool, comparison: Query.FieldOperator) async throws {
    let fixture = try await QueryFixture(RandomQueryTests.eager)
    let values: [FirestoreValue] = [
      .null, .boolean(true), .double(.nan), .double(-.infinity), .integer(1), .double(1.5),
      .integer(2), .double(.infinity), .timestamp(Timestamp(microseconds: 0)), .string("x"),
    ]
    try await fixture.write(values.enumerated().map { ("c/\($0.offset)", ["a": $0.element]) })
    for operand in values[3...] {
      for offset in 0...3 {
        let query = Query.c(
          .field("a", comparison, operand),
          orders: [.by("a", descending: descending)],
          offset: offset
        )
        _ = try await fixture.run(query)
        try await fixture.buildIndexes()
        let expected = ReferenceEvaluator(query: query).results(fixture.model.values)
        #expect(try await fixture.run(query).documents == expected, "\(query)")
      }
    }
  }

  @Test("The background task builds what queries ask for and ends when cancelled")
  func background() async throws {
    let fixture = try await QueryFixture(.init(scanCandidatesMax: 0))
    try await Self.fill(fixture, 5)
    let engine = fixture.engine
    let query = Query.c(.field("a", .equal, .integer(1)))
    _ = try await fixture.run(query)

    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await engine.run(in: fixture.order) }
      await eventually("the index is built") { engine.indexes().contains(where: \.isReady) }
      group.cancelAll()
      try await group.waitForAll()
    }
    #expect(try await fixture.run(query).statistics.indexes.count == 1)
  }

  /// Writes documents with a constant `a` and distinct values of `b`.
  static func fill(_ fixture: QueryFixture, _ count: Int) async throws {
    try await fixture.write(
      (0..<count).map { ("c/\($0)", ["a": .integer(1), "b": .integer(Int64($0))]) }
    )
  }
}

/// A storage engine that runs a hook between a read and the work that depends on it.
final class InterleavedStorage: OrderedStorage {
  let base = MemoryStorage()
  private let state = Mutex(State())

  private struct State {
    var hook: (@Sendable () async throws -> Void)?
    var refusals = 0
  }

  /// The number of commits that failed because of an expectation.
  var refusals: Int { state.withLock(\.refusals) }

  /// Runs `hook` after the next read that returns data.
  func afterRead(_ hook: @escaping @Sendable () async throws -> Void) {
    state.withLock { $0.hook = hook }
  }

  func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    let result = try await base.read(body)
    let hook = state.withLock { state in
      defer { state.hook = nil }
      return state.hook
    }
    try await hook?()
    return result
  }

  func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    base.submit(batch, expecting: expecting, durability: durability) { result in
      if case .failure = result { self.state.withLock { $0.refusals += 1 } }
      completion(result)
    }
  }

  var sequence: UInt64 { base.sequence }

  func close() async throws { try await base.close() }
}

/// A snapshot that outlives its read, which `MemoryStorage` allows.
///
/// `@unchecked`: the snapshot of `MemoryStorage` is a value.
struct OldSnapshot: StorageSnapshot, @unchecked Sendable {
  let base: any StorageSnapshot

  var sequence: UInt64 { base.sequence }

  func get(_ keyspace: Keyspace, _ key: [UInt8]) throws -> StoredValue? {
    try base.get(keyspace, key)
  }

  func scan(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws {
    try base.scan(keyspace, from: from, to: to, descending: descending, body)
  }
}
