import DocumentModel
import QueryEngine
import QueryModel
import StorageEngine
import TestSupport
import Testing

@Suite("Random queries agree with their plain meaning")
struct RandomQueryTests {
  /// A configuration in which every query requests an index at once.
  ///
  /// Indexes are joined regardless of their size.
  static let eager = QueryRunner.Configuration(
    scanCandidatesMax: 0,
    joinEntriesMin: 1,
    backfillDocumentsMax: 7
  )

  static func seeds(_ count: Int) -> [UInt64] {
    var generator = SeededGenerator.forTest("RandomQueryTests")
    return (0..<count).map { _ in generator.next() }
  }

  @Test("By scan, by index, after changes and as of an older time", arguments: seeds(6))
  func agree(seed: UInt64) async throws {
    var random = RandomQueries(seed: seed)
    let fixture = try await QueryFixture(Self.eager)
    try await Self.write(140, to: fixture, &random)
    let queries = try Self.queries(120, fixture, &random)

    for query in queries { try await Self.expectAgreement(query, fixture) }
    try await fixture.buildIndexes()
    var indexed = 0
    for query in queries {
      let statistics = try await Self.expectAgreement(query, fixture)
      indexed += statistics.indexes.isEmpty ? 0 : 1
    }
    #expect(indexed > queries.count / 4, "seed \(seed)")
    let before = fixture.model
    try await Self.write(80, to: fixture, &random)
    let overlay = Self.overlay(from: fixture.model, to: before)
    for query in queries {
      try await Self.expectAgreement(query, fixture)
      try await Self.expectAgreement(query, fixture, overlay: overlay, model: before)
    }
    try await Self.expectEntriesMatchDocuments(fixture)
  }

  @Test("After a crash in the middle of building, with writes on both sides", arguments: seeds(4))
  func resume(seed: UInt64) async throws {
    var random = RandomQueries(seed: seed)
    var fixture = try await QueryFixture(Self.eager)
    try await Self.write(120, to: fixture, &random)
    let queries = try Self.queries(60, fixture, &random)
    for query in queries { try await Self.expectAgreement(query, fixture) }

    for _ in 0..<6 {
      try await fixture.buildIndexes(commitsMax: random.count(1...40))
      try await Self.write(10, to: fixture, &random)
      let model = fixture.model
      fixture = try await QueryFixture(Self.eager, storage: fixture.storage)
      fixture.model = model
      try await Self.write(10, to: fixture, &random)
      for query in queries { try await Self.expectAgreement(query, fixture) }
    }
    try await fixture.buildIndexes()
    for query in queries { try await Self.expectAgreement(query, fixture) }
    try await Self.expectEntriesMatchDocuments(fixture)
  }

  @Test("Read in parts beside writers, a query shows one moment", arguments: seeds(4))
  func pages(seed: UInt64) async throws {
    var random = RandomQueries(seed: seed)
    var configuration = Self.eager
    if random.chance(50) {
      // Indexes are also removed while a query reads them.
      configuration.indexesMax = 2
      configuration.removalEntriesMax = 5
    }
    let fixture = try await QueryFixture(configuration)
    try await Self.write(100, to: fixture, &random)
    let queries = try Self.queries(60, fixture, &random)
    for query in queries { _ = try await fixture.run(query) }
    if random.chance(50) { try await fixture.buildIndexes() }

    for query in queries {
      let before = fixture.model
      var run = QueryRun(try fixture.engine.prepare(query))
      var paged: [FirestoreDocument] = []
      while !run.isEnded {
        let page = try await Self.page(&run, 3, fixture, candidates: random.count(1...4))
        #expect(page.count <= 3)
        paged += page
        // The query shows the state at its own time, regardless of writes between two pages.
        try await Self.write(random.count(0...3), to: fixture, &random)
        if random.chance(20) {
          _ = try await fixture.run(queries[random.count(0...59)])
          try await fixture.buildIndexes(commitsMax: random.count(1...30))
        }
        run.add(older: Self.overlay(from: fixture.model, to: before))
      }
      let expected = ReferenceEvaluator(query: query).results(before.values)
      #expect(paged == expected, "\(query) by \(run.statistics.indexes)")
      #expect(run.statistics.returned == expected.count)
    }
  }

  @Test("With few indexes allowed, the least used make room", arguments: seeds(2))
  func room(seed: UInt64) async throws {
    var random = RandomQueries(seed: seed)
    var configuration = Self.eager
    configuration.indexesMax = 3
    configuration.removalEntriesMax = 5
    let fixture = try await QueryFixture(configuration)
    try await Self.write(80, to: fixture, &random)

    for query in try Self.queries(60, fixture, &random) {
      try await Self.expectAgreement(query, fixture)
      try await fixture.buildIndexes()
      try await Self.expectAgreement(query, fixture)
      try await Self.write(1, to: fixture, &random)
      #expect(fixture.engine.indexes().count <= 3)
    }
    try await Self.expectEntriesMatchDocuments(fixture)
  }

  // MARK: Helpers

  static func write(_ count: Int, to fixture: QueryFixture, _ random: inout RandomQueries)
    async throws
  {
    var left = count
    while left > 0 {
      let size = min(left, random.count(1...6))
      var writes: [DocumentName: MapValue?] = [:]
      for _ in 0..<size {
        writes[QueryFixture.name(random.path())] = .some(random.chance(20) ? nil : random.fields())
      }
      try await fixture.write(writes.map { ($0.key.path.description, $0.value) })
      left -= size
    }
  }

  /// Returns random queries that pass validation.
  static func queries(
    _ count: Int,
    _ fixture: QueryFixture,
    _ random: inout RandomQueries
  ) throws -> [Query] {
    let documents = fixture.model.values.sorted { $0.name < $1.name }
    var queries: [Query] = []
    var refused = 0
    while queries.count < count {
      let query = random.query(documents)
      do {
        _ = try fixture.engine.prepare(query)
        queries.append(query)
      } catch {
        refused += 1
      }
    }
    #expect(refused < count * 2)
    return queries
  }

  @discardableResult
  static func expectAgreement(
    _ query: Query,
    _ fixture: QueryFixture,
    overlay: [DocumentName: FirestoreDocument?] = [:],
    model: [DocumentName: FirestoreDocument]? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> QueryStatistics {
    let expected = ReferenceEvaluator(query: query).results((model ?? fixture.model).values)
    let (documents, statistics) = try await fixture.run(query, overlay: overlay)
    #expect(
      documents == expected,
      "\(query) by \(statistics.indexes)",
      sourceLocation: sourceLocation
    )
    // An offset beyond the end counts the results, using only keys and entries where these suffice.
    var count = query
    (count.offset, count.limit) = (1_000_000, nil)
    let (rest, counted) = try await fixture.run(count, overlay: overlay)
    count.offset = 0
    let all = ReferenceEvaluator(query: count).results((model ?? fixture.model).values)
    #expect(
      rest.isEmpty && counted.skipped == all.count,
      "\(count) by \(counted.indexes)",
      sourceLocation: sourceLocation
    )
    return statistics
  }

  static func overlay(
    from new: [DocumentName: FirestoreDocument],
    to old: [DocumentName: FirestoreDocument]
  ) -> [DocumentName: FirestoreDocument?] {
    var overlay: [DocumentName: FirestoreDocument?] = [:]
    for name in Set(new.keys).union(old.keys) where new[name] != old[name] {
      overlay[name] = .some(old[name])
    }
    return overlay
  }

  private static func page(
    _ run: inout QueryRun,
    _ size: Int,
    _ fixture: QueryFixture,
    candidates: Int
  ) async throws -> [FirestoreDocument] {
    let engine = fixture.engine
    var started = run
    let (page, next) = try await fixture.storage.read { [started] snapshot in
      var run = started
      var page: [FirestoreDocument] = []
      var budget = CandidateBudget(candidates: candidates, bytes: .max)
      try engine.goOn(with: &run, on: snapshot, &budget) { document in
        page.append(document)
        return page.count < size
      }
      return (page, run)
    }
    started = next
    run = next
    return page
  }

  /// Deletes all documents and checks that no index entries remain.
  static func expectEntriesMatchDocuments(_ fixture: QueryFixture) async throws {
    try await fixture.buildIndexes()
    try await fixture.write(fixture.model.keys.map { ($0.path.description, nil) })
    let left = try await fixture.storage.read { snapshot in
      var count = 0
      try snapshot.scan(Keyspace("index_entries"), prefix: []) { _, _ in
        count += 1
        return true
      }
      return count
    }
    #expect(left == 0)
  }
}
