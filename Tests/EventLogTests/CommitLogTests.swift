import DocumentModel
import EventLog
import Events
import Identity
import StorageEngine
import TestSupport
import Testing

@Suite("Event log")
struct CommitLogTests {
  private let storage = MemoryStorage()

  @Test(
    "A record comes back as it was appended",
    arguments: [
      AuthContext.admin, .unauthenticated,
      .user(UserIdentity(uid: "u1", claimsJSON: #"{"sub":"u1","name":"Zoë"}"#)),
    ]
  )
  func recordsRoundTrip(auth: AuthContext) async throws {
    let changes = [change(1), change(2, before: 1, after: 2), change(3, before: 5, after: nil)]
    let time = Timestamp(microseconds: 1_700_000_000_123_456)
    var batch = StorageBatch()
    CommitLog.append(changes, commitTime: time, database: database, auth: auth, to: &batch)
    try await commitOther(to: storage)
    let sequence = try await storage.commit(batch)
    let records = try await storage.read {
      try CommitLog.records(after: 0, limit: 10, in: $0)
    }

    #expect(
      records == [
        CommitRecord(
          sequence: sequence,
          commitTime: time,
          database: database,
          changes: changes,
          auth: auth
        )
      ]
    )
  }

  @Test("A commit that changes nothing leaves no record")
  func appendsNothing() throws {
    var batch = StorageBatch()
    CommitLog.append(
      [],
      commitTime: Timestamp(microseconds: 0),
      database: database,
      auth: .admin,
      to: &batch
    )

    #expect(batch.operations.isEmpty)
  }

  @Test("Reading starts after the sequence asked for and stops at the limit")
  func readsPages() async throws {
    for number in 0..<6 {
      try await commit(change(number), to: storage)
      try await commitOther(to: storage)
    }
    let (page, rest, none, last) = try await storage.read { snapshot in
      (
        try CommitLog.records(after: 2, limit: 2, in: snapshot).map(\.sequence),
        try CommitLog.records(after: 5, limit: 100, in: snapshot).map(\.sequence),
        try CommitLog.records(after: .max, limit: 100, in: snapshot).map(\.sequence),
        try CommitLog.lastSequence(in: snapshot)
      )
    }

    #expect(page == [3, 5])
    #expect(rest == [7, 9, 11])
    #expect(none.isEmpty)
    #expect(last == 11)
  }

  @Test("A time's sequence is that of the last record up to it, whatever gaps there are")
  func sequencesOfTimes() async throws {
    var times: [(sequence: UInt64, time: Int64)] = []
    for number in 0..<40 {
      if number % 7 > 2 {
        try await commitOther(to: storage)
        continue
      }
      let sequence = try await commit(change(number), at: Int64(number * 10), to: storage)
      times.append((sequence, Int64(number * 10)))
    }
    for time in stride(from: Int64(-5), to: 420, by: 5) {
      let found = try await storage.read {
        try CommitLog.sequence(at: Timestamp(microseconds: time), in: $0)
      }
      let next = times.first { $0.time > time }?.sequence ?? 41
      let last = times.last { $0.time <= time }?.sequence ?? 0
      // All positions between two records are equivalent.
      #expect((last..<next).contains(found), "\(time)")
    }
  }

  @Test("A page of large records ends early")
  func pagesAreBounded() async throws {
    let text = String(repeating: "x", count: CommitLog.pageBytesMax / 2)
    for number in 0..<4 { try await commit(change(number, text: text), to: storage) }
    let sequences = try await storage.read {
      try CommitLog.records(after: 0, limit: 100, in: $0).map(\.sequence)
    }

    #expect(sequences == [1, 2])
  }

  @Test("Bytes that are no record throw, wherever they are cut or changed")
  func garbageThrows() async throws {
    var random = SeededGenerator.forTest()
    try await commit(change(1, before: 1, after: 2), to: storage)
    let stored = try await storage.read { snapshot -> [UInt8] in
      var bytes: [UInt8] = []
      try snapshot.scan(CommitLog.keyspace, prefix: []) { _, value in
        bytes = value.bytes
        return false
      }
      return bytes
    }
    for length in 0..<stored.count {
      try await replaceRecord(Array(stored.prefix(length)))
      await #expect(throws: CorruptDataError.self) {
        try await storage.read { _ = try CommitLog.records(after: 0, limit: 1, in: $0) }
      }
    }
    for _ in 0..<200 {
      var bytes = stored
      bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(
        in: 0...255,
        using: &random
      )
      try await replaceRecord(bytes)
      do {
        try await storage.read { _ = try CommitLog.records(after: 0, limit: 1, in: $0) }
      } catch is CorruptDataError {
        // Changed bytes lead either to this error or to a different record.
      }
    }
  }

  @Test("Cursors are stored by name")
  func cursors() async throws {
    var batch = StorageBatch()
    EventCursor.put("deliveries", sequence: 300, in: &batch)
    EventCursor.put("other", sequence: 2, in: &batch)
    EventCursor.put("gone", sequence: 1, in: &batch)
    EventCursor.delete("gone", in: &batch)
    try await storage.commit(batch)
    let (named, missing, all) = try await storage.read { snapshot in
      (
        try EventCursor.get("deliveries", in: snapshot),
        try EventCursor.get("gone", in: snapshot),
        try EventCursor.all(in: snapshot)
      )
    }

    #expect(named == 300)
    #expect(missing == nil)
    #expect(all == ["deliveries": 300, "other": 2])
  }

  private func replaceRecord(_ bytes: [UInt8]) async throws {
    var batch = StorageBatch()
    batch.put(CommitLog.keyspace, [0, 0, 0, 0, 0, 0, 0, 1], bytes)
    try await storage.commit(batch)
  }
}
