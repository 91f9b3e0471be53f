import EventLog
import StorageEngine
import Synchronization
import TestSupport
import Testing

@testable import TriggerDelivery

@Suite("Delivery backlog", .timeLimit(.minutes(2)))
struct DeliveryBacklogTests {
  @Test("However many are pending at a start, the first run after one page, and memory has a bound")
  func startsAtOnce() async throws {
    let (count, page) = (100_000, 500)
    let base = MemoryStorage()
    let time = DeliveryBench(storage: base, invoker: ScriptedInvoker()).now
    for first in stride(from: 1, through: count, by: 10_000) {
      var batch = WriteBatch()
      _ = DeliveryStore.insert(
        (first..<first + 10_000).map { .sample(sequence: UInt64($0), at: time) },
        into: &batch
      )
      EventCursor.put(DeliveryService.cursorName, sequence: UInt64(count), in: &batch)
      try await base.commit(batch)
    }
    let invoker = ScriptedInvoker()
    invoker.set("f", ScriptedInvoker.hanging)
    // A delivery that waited for the count would never run.
    let storage = MeteredStorage(base) { await invoker.waitForRuns(1) }
    let bench = DeliveryBench(
      storage: storage,
      invoker: invoker,
      configuration: .init(heldMax: page)
    )
    try await bench.service.updateFunctions(["f": .created("things/{id}")])
    try await bench.run { _ in
      await invoker.waitForRuns(160)
      await storage.waitForKeys(count)
    } stopping: { bench in
      await bench.clock.waitForSleepers()
      bench.clock.advance(by: .seconds(2))
    }

    #expect(storage.rowsRead == page)
    #expect(invoker.runs.count == 160)
  }
}

/// Counts what reads read, and holds those that only count until `beforeCounting` returns.
private final class MeteredStorage: StorageEngine {
  private struct State {
    var rows = 0
    var keys = 0
    var waiters: [(keys: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let base: any StorageEngine
  private let beforeCounting: @Sendable () async -> Void
  private let state = Mutex(State())

  init(_ base: any StorageEngine, beforeCounting: @escaping @Sendable () async -> Void) {
    self.base = base
    self.beforeCounting = beforeCounting
  }

  /// How many deliveries were read.
  var rowsRead: Int { state.withLock { $0.rows } }

  /// Returns once as many due times were read without their deliveries.
  func waitForKeys(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.keys >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    let meter = Meter()
    let result = try await base.read { try body(MeteredSnapshot(base: $0, meter: meter)) }
    let (rows, keys) = (meter.rows.load(ordering: .relaxed), meter.keys.load(ordering: .relaxed))
    if rows == 0, keys > 0 { await beforeCounting() }
    let due = state.withLock { state in
      state.rows += rows
      if rows == 0 { state.keys += keys }
      let due = state.waiters.filter { $0.keys <= state.keys }
      state.waiters.removeAll { $0.keys <= state.keys }
      return due
    }
    for waiter in due { waiter.continuation.resume() }
    return result
  }

  func submit(
    _ batch: WriteBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    base.submit(batch, expecting: expecting, durability: durability, completion: completion)
  }

  var sequence: UInt64 { base.sequence }

  func close() async throws { try await base.close() }
}

/// What one read reads.
private final class Meter: Sendable {
  let rows = Atomic(0)
  let keys = Atomic(0)
}

private struct MeteredSnapshot: StorageSnapshot {
  let base: any StorageSnapshot
  let meter: Meter

  var sequence: UInt64 { base.sequence }

  func get(_ keyspace: Keyspace, _ key: [UInt8]) throws -> StoredValue? {
    if keyspace == DeliveryStore.rows { meter.rows.add(1, ordering: .relaxed) }
    return try base.get(keyspace, key)
  }

  func scan(
    _ keyspace: Keyspace,
    from: [UInt8]?,
    to: [UInt8]?,
    descending: Bool,
    _ body: (_ key: [UInt8], _ value: StoredValue) throws -> Bool
  ) throws {
    try base.scan(keyspace, from: from, to: to, descending: descending) { key, value in
      if keyspace == DeliveryStore.due { meter.keys.add(1, ordering: .relaxed) }
      return try body(key, value)
    }
  }
}
