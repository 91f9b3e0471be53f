import DocumentModel
import Identity
import StatusCodes
import StorageEngine
import Synchronization
import Testing
import TestSupport

@testable import DocumentStore

@Suite("Reads")
struct ReadTests {
  @Test("A look-up answers in order, missing documents too, with the masked fields only")
  func lookUp() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(
      set("c/a", ["x": .integer(1), "m": .map(["y": .integer(2), "z": .integer(3)])]),
      set("c/b")
    )

    let result = try await fixture.store.lookUp(
      [name("c/b"), name("c/none"), name("c/a")],
      mask: [path("m.y"), path("absent"), .documentID],
      at: .latest,
      auth: .admin
    )

    #expect(result.documents.map(\.name.id) == ["b", "none", "a"])
    #expect(
      result.documents.map(\.document?.fields) == [[:], nil, ["m": .map(["y": .integer(2)])]]
    )
    #expect(result.newTransaction == nil)
  }

  @Test("Names that could not be written cannot be read either")
  func badNames() async throws {
    let fixture = StoreFixture()
    let other = DocumentName(
      database: DatabaseName(project: "other"),
      path: ResourcePath(["c", "d"])
    )
    for names in [[name("c/__x__")], [name("c")], [name("c/d"), other]] {
      let outcome = await code {
        try await fixture.store.lookUp(names, mask: nil, at: .latest, auth: .admin)
      }
      #expect(outcome == .invalidArgument)
    }
    let nameless = await code {
      try await fixture.store.lookUp([], mask: nil, at: .latest, auth: .admin)
    }
    #expect(nameless == .invalidArgument)
  }

  @Test("A read time is not before the version it shows and before every later commit")
  func readTimes() async throws {
    let fixture = StoreFixture()
    fixture.stopWallClock(at: time(7_000_000))
    let commit = try await fixture.commit(set("c/d"))
    let read = try await fixture.store.lookUp([name("c/d")], mask: nil, at: .latest, auth: .admin)
    let later = try await fixture.commit(set("c/d", ["v": .null]))

    #expect(commit.commitTime <= read.readTime)
    #expect(read.readTime < later.commitTime)
  }

  @Test("A read at a time sees exactly the commits up to it, by name, query and list")
  func readsInThePast() async throws {
    let fixture = StoreFixture()
    // Each step: its writes and the resulting content of collection `c`.
    var states: [(Timestamp, [String: Int64])] = []
    let steps: [([Write], [String: Int64])] = [
      ([set("c/a", ["n": .integer(1)])], ["a": 1]),
      ([set("c/a", ["n": .integer(2)]), set("c/b", ["n": .integer(3)])], ["a": 2, "b": 3]),
      ([delete("c/a")], ["b": 3]),
      ([set("c/a", ["n": .integer(4)]), set("x/y/c/z", ["n": .integer(9)])], ["a": 4, "b": 3]),
      ([delete("c/b"), set("c/c", ["n": .integer(5)])], ["a": 4, "c": 5]),
    ]
    for (writes, state) in steps {
      let result = try await fixture.store.commit(
        writes,
        database: database,
        transaction: nil,
        auth: .admin
      )
      states.append((result.commitTime, state))
    }
    func numbers(_ documents: [FirestoreDocument]) -> [String: Int64] {
      Dictionary(
        uniqueKeysWithValues: documents.map { document in
          if case .integer(let n) = document.fields["n"] {
            (document.name.id, n)
          } else {
            (document.name.id, -1)
          }
        }
      )
    }
    for (commitTime, state) in states {
      let now = ReadConsistency.readTime(commitTime)
      let justBefore = ReadConsistency.readTime(time(commitTime.microseconds - 1))
      let looked = try await fixture.store.lookUp(
        ["a", "b", "c"].map { name("c/\($0)") },
        mask: nil,
        at: now,
        auth: .admin
      )
      #expect(looked.readTime == commitTime)
      #expect(numbers(looked.documents.compactMap(\.document)) == state)
      let found = try await fixture.store.query(all("c"), at: now, auth: .admin)
      #expect(numbers(found.documents) == state)
      let listed = try await fixture.store.listDocuments(
        parent: ResourcePath(),
        collectionID: "c",
        database: database,
        pageSize: 10,
        pageToken: nil,
        orders: [],
        mask: nil,
        showMissing: false,
        at: now,
        auth: .admin
      )
      #expect(numbers(listed.documents.compactMap(\.document)) == state)
      let before = try await fixture.store.query(all("c"), at: justBefore, auth: .admin)
      #expect(numbers(before.documents) != state)
    }
    var group = all("c")
    group.allDescendants = true
    #expect(try await fixture.ids(group, at: .readTime(states[2].0)) == ["b"])
    #expect(try await fixture.ids(group) == ["a", "c", "z"])
  }

  @Test("A filter and an order in the past use the values of then")
  func filtersInThePast() async throws {
    let fixture = StoreFixture()
    let then = try await fixture.commit(
      set("c/a", ["n": .integer(1)]),
      set("c/b", ["n": .integer(9)])
    ).commitTime
    try await fixture.commit(set("c/a", ["n": .integer(20)]), set("c/b", ["n": .integer(2)]))
    var query = all("c")
    query.filter = .field(path("n"), .greaterThan, .integer(5))

    #expect(try await fixture.ids(query, at: .readTime(then)) == ["b"])
    #expect(try await fixture.ids(query) == ["a"])
  }

  @Test("A time ahead is refused, and one of more than an hour ago, in production's words")
  func readTimeRange() async throws {
    let fixture = StoreFixture()
    let start = time(1_700_000_000_000_000)
    fixture.stopWallClock(at: start)
    func read(_ time: Timestamp) async throws -> Any {
      try await fixture.get("c/d", at: .readTime(time)) as Any
    }
    let hour: Int64 = 3_600_000_000
    _ = try await read(start)
    _ = try await read(time(start.microseconds - hour))

    await #expect(
      throws: StatusError(
        .invalidArgument,
        "The requested 'read_time' cannot be in the future."
      )
    ) { try await read(time(start.microseconds + 1)) }
    await #expect(
      throws: StatusError(.failedPrecondition, "The requested 'read_time' is too old.")
    ) { try await read(time(start.microseconds - hour - 1)) }
  }

  @Test("A read at a time waits for a commit of that time that is on its way")
  func readWaitsForCommit() async throws {
    let fixture = StoreFixture()
    fixture.storage.holdCommits()
    async let commit = fixture.commit(set("c/d", ["v": .integer(1)]))
    await fixture.storage.waitForCommits(1)
    fixture.passWallClock(1)
    let asked = time(1_700_000_000_900_000)
    async let read = fixture.get("c/d", at: .readTime(asked))
    await fixture.storage.waitForCommits(2)
    fixture.storage.releaseCommits()

    let result = try await commit
    #expect(result.commitTime <= asked)
    #expect(try await read == ["v": .integer(1)])
  }

  @Test("A read beside the first commit of a long time has a time of now")
  func readBesideACommit() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/d", ["v": .integer(1)]))
    fixture.passWallClock(7200)
    fixture.storage.holdCommits()
    async let commit = fixture.commit(set("c/d", ["v": .integer(2)]))
    await fixture.storage.waitForCommits(2)

    let transaction = try await fixture.begin(.readOnly())
    let read = try await fixture.store.lookUp(
      [name("c/d")],
      mask: nil,
      at: .transaction(transaction),
      auth: .admin
    )
    fixture.storage.releaseCommits()
    let commitTime = try await commit.commitTime

    #expect(read.readTime.microseconds == commitTime.microseconds - 1)
    #expect(try await fixture.get("c/d", at: .transaction(transaction)) == ["v": .integer(1)])
  }

  @Test("A query of many pages shows one moment, though documents change between pages")
  func pagedQuery() async throws {
    let fixture = StoreFixture(configuration: .init(queryPageDocumentsMax: 3))
    for index in 10..<21 { try await fixture.commit(set("c/d\(index)", ["n": .integer(1)])) }
    var pages: [[String]] = []
    var query = all("c")
    query.offset = 1
    query.limit = 9
    query.projection = [.documentID]
    query.orders = [Query.Order(path("n")), Query.Order(.documentID, descending: true)]
    try await fixture.store.query(query, at: .latest, auth: .admin) { page in
      pages.append(page.documents.map(\.name.id))
      #expect(page.skipped == (pages.count == 1 ? 1 : 0))
      #expect(page.documents.allSatisfy { $0.fields.isEmpty })
      #expect(page.isLast == (pages.count == 3))
      try await fixture.commit(delete("c/d11"), set("c/d10a", ["n": .integer(1)]))
    }

    #expect(
      pages == [["d19", "d18", "d17"], ["d16", "d15", "d14"], ["d13", "d12", "d11"]]
    )
  }

  @Test(
    "A query that looks at many documents does it in short reads, and ends when it is cancelled"
  )
  func cancelledQuery() async throws {
    let fixture = StoreFixture(configuration: .init(queryCandidatesMax: 10))
    for index in 0..<40 {
      try await fixture.commit(set("c/d\(index)", ["n": .integer(Int64(index))]))
    }
    var query = all("c")
    query.filter = .field(path("n"), .equal, .integer(-1))
    let before = fixture.storage.readsBegun
    #expect(try await fixture.ids(query).isEmpty)
    #expect((4...6).contains(fixture.storage.readsBegun - before))

    let begun = fixture.storage.readsBegun
    let reading = Task { [query] in
      withUnsafeCurrentTask { $0?.cancel() }
      _ = try await fixture.ids(query)
    }
    await #expect(throws: CancellationError.self) { try await reading.value }
    #expect(fixture.storage.readsBegun - begun <= 1)
  }

  @Test("A query at a past time shows that time to its last part despite concurrent writes")
  func partsOfThePast() async throws {
    let fixture = StoreFixture(
      configuration: .init(queryPageDocumentsMax: 2, queryCandidatesMax: 2)
    )
    for index in 0..<9 { try await fixture.commit(set("c/d\(index)", ["n": .integer(1)])) }
    let then = try await fixture.commit(set("e/x")).commitTime
    try await fixture.commit(set("c/d1", ["n": .integer(2)]), delete("c/d2"), set("c/d9"))
    var found: [String] = []
    try await fixture.store.query(all("c"), at: .readTime(then), auth: .admin) { page in
      #expect(page.documents.allSatisfy { $0.fields == ["n": .integer(1)] })
      found += page.documents.map(\.name.id)
      try await fixture.commit(
        set("c/d\(found.count)", ["n": .integer(3)]),
        delete("c/d\(found.count + 1)")
      )
    }

    #expect(found == (0..<9).map { "d\($0)" })
  }

  @Test("A long read keeps what it needs of the event log, but not while it is left alone")
  func neededLog() throws {
    let clock = Mutex(ContinuousClock.now)
    let reads = LongReads(now: { clock.withLock { $0 } })
    #expect(reads.neededSequence == nil)
    let first = reads.begin(7)
    let second = reads.begin(9)
    #expect(reads.neededSequence == 7)
    clock.withLock { $0 += .seconds(59) }
    reads.advance(first, to: 12)
    #expect(reads.neededSequence == 9)
    clock.withLock { $0 += .seconds(1) }
    #expect(reads.neededSequence == 12)
    reads.end(first)
    reads.end(second)
    #expect(reads.neededSequence == nil)
  }

  @Test("A query in pages of bytes returns all, and too large a collection is refused")
  func byteBounds() async throws {
    let fixture = StoreFixture(
      configuration: .init(queryPageBytesMax: 2000, queryResultBytesMax: 20_000)
    )
    for index in 10..<20 {
      try await fixture.commit(
        set("c/d\(index)", ["s": .string(String(repeating: "x", count: 900))])
      )
    }
    #expect(try await fixture.ids(all("c")).count == 10)

    try await fixture.commit(
      set("c/e", ["s": .string(String(repeating: "x", count: 15_000))])
    )
    #expect(await code { try await fixture.ids(all("c")) } == .resourceExhausted)
  }

  @Test("What a slow query holds of earlier versions is counted before each of its pages")
  func countedVersions() async throws {
    let fixture = StoreFixture(configuration: .init(queryPageBytesMax: 2000))
    let text = FirestoreValue.string(String(repeating: "x", count: 900))
    func write(_ version: Int64) async throws {
      for index in 10..<30 {
        try await fixture.commit(set("c/d\(index)", ["s": text, "v": .integer(version)]))
      }
    }
    try await write(1)
    var counted: [Int] = []
    var pages = 0
    try await fixture.store.query(
      all("c"),
      at: .latest,
      auth: .admin,
      counting: { counted.append($0) }
    ) { page in
      if pages == 0 { try await write(2) }
      #expect(page.documents.allSatisfy { $0.fields["v"] == .integer(1) })
      pages += 1
      if pages == 2 { #expect((counted.last ?? 0) > 20 * 900) }
    }
    #expect(pages > 5)

    struct FullError: Error {}
    await #expect(throws: FullError.self) {
      try await fixture.store.query(
        all("c"),
        at: .latest,
        auth: .admin,
        counting: { if $0 > 20 * 900 { throw FullError() } }
      ) { _ in try await write(3) }
    }
  }

  @Test("An empty result is one page with a read time")
  func emptyQuery() async throws {
    let fixture = StoreFixture()
    var pages = 0
    try await fixture.store.query(all("c"), at: .latest, auth: .admin) { page in
      pages += 1
      #expect(page.documents.isEmpty)
      #expect(page.isLast)
    }

    #expect(pages == 1)
  }

  @Test("Versions are forgotten with the record of the commit that overwrote them")
  func forgetting() async throws {
    let fixture = StoreFixture()
    let then = try await fixture.commit(set("c/a", ["v": .integer(1)])).commitTime
    try await fixture.commit(set("c/a", ["v": .integer(2)]))
    #expect(try await fixture.get("c/a", at: .readTime(then)) == ["v": .integer(1)])
    var batch = StorageBatch()
    for record in try await fixture.events() { PastVersions.forget(record, in: &batch) }
    try await fixture.storage.commit(batch)

    let left = try await fixture.storage.read { snapshot in
      var count = 0
      try snapshot.scan(PastVersions.keyspace, prefix: []) { _, _ in
        count += 1
        return true
      }
      return count
    }
    #expect(left == 0)
  }
}
