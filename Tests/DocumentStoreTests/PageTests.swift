import StatusCodes
import DocumentModel
import EventLog
import Events
import Identity
import QueryEngine
import StorageEngine
import Testing
import TestSupport

@testable import DocumentStore

@Suite("Reading and loading everything")
struct PageTests {
  @Test("Documents are loaded in the order of their names, of several with one name the last")
  func loadOrder() async throws {
    let fixture = StoreFixture()
    let documents = [("c/b", 1), ("c/a", 2), ("c/b", 3)].map { path, number in
      document(path, ["n": .integer(number)])
    }
    let count = try await fixture.store.load(documents, into: database, recordsEvents: true)
    #expect(count == 2)
    #expect(try await fixture.get("c/b") == ["n": .integer(3)])
    let changes = try await fixture.events().flatMap(\.changes)
    #expect(changes.map(\.name.path.description) == ["c/a", "c/b"])
  }

  @Test("A long read that an import interrupts begins anew, unless its time was asked for")
  func interrupted() async throws {
    let fixture = StoreFixture(
      configuration: .init(queryPageDocumentsMax: 1, queryCandidatesMax: 1)
    )
    for id in ["a", "b", "c"] { try await fixture.commit(set("c/\(id)")) }
    var imports = ["1", "2"]
    func count(at consistency: ReadConsistency) async throws -> Int {
      var count = 0
      try await fixture.store.repeatingInterrupted(at: consistency) {
        count = 0
        try await fixture.store.query(all("c"), at: consistency, auth: .admin) { page in
          count += page.documents.count
          guard let id = imports.popLast() else { return }
          let document = document("c/import\(id)")
          _ = try await fixture.store.load([document], into: database, recordsEvents: false)
        }
      }
      return count
    }
    #expect(try await count(at: .latest) == 5)
    imports = ["3"]
    let time = try await fixture.store.readTime()
    await #expect(throws: DocumentDatabase.tooOld) { try await count(at: .readTime(time)) }
  }

  @Test("Pages show one time, whatever is written between them", arguments: 0..<8)
  func pages(round: Int) async throws {
    var generator = SeededGenerator.forTest()
    for _ in 0..<round { _ = generator.next() }
    let fixture = StoreFixture(
      configuration: .init(
        queryPageDocumentsMax: 1 + Int.random(in: 0..<4, using: &generator),
        queryPageBytesMax: Int.random(in: 1...400, using: &generator)
      )
    )
    var expected: [String: Int64] = [:]
    for _ in 0..<60 { try await write(fixture, &expected, &generator) }
    let time = try await fixture.store.readTime()
    var later = expected

    var found: [String: Int64] = [:]
    var keys: [[UInt8]] = []
    var next: [UInt8]?
    repeat {
      let page = try await fixture.store.page(of: database, from: next, at: time)
      for document in page.documents {
        keys.append(DocumentKeys.key(document.name))
        guard case .integer(let number) = document.fields["n"] else { continue }
        found[document.name.path.description] = number
      }
      for _ in 0..<10 { try await write(fixture, &later, &generator) }
      next = page.next
    } while next != nil

    #expect(found == expected)
    #expect(keys.count == expected.count)
    #expect(zip(keys, keys.dropFirst()).allSatisfy { ValueOrder.compareBytes($0, $1) == .less })
  }

  private func write(
    _ fixture: StoreFixture,
    _ state: inout [String: Int64],
    _ generator: inout SeededGenerator
  ) async throws {
    let collection = ["c", "c/x/s", "d", "__id7__/a/b"].randomElement(using: &generator) ?? "c"
    let id = ["a", "b", "é", "__id-3__", "__id40__", "z"].randomElement(using: &generator) ?? "a"
    let path = collection == "__id7__/a/b" ? "e/\(id)/f/\(id)" : "\(collection)/\(id)"
    if Int.random(in: 0..<4, using: &generator) == 0 {
      try await fixture.commit(delete(path))
      state[path] = nil
    } else {
      let number = Int64.random(in: 0..<1000, using: &generator)
      try await fixture.commit(set(path, ["n": .integer(number)]))
      state[path] = number
    }
  }

  @Test("Nothing is read of a time before a reset")
  func resetBetweenPages() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/a"))
    let time = try await fixture.store.readTime()
    try await fixture.store.reset(database)

    let status = await code {
      try await fixture.store.page(of: database, from: nil, at: time)
    }
    #expect(status == .failedPrecondition)
    let now = try await fixture.store.readTime()
    #expect(try await fixture.store.page(of: database, from: nil, at: now).documents == [])
  }

  @Test("A project's databases are those that hold documents, or did lately")
  func databases() async throws {
    let fixture = StoreFixture()
    let other = DatabaseName(project: "p", database: "other")
    for database in [database, other, DatabaseName(project: "p2")] {
      let name = DocumentName(database: database, path: ResourcePath(["c", "d"]))
      _ = try await fixture.store.commit(
        [Write(.update(name, fields: [:], mask: nil, transforms: []))],
        database: database,
        transaction: nil,
        auth: .admin
      )
    }
    try await fixture.commit(delete("c/d"))

    #expect(try await fixture.store.databases(of: "p") == [database, other])
    #expect(try await fixture.store.databases(of: "none") == [])
  }

  @Test("Loaded documents keep their times, and queries find them by index")
  func load() async throws {
    let fixture = StoreFixture()
    for number in 0..<5 {
      try await fixture.commit(set("c/d\(number)", ["n": .integer(Int64(number))]))
    }
    let loaded = (0..<3).map { document("c/d\($0)", ["n": .integer(9)]) }
    let changed = try await fixture.store.load(loaded, into: database, recordsEvents: false)
    let again = try await fixture.store.load(loaded, into: database, recordsEvents: false)

    #expect(changed == 3 && again == 0)
    let time = try await fixture.store.readTime()
    let all = try await fixture.store.page(of: database, from: nil, at: time).documents
    #expect(Array(all.prefix(3)) == loaded)
    #expect(all.count == 5)
    #expect(fixture.store.locks.isEmpty)
  }

  @Test("A load is an event for each change when asked, and otherwise the start of the past")
  func loadEvents() async throws {
    let fixture = StoreFixture()
    try await fixture.commit(set("c/a", ["n": .integer(1)]))
    let before = try await fixture.store.readTime()
    _ = try await fixture.store.load(
      [document("c/a"), document("c/b")],
      into: database,
      recordsEvents: true
    )
    #expect(try await fixture.events().last?.changes.map(\.name.id) == ["a", "b"])
    #expect(try await fixture.events().last?.changes.first?.before?.fields == ["n": .integer(1)])
    #expect(try await fixture.get("c/a", at: .readTime(before)) == ["n": .integer(1)])

    let events = try await fixture.events().count
    _ = try await fixture.store.load([document("c/e")], into: database, recordsEvents: false)
    let sent = try await fixture.events().dropFirst(events)
    #expect(sent.map(\.purpose) == [.discontinuity])
    #expect(sent.map(\.changes) == [[]])
    #expect(
      await code { try await fixture.get("c/a", at: .readTime(before)) } == .failedPrecondition
    )
  }

  @Test("A load ends open transactions, whose commits then fail")
  func loadEndsTransactions() async throws {
    let fixture = StoreFixture()
    let transaction = try await fixture.begin()
    _ = try await fixture.get("c/a", at: .transaction(transaction))
    _ = try await fixture.store.load([document("c/a")], into: database, recordsEvents: false)

    let status = await code { try await fixture.commit(set("c/a"), in: transaction) }
    #expect(status == .invalidArgument || status == .aborted)
  }

  @Test("What no write could make is refused")
  func check() async {
    let large = FirestoreValue.string(String(repeating: "x", count: 600_000))
    #expect(await code { try DocumentDatabase.check(document("c/a")) } == .ok)
    for bad in [
      document("c/__x__"), document("c/a", ["__y__": .null]),
      document("c/a", ["a": large, "b": large]),
      document("c/a", ["v": .vector([])]),
    ] {
      #expect(await code { try DocumentDatabase.check(bad) } == .invalidArgument)
    }
  }
}
