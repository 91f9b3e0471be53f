import StatusCodes
import DocumentModel
import EventLog
import Identity
import Testing
import TestSupport

@testable import DocumentStore

/// Reads at past times, compared with a model of the state at each time.
@Suite("The past")
struct PastTests {
  private typealias State = [String: Int64]

  @Test(
    "Each time shows what was there, through imports, resets and trims, by every way of reading",
    arguments: 0..<12
  )
  func history(round: Int) async throws {
    var random = SeededGenerator.forTest()
    for _ in 0..<round { _ = random.next() }
    let fixture = StoreFixture(
      configuration: .init(queryPageDocumentsMax: 2, queryCandidatesMax: 2)
    )
    var state = State()
    var history: [(time: Timestamp, state: State)] = []
    for _ in 0..<80 {
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        try await fixture.trimEvents()
        history = []
      case 1:
        let recordsEvents = Bool.random(using: &random)
        try await load(fixture, &state, recordsEvents: recordsEvents, &random)
        if !recordsEvents { history = [] }
      case 2:
        // The clock of this test starts at 1.7e15 microseconds.
        fixture.passWallClock(3600)
        history = []
      default: try await commit(fixture, &state, &random)
      }
      history.append((try await fixture.store.readTime(), state))
      guard let past = history.randomElement(using: &random) else { continue }
      try await check(fixture, past.time, past.state)
    }
  }

  @Test("A reset or an import of one database leaves the past of the others, and work on it")
  func otherDatabases() async throws {
    let fixture = StoreFixture(configuration: .init(queryPageDocumentsMax: 1))
    let other = DatabaseName(project: "other")
    for id in ["a", "b", "c"] { try await fixture.commit(set("c/\(id)", ["n": .integer(1)])) }
    let then = try await fixture.store.readTime()
    let optimistic = try await fixture.begin(.readWrite(optimistic: true))
    let readOnly = try await fixture.begin(.readOnly())
    for id in [optimistic, readOnly] {
      _ = try await fixture.get("c/a", at: .transaction(id))
    }
    var found: [String] = []
    try await fixture.store.query(all("c"), at: .latest, auth: .admin) { page in
      found += page.documents.map(\.name.id)
      try await fixture.store.reset(other)
      let loaded = FirestoreDocument(
        name: DocumentName(database: other, path: ResourcePath(["c", "a"])),
        fields: [:],
        createTime: then,
        updateTime: then
      )
      _ = try await fixture.store.load([loaded], into: other, recordsEvents: false)
      try await fixture.commit(set("c/b", ["n": .integer(Int64(found.count) + 1)]))
    }

    #expect(found == ["a", "b", "c"])
    #expect(try await fixture.get("c/b", at: .readTime(then)) == ["n": .integer(1)])
    #expect(try await fixture.get("c/b", at: .transaction(readOnly)) == ["n": .integer(1)])
    #expect(await code { try await fixture.commit(set("e/x"), in: optimistic) } == .ok)
  }

  @Test("Collections whose ids differ only in their Unicode form are all listed, now and then")
  func unicodeForms() async throws {
    let fixture = StoreFixture()
    let forms = ["caf\u{E9}", "cafe\u{301}"]
    for form in forms { try await fixture.commit(set("\(form)/a")) }
    let then = try await fixture.store.readTime()
    func ids(_ consistency: ReadConsistency) async throws -> [[UInt8]] {
      try await fixture.store.listCollectionIDs(
        parent: ResourcePath(),
        database: database,
        pageSize: 0,
        pageToken: nil,
        at: consistency,
        auth: .admin
      ).collectionIDs.map { Array($0.utf8) }
    }
    let both = forms.reversed().map { Array($0.utf8) }
    #expect(try await ids(.latest) == both)
    try await fixture.commit(set("later/a"))
    #expect(try await ids(.readTime(then)) == both)
    for form in forms { try await fixture.commit(delete("\(form)/a")) }
    #expect(try await ids(.readTime(then)) == both)
    #expect(try await ids(.latest) == [Array("later".utf8)])
  }

  private static let collections = ["c", "c/x/s", "c/x/s/y/t", "d"]

  private static func path(_ random: inout SeededGenerator) -> String {
    let collection = collections.randomElement(using: &random) ?? "c"
    return "\(collection)/\(["a", "b", "x", "y"].randomElement(using: &random) ?? "a")"
  }

  private func commit(
    _ fixture: StoreFixture,
    _ state: inout State,
    _ random: inout SeededGenerator
  ) async throws {
    var writes: [Write] = []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let path = Self.path(&random)
      if Int.random(in: 0..<3, using: &random) == 0 {
        writes.append(delete(path))
        state[path] = nil
      } else {
        let number = Int64.random(in: 0..<100, using: &random)
        writes.append(set(path, ["n": .integer(number)]))
        state[path] = number
      }
    }
    _ = try await fixture.store.commit(writes, database: database, transaction: nil, auth: .admin)
  }

  /// Imports documents with times in the distant past and in the future.
  private func load(
    _ fixture: StoreFixture,
    _ state: inout State,
    recordsEvents: Bool,
    _ random: inout SeededGenerator
  ) async throws {
    var documents: [FirestoreDocument] = []
    for _ in 0..<3 {
      let path = Self.path(&random)
      let number = Int64.random(in: 100..<200, using: &random)
      let time: Int64 = Bool.random(using: &random) ? 100 : 1_700_100_000_000_000
      documents.append(
        document(path, ["n": .integer(number)], created: time, updated: time)
      )
      state[path] = number
    }
    _ = try await fixture.store.load(documents, into: database, recordsEvents: recordsEvents)
  }

  private func check(_ fixture: StoreFixture, _ time: Timestamp, _ state: State) async throws {
    let consistency = ReadConsistency.readTime(time)
    func number(_ document: FirestoreDocument?) -> Int64? {
      if case .integer(let number)? = document?.fields["n"] { number } else { nil }
    }
    for collection in Self.collections {
      for id in ["a", "b", "x", "y"] {
        let path = "\(collection)/\(id)"
        let found = try await fixture.get(path, at: consistency)
        #expect(found?["n"] == state[path].map { .integer($0) }, "\(path)")
      }
      let parts = collection.split(separator: "/").map(String.init)
      let parent = ResourcePath(Array(parts.dropLast()))
      let query = Query(database: database, parent: parent, collectionID: parts.last)
      let results = try await fixture.store.query(query, at: consistency, auth: .admin).documents
      let below = state.filter { name($0.key).collection == ResourcePath(parts) }
      #expect(
        Dictionary(uniqueKeysWithValues: results.map { ("\($0.name.path)", number($0)) }) == below
      )
      let listed = try await fixture.store.listDocuments(
        parent: parent,
        collectionID: parts.last,
        database: database,
        pageSize: 100,
        pageToken: nil,
        orders: [],
        mask: nil,
        showMissing: true,
        at: consistency,
        auth: .admin
      ).documents
      let shown = Set(
        state.keys.filter { $0.hasPrefix("\(collection)/") }
          .map { $0.split(separator: "/").prefix(parts.count + 1).joined(separator: "/") }
      )
      #expect(Set(listed.map { "\($0.name.path)" }) == shown)
    }
    let ids = try await fixture.store.listCollectionIDs(
      parent: ResourcePath(),
      database: database,
      pageSize: 100,
      pageToken: nil,
      at: consistency,
      auth: .admin
    ).collectionIDs
    #expect(ids == Set(state.keys.map { String($0.prefix(1)) }).sorted())
    var found = State()
    var next: [UInt8]?
    repeat {
      let page = try await fixture.store.page(of: database, from: next, at: time)
      for document in page.documents { found["\(document.name.path)"] = number(document) }
      next = page.next
    } while next != nil
    #expect(found == state)
  }
}
