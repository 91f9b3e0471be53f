import DocumentModel
import EventLog
import Events
import StorageEngine
import Synchronization
import TestSupport
import Testing

@Suite("Event retention", .timeLimit(.minutes(5)))
struct EventRetentionTests {
  private static let hour: Int64 = 3_600_000_000

  /// A log with its tailer, retention and clock.
  private final class Fixture: Sendable {
    let storage = FaultyStorage()
    let clock = ManualClock()
    let tailer: EventTailer
    let retention: EventRetention

    init(
      bytesMax: Int = 1 << 20,
      holders: [String] = [],
      needed: @escaping @Sendable () -> UInt64? = { nil },
      willTrim: EventRetention.WillTrim? = nil
    ) {
      let clock = clock
      tailer = EventTailer(storage: storage, logger: .silent)
      retention = EventRetention(
        storage: storage,
        tailer: tailer,
        clock: clock,
        now: { Timestamp(microseconds: Int64(clock.now.offset / .microseconds(1))) },
        bytesMax: bytesMax,
        holders: holders,
        needed: needed,
        logger: .silent,
        willTrim: willTrim
      )
    }

    func run(_ body: @Sendable () async throws -> Void) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await self.tailer.run() }
        group.addTask { try await self.retention.run() }
        try await body()
        group.cancelAll()
        try await group.waitForAll()
      }
    }

    /// Advances the clock minute by minute.
    func advance(minutes: Int) async {
      for _ in 0..<minutes {
        await clock.waitForSleepers()
        clock.advance(by: .seconds(60))
      }
    }
  }

  @Test("Records needed by a running read are kept, and no follower is blamed for them")
  func keepsNeeded() async throws {
    let needed = Mutex<UInt64?>(1)
    let fixture = Fixture(bytesMax: 1, needed: { needed.withLock { $0 } })
    let storage = fixture.storage
    for index in 1...3 { try await commit(change(index), at: 0, to: storage) }
    try await fixture.run {
      try await eventually("the log is trimmed") { try await logged(storage) == [2, 3] }
      await fixture.advance(minutes: 70)
      await fixture.clock.waitForSleepers()
      #expect(try await logged(storage) == [2, 3])
      #expect(fixture.retention.exceeded == nil)
      needed.withLock { $0 = nil }
      await fixture.advance(minutes: 2)
      try await eventually("the log is trimmed") { try await logged(storage) == [] }
    }
  }

  @Test("Records go after an hour, and the mark moves with them")
  func trimsByAge() async throws {
    let fixture = Fixture()
    let storage = fixture.storage
    try await commit(change(1), at: 0, to: storage)
    try await commit(change(2), at: Self.hour / 2, to: storage)
    try await fixture.run {
      await fixture.advance(minutes: 59)
      await fixture.clock.waitForSleepers()
      let before = try await logged(storage)
      await fixture.advance(minutes: 2)
      try await eventually("the log is trimmed") { try await logged(storage) == [2] }
      let mark = try await storage.read { try CommitLog.trimmedThrough(in: $0)?.sequence }

      #expect(before == [1, 2])
      #expect(mark == 1)
    }
  }

  @Test("A record that a cursor has not passed stays, however old")
  func keepsForCursors() async throws {
    let fixture = Fixture()
    let storage = fixture.storage
    for number in 1...4 { try await commit(change(number), to: storage) }
    try await put("slow", 2, storage)
    try await put("fast", 4, storage)
    try await fixture.run {
      await fixture.advance(minutes: 70)
      try await eventually("the log is trimmed") { try await logged(storage) == [3, 4] }
      try await put("slow", 4, storage)
      await fixture.advance(minutes: 2)
      try await eventually("the log is trimmed") { try await logged(storage) == [] }
    }
  }

  @Test("A holder without a cursor keeps everything")
  func holdersHold() async throws {
    let fixture = Fixture(holders: ["deliveries"])
    let storage = fixture.storage
    try await commit(change(1), to: storage)
    try await fixture.run {
      await fixture.advance(minutes: 120)
      await fixture.clock.waitForSleepers()
      let kept = try await logged(storage)
      try await put("deliveries", 1, storage)
      await fixture.advance(minutes: 2)
      try await eventually("the log is trimmed") { try await logged(storage) == [] }

      #expect(kept == [1])
    }
  }

  @Test("Above the bound records go early, oldest first")
  func trimsBySize() async throws {
    let text = String(repeating: "x", count: 1000)
    let fixture = Fixture(bytesMax: 5000)
    let storage = fixture.storage
    try await fixture.run {
      // Trims commit too, and so take sequence numbers in between.
      var committed: [UInt64] = []
      for number in 0..<10 {
        committed.append(try await commit(change(number, text: text), to: storage))
        fixture.tailer.wake()
      }
      try await eventually("the log is trimmed") {
        try await logged(storage) == Array(committed.suffix(4))
      }
      #expect(fixture.retention.exceeded == nil)
      await eventually("the bytes are counted") { fixture.retention.bytes <= 5000 }
    }
  }

  @Test("A log held above the bound names the cursor, until that moves on")
  func namesTheCursor() async throws {
    let text = String(repeating: "x", count: 1000)
    let fixture = Fixture(bytesMax: 5000)
    let storage = fixture.storage
    try await put("fast", 100, storage)
    try await put("slow", 3, storage)
    try await fixture.run {
      // Trims commit too, and so take sequence numbers in between.
      var committed: [UInt64] = []
      for number in 0..<10 {
        committed.append(try await commit(change(number, text: text), to: storage))
        fixture.tailer.wake()
      }
      await eventually("the follower is named") { fixture.retention.exceeded == "slow" }
      // Records that the cursor has passed were trimmed all the same.
      try await eventually("the log is trimmed") {
        try await logged(storage) == Array(committed.dropFirst(1))
      }

      try await put("slow", committed[9], storage)
      // Retention checks again each second.
      await eventually("the follower is named no longer") {
        fixture.clock.advance(by: .seconds(1))
        return fixture.retention.exceeded == nil
      }
      try await eventually("the log is trimmed") {
        try await logged(storage) == Array(committed.suffix(4))
      }
    }
  }

  @Test("What the hook adds goes in the batch of the trimming")
  func hookSharesTheBatch() async throws {
    let past = Keyspace("past")
    let fixture = Fixture(willTrim: { records, _, batch in
      for change in records.flatMap(\.changes) { batch.delete(past, Array(change.name.id.utf8)) }
    })
    let storage = fixture.storage
    var batch = StorageBatch()
    for id in ["i1", "i2", "i3"] { batch.put(past, Array(id.utf8), []) }
    try await storage.commit(batch)
    for number in 1...2 { try await commit(change(number), to: storage) }
    try await commit(change(3), at: Self.hour, to: storage)
    try await fixture.run {
      await fixture.advance(minutes: 61)
      try await eventually("the log is trimmed") { try await logged(storage) == [4] }
      let (left, versionsDiffer) = try await storage.read { snapshot in
        var left: [[UInt8]] = []
        try snapshot.scan(past, prefix: []) { key, _ in
          left.append(key)
          return true
        }
        return (left, try snapshot.get(past, Array("i1".utf8)) != nil)
      }
      #expect(left == [Array("i3".utf8)])
      #expect(!versionsDiffer)
    }
  }

  @Test(
    "A follower that requests trimmed records receives an error; one that requests all does not"
  )
  func trimmedRecordsAreMissed() async throws {
    let fixture = Fixture(bytesMax: 1)
    let storage = fixture.storage
    for number in 1...3 { try await commit(change(number), to: storage) }
    try await fixture.run {
      try await eventually("the log is trimmed") { try await logged(storage) == [] }
      var late = fixture.tailer.entries(after: 1).makeAsyncIterator()
      let error = await #expect(throws: EventsTrimmedError.self) { try await late.next() }
      #expect(error?.trimmedThrough == 3)
    }
  }

  @Test("The size of a log from an earlier run is measured")
  func measuresAtStart() async throws {
    let fixture = Fixture()
    let storage = fixture.storage
    for number in 1...50 { try await commit(change(number), to: storage) }
    try await fixture.run {
      await fixture.clock.waitForSleepers()
      let bytes = try await storage.read { snapshot -> Int in
        var bytes = 0
        try snapshot.scan(CommitLog.keyspace, prefix: []) { key, value in
          bytes += key.count + value.bytes.count
          return true
        }
        return bytes
      }
      #expect(fixture.retention.bytes == bytes)
    }
  }

  private func put(_ name: String, _ sequence: UInt64, _ storage: any OrderedStorage) async throws {
    var batch = StorageBatch()
    EventCursor.put(name, sequence: sequence, in: &batch)
    try await storage.commit(batch)
  }
}
