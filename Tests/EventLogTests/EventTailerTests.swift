import EventLog
import ServiceLifecycle
import StorageEngine
import TestSupport
import Testing

@Suite("Event tailer", .timeLimit(.minutes(5)))
struct EventTailerTests {
  /// Runs a tailer over `storage` beside `body`.
  private func withTailer<Result: Sendable>(
    _ storage: any OrderedStorage,
    ringCapacity: Int = 1024,
    _ body: @Sendable (EventTailer) async throws -> Result
  ) async throws -> Result {
    let tailer = EventTailer(storage: storage, ringCapacity: ringCapacity, logger: .silent)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await tailer.run() }
      let result = try await body(tailer)
      group.cancelAll()
      try await group.waitForAll()
      return result
    }
  }

  /// Follows the log and returns the sequences of the next `count` records.
  private static func follow(
    _ tailer: EventTailer,
    after sequence: UInt64,
    count: Int
  ) async throws -> [UInt64] {
    var sequences: [UInt64] = []
    for try await entries in tailer.entries(after: sequence) {
      #expect(!entries.isEmpty)
      sequences += entries.map(\.record.sequence)
      if sequences.count >= count { break }
    }
    return sequences
  }

  @Test("A follower gets what was there and what comes")
  func followsOldAndNew() async throws {
    let storage = MemoryStorage()
    for number in 0..<3 { try await commit(change(number), to: storage) }
    let sequences = try await withTailer(storage) { tailer in
      async let followed = Self.follow(tailer, after: 1, count: 5)
      for number in 3..<6 {
        try await commitOther(to: storage)
        try await commit(change(number), to: storage)
        tailer.wake()
      }
      return try await followed
    }

    #expect(sequences == [2, 3, 5, 7, 9])
  }

  @Test(
    "A record that its committer offers is not read back, whichever others are, in any order",
    arguments: [2, 1024]
  )
  func offered(ringCapacity: Int) async throws {
    let storage = MemoryStorage()
    let count = 300
    let followed = try await withTailer(storage, ringCapacity: ringCapacity) { tailer in
      let follower = Task {
        var entries: [EventEntry] = []
        for try await page in tailer.entries(after: 0) {
          entries += page
          if entries.count >= count { break }
        }
        return entries
      }
      // Until the tailer follows the log, offered records are read from storage.
      try await commit(change(0), to: storage)
      tailer.wake()
      var beginning = tailer.entries(after: 0).makeAsyncIterator()
      _ = try await beginning.next()
      var late: [EventEntry] = []
      for number in 1..<count {
        let sequence = try await commit(change(number), to: storage)
        guard number % 3 != 0 else {
          tailer.wake()
          continue
        }
        let stored = try await storage.read { try CommitLog.entry(sequence, in: $0) }
        var entry = try #require(stored)
        // Stored records have no cause, so this tells offered records from stored ones.
        entry.record.cause = "offered"
        // Commits may complete in any order.
        late.append(entry)
        if number % 5 == 0 {
          for entry in late.reversed() { tailer.offer(entry) }
          late = []
        }
      }
      for entry in late { tailer.offer(entry) }
      return try await follower.value
    }
    #expect(followed.map(\.record.sequence) == Array(1...UInt64(count)))
    #expect(followed.map(\.record.changes) == (0..<count).map { [change($0)] })
    #expect(!followed.contains { $0.record.cause != nil && ($0.record.sequence - 1) % 3 == 0 })
    if ringCapacity > 2 { #expect(followed.contains { $0.record.cause == "offered" }) }
  }

  @Test("Records that are offered without a gap are followed without a read")
  func offeredWithoutGap() async throws {
    let storage = FaultyStorage()
    let count = 50
    let (followed, reads) = try await withTailer(storage) { tailer in
      // The first record may still be read from storage, depending on when the tailer starts.
      try await commit(change(0), to: storage)
      tailer.wake()
      var iterator = tailer.entries(after: 0).makeAsyncIterator()
      _ = try await iterator.next()
      // The first page that a follower reads from storage may be empty, so wait for one record.
      var batches: [EventEntry] = []
      let before = storage.readsBegun
      for number in 1...count {
        let entry = try await commitEntry(change(number), to: storage)
        tailer.offer(entry)
        while batches.count < number, let page = try await iterator.next() { batches += page }
      }
      return (batches.map(\.record.sequence), storage.readsBegun - before)
    }

    #expect(followed == (2...UInt64(count + 1)).map { $0 })
    // The wake-up above may cause one more read of the log.
    #expect(reads <= 1)
  }

  @Test("A record that is offered after a gap brings what lies in the gap with it")
  func offeredAfterGap() async throws {
    let storage = MemoryStorage()
    let sequences = try await withTailer(storage) { tailer in
      let first = try await commitEntry(change(0), to: storage)
      tailer.offer(first)
      var iterator = tailer.entries(after: 0).makeAsyncIterator()
      var sequences = try await iterator.next()?.map(\.record.sequence) ?? []
      try await commit(change(1), to: storage)
      try await commitOther(to: storage)
      tailer.offer(try await commitEntry(change(2), to: storage))
      while sequences.count < 3, let page = try await iterator.next() {
        sequences += page.map(\.record.sequence)
      }
      return sequences
    }

    #expect(sequences == [1, 2, 4])
  }

  @Test(
    "Followers of every pace see every record once and in order",
    arguments: [1, 3, 1024]
  )
  func nobodyMissesAnything(ringCapacity: Int) async throws {
    let storage = MemoryStorage()
    let count = 300
    try await withTailer(storage, ringCapacity: ringCapacity) { tailer in
      try await withThrowingTaskGroup(of: [UInt64].self) { group in
        for follower in 0..<6 {
          group.addTask {
            var sequences: [UInt64] = []
            for try await entries in tailer.entries(after: 0) {
              sequences += entries.map(\.record.sequence)
              // Some followers lag, and fall out of a small ring.
              for _ in 0..<follower * 5 { await Task.yield() }
              if sequences.count >= count { break }
            }
            return sequences
          }
        }
        var committed: [UInt64] = []
        for number in 0..<count {
          if number.isMultiple(of: 7) { try await commitOther(to: storage) }
          committed.append(try await commit(change(number), to: storage))
          tailer.wake()
        }
        for try await sequences in group { #expect(sequences == committed) }
      }
    }
  }

  @Test("A wake-up before the tailer runs is not lost, nor are commits without one")
  func wakesEarly() async throws {
    let storage = MemoryStorage()
    let tailer = EventTailer(storage: storage, logger: .silent)
    try await commit(change(1), to: storage)
    tailer.wake()
    let sequences = try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await tailer.run() }
      defer { group.cancelAll() }
      return try await Self.follow(tailer, after: 0, count: 1)
    }

    #expect(sequences == [1])
  }

  @Test("A cancelled follower ends")
  func cancellationEnds() async throws {
    let storage = MemoryStorage()
    let count = try await withTailer(storage) { tailer in
      await withTaskGroup(of: Int.self) { group in
        group.addTask {
          var count = 0
          do {
            for try await entries in tailer.entries(after: 0) { count += entries.count }
          } catch {
            Issue.record(error)
          }
          return count
        }
        group.cancelAll()
        return await group.reduce(0, +)
      }
    }

    #expect(count == 0)
  }

  @Test("Followers end when the tailer does")
  func endsFollowers() async throws {
    let storage = MemoryStorage()
    try await commit(change(1), to: storage)
    let tailer = EventTailer(storage: storage, logger: .silent)
    let run = Task { try await tailer.run() }
    var iterator = tailer.entries(after: 0).makeAsyncIterator()
    let first = try await iterator.next()
    run.cancel()
    let second = try await iterator.next()
    try await run.value

    #expect(first?.map(\.record.sequence) == [1])
    #expect(second == nil)
  }

  @Test("A graceful shutdown ends the tailer and its followers")
  func shutsDown() async throws {
    let storage = MemoryStorage()
    let tailer = EventTailer(storage: storage, logger: .silent)
    let follower = Follower(tailer: tailer)
    let group = ServiceGroup(services: [tailer, follower], logger: .silent)
    async let running: Void = group.run()
    try await commit(change(1), to: storage)
    tailer.wake()
    await follower.seen.first { _ in true }
    await group.triggerGracefulShutdown()

    try await running
  }

  private struct Follower: Service {
    let tailer: EventTailer
    let seen: AsyncStream<Void>
    private let sink: AsyncStream<Void>.Continuation

    init(tailer: EventTailer) {
      self.tailer = tailer
      (seen, sink) = AsyncStream.makeStream()
    }

    func run() async throws {
      for try await _ in tailer.entries(after: 0) { sink.yield() }
      // A service that returns before the shutdown would end its service group with an error.
    }
  }

  @Test("A store closed under the tailer ends it quietly")
  func survivesClosing() async throws {
    let storage = FaultyStorage()
    let tailer = EventTailer(storage: storage, logger: .silent)
    try await commit(change(1), to: storage)
    let run = Task { try await tailer.run() }
    var iterator = tailer.entries(after: 0).makeAsyncIterator()
    _ = try await iterator.next()
    storage.failReads(with: StorageError(.closed, "the store is closed"))
    try await commit(change(2), to: storage)
    tailer.wake()

    try await run.value
  }

  @Test("A failing read ends the tailer with that error")
  func reportsFailures() async throws {
    let storage = FaultyStorage()
    let tailer = EventTailer(storage: storage, logger: .silent)
    try await commit(change(1), to: storage)
    storage.failReads(with: StorageError(.failed, "broken"))
    var iterator = tailer.entries(after: 0).makeAsyncIterator()
    // The tailer starts after this record; the next record makes it read.
    let run = Task { try await tailer.run() }
    await #expect(throws: StorageError.self) {
      while try await iterator.next() != nil {}
    }
    storage.failReads(with: StorageError(.failed, "broken"))
    try await commit(change(2), to: storage)
    tailer.wake()

    await #expect(throws: StorageError.self) { try await run.value }
  }
}
