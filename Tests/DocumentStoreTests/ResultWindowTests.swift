import DocumentModel
@testable import EventLog
import Events
import Identity
import Logging
import QueryEngine
import TestSupport
import Testing

@testable import DocumentStore

@Suite("Result windows")
struct ResultWindowTests {
  private static let runner = QueryRunner(
    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  )

  private static func prepared(limit: Int, offset: Int, descending: Bool) throws -> PreparedQuery {
    var query = all("c")
    query.orders = [Query.Order(path("n"), descending: descending)]
    query.limit = limit
    query.offset = offset
    return try runner.prepare(query)
  }

  private static func results(
    of query: Query,
    in model: [DocumentName: FirestoreDocument]
  ) throws -> [FirestoreDocument] {
    let prepared = try runner.prepare(query)
    let sorted = model.values.filter(prepared.matches)
      .sorted { prepared.compare($0, $1) == .less }
    return Array(sorted.dropFirst(query.offset).prefix(query.limit ?? .max))
  }

  @Test(
    "Whatever changes, a window has what a query finds",
    arguments: [(1, 0), (3, 0), (3, 2), (20, 5)],
    [20, 60]
  )
  func randomChanges(_ range: (limit: Int, offset: Int), changesMax: Int) throws {
    let (limit, offset) = range
    var random = SeededGenerator.forTest()
    for round in 0..<4 {
      let query = try Self.prepared(
        limit: limit,
        offset: offset,
        descending: round.isMultiple(of: 2)
      )
      var model: [DocumentName: FirestoreDocument] = [:]
      var window = ResultWindow(query)
      var time: Int64 = 1
      for _ in 0..<60 {
        let old = Array(window.results)
        var changes: [DocumentChange] = []
        for _ in 0..<Int.random(in: 1...changesMax, using: &random) {
          let name = name("c/d\(Int.random(in: 0..<150, using: &random))")
          guard !changes.contains(where: { $0.name == name }) else { continue }
          time += 1
          let after =
            Int.random(in: 0..<100, using: &random) < (round < 2 ? 30 : 55)
            ? nil
            : FirestoreDocument(
              name: name,
              fields: ["n": .integer(Int64.random(in: 0..<50, using: &random))],
              createTime: Timestamp(microseconds: 1),
              updateTime: Timestamp(microseconds: time)
            )
          guard model[name] != nil || after != nil else { continue }
          changes.append(DocumentChange(name: name, before: model[name], after: after))
          model[name] = after
        }
        let shift = window.apply(changes.filter(window.concerns))
        if let missing = window.missing {
          window.fill(try Self.results(of: missing, in: model), asked: missing.limit)
        }

        let expected = try Self.results(of: query.query, in: model)
        try #require(Array(window.results) == expected)
        var shown = Dictionary(uniqueKeysWithValues: old.map { ($0.name, $0) })
        let difference = window.difference(by: shift)
        for change in difference {
          if case .member(let document) = change {
            shown[change.name] = document.document
          } else {
            shown[change.name] = nil
          }
        }
        try #require(
          shown == Dictionary(uniqueKeysWithValues: expected.map { ($0.name, $0) })
        )
        try #require(Set(difference.map(\.name)).count == difference.count, "Each comes once.")
        for change in difference {
          guard case .member(let document) = change else { continue }
          // No document is sent again unchanged.
          try #require(old.first { $0.name == change.name } != document.document)
        }
        window.trim()
      }
    }
  }

  @Test("The last known result that changes stays one, though the window has to be filled")
  func lastKnown() throws {
    var window = ResultWindow(try Self.prepared(limit: 2, offset: 0, descending: false))
    var model: [DocumentName: FirestoreDocument] = [:]
    for number in 10..<50 {
      let document = document("c/\(number)", ["n": .integer(Int64(number))])
      model[document.name] = document
    }
    let first = try #require(window.missing)
    window.fill(try Self.results(of: first, in: model), asked: first.limit)
    // Removes all known documents beyond the results.
    for number in 12..<28 {
      let removed = model.removeValue(forKey: name("c/\(number)"))
      let before = try #require(removed)
      _ = window.apply([DocumentChange(name: before.name, before: before, after: nil)])
    }
    let before = try #require(model[name("c/11")])
    let after = document("c/11", ["n": .integer(11), "seen": .boolean(true)])
    model[after.name] = after

    let shift = window.apply([DocumentChange(name: after.name, before: before, after: after)])
    let missing = try #require(window.missing)
    window.fill(try Self.results(of: missing, in: model), asked: missing.limit)

    #expect(window.results.map(\.name.id) == ["10", "11"])
    let difference = window.difference(by: shift)
    #expect(difference.map(\.name) == [after.name])
    if case .member(let member) = difference.first {
      #expect(member.document == after)
    } else {
      Issue.record("It has left.")
    }
  }

  @Test("What was committed while a window is read for the first time counts once")
  func commitWhileReading() throws {
    let query = try Self.prepared(limit: 5, offset: 0, descending: false)
    var table = ListenTable()
    let fixture = StoreFixture()
    let session = fixture.store.openListener(database: database, auth: .admin)
    defer { session.close() }
    let id = table.subscribe(session, to: .window(query))
    let reading = try #require(table.takeReadings().first)
    func record(_ sequence: UInt64, _ id: String, _ number: Int64) -> EventEntry {
      EventEntry(
        record: CommitRecord(
          sequence: sequence,
          commitTime: time(Int64(sequence)),
          database: database,
          changes: [
            DocumentChange(
              name: name("c/\(id)"),
              before: nil,
              after: document("c/\(id)", ["n": .integer(number)])
            )
          ],
          auth: .admin
        ),
        bytes: 100
      )
    }
    for (sequence, id) in [(5, "a"), (6, "b"), (7, "c")] as [(UInt64, String)] {
      table.take(record(sequence, id, Int64(sequence)))
    }
    table.filled(
      reading,
      with: [document("c/a", ["n": .integer(5)]), document("c/b", ["n": .integer(6)])],
      readAt: 6,
      time(6)
    )
    table.join(ListenTable.Join(subscription: id, sequence: 0))

    #expect(table.windowResults(of: id).map(\.name.id) == ["a", "b", "c"])
  }

  @Test("A subscriber of a shared window goes live at its permission's commit, not before")
  func joinWaits() throws {
    let query = try Self.prepared(limit: 5, offset: 0, descending: false)
    var table = ListenTable()
    let fixture = StoreFixture()
    let session = fixture.store.openListener(database: database, auth: .admin)
    defer { session.close() }
    let first = table.subscribe(session, to: .window(query))
    let reading = try #require(table.takeReadings().first)
    table.filled(reading, with: [document("c/secret", ["n": .integer(1)])], readAt: 4, time(4))
    table.join(ListenTable.Join(subscription: first, sequence: 0))
    #expect(table.isLive(first))

    let second = table.subscribe(session, to: .window(query))
    table.join(ListenTable.Join(subscription: second, sequence: 6))
    func record(_ sequence: UInt64, _ change: DocumentChange) -> EventEntry {
      EventEntry(
        record: CommitRecord(
          sequence: sequence,
          commitTime: time(Int64(sequence)),
          database: database,
          changes: [change],
          auth: .admin
        ),
        bytes: 100
      )
    }
    let secret = document("c/secret", ["n": .integer(1)])
    table.take(record(5, DocumentChange(name: secret.name, before: secret, after: nil)))
    #expect(!table.isLive(second))
    let other = document("c/a", ["n": .integer(2)])
    table.take(record(6, DocumentChange(name: other.name, before: nil, after: other)))

    #expect(table.isLive(second))
    #expect(table.windowResults(of: second).map(\.name.id) == ["a"])
    table.unsubscribe(second)
    table.join(ListenTable.Join(subscription: second, sequence: 9))
    table.end()
    #expect(!table.isLive(second))
  }
}
