package import DocumentModel
package import Logging
import ServiceLifecycle
package import StorageEngine
import Synchronization

/// A service that trims the log of records that are old enough and that every cursor has passed.
///
/// If the log is larger than `bytesMax`, records are trimmed as soon as every cursor has passed
/// them. If a cursor keeps the log above this limit, `exceeded` contains its name, and the document
/// store refuses writes.
package final class EventRetention: Service, Sendable {
  /// A closure that adds related changes to the batch that deletes records.
  ///
  /// The snapshot shows the store as it was when the records were chosen.
  package typealias WillTrim =
    @Sendable (
      _ records: [CommitRecord], _ snapshot: any StorageSnapshot, _ batch: inout StorageBatch
    ) throws -> Void

  /// The maximum number of records trimmed in one batch, for which a commit may have to wait.
  static let batchMax = 256
  /// The number of checks per age limit.
  ///
  /// A record outlives the limit by at most a sixtieth of it.
  static let ticksPerAge = 60
  /// The interval of checks while writes are refused and only cursors move, without notification.
  static let exceededTick: Duration = .seconds(1)
  /// The number of keys measured in one read at the start.
  static let measurePage = 4096

  private struct State {
    var bytes = 0
    /// The sequence up to which records are included in `bytes`.
    var measuredThrough: UInt64 = 0
    var exceeded: String?
  }

  private let storage: any OrderedStorage
  private let tailer: EventTailer
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let policy: RetentionPolicy
  private let holders: [String]
  private let needed: @Sendable () -> UInt64?
  private let logger: Logger
  private let willTrim: WillTrim?
  private let state = Mutex(State())
  private let kicks: AsyncStream<Void>
  private let kick: AsyncStream<Void>.Continuation

  /// Creates the retention for the log of a store.
  ///
  /// It works while `run` runs.
  ///
  /// `holders` are the names of cursors that keep every record as long as they do not exist.
  /// Records after the sequence that `needed` returns are kept, whatever their age and number.
  package init(
    storage: any OrderedStorage,
    tailer: EventTailer,
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Timestamp,
    age: Duration = .seconds(3600),
    bytesMax: Int = 256 << 20,
    holders: [String] = [],
    needed: @escaping @Sendable () -> UInt64? = { nil },
    logger: Logger,
    willTrim: WillTrim? = nil
  ) {
    self.storage = storage
    self.tailer = tailer
    self.clock = clock
    self.now = now
    self.policy = RetentionPolicy(age: age, bytesMax: bytesMax)
    self.holders = holders
    self.needed = needed
    self.logger = logger
    self.willTrim = willTrim
    (kicks, kick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// The name of the cursor that keeps the log above its limit; nil if none does.
  package var exceeded: String? { state.withLock { $0.exceeded } }

  /// The size of the log in bytes, as far as it was measured.
  package var bytes: Int { state.withLock { $0.bytes } }

  /// Measures the log and then trims it when records are due, until cancelled or shut down.
  package func run() async throws {
    do {
      try await measure()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await self.follow() }
        group.addTask { await self.tick() }
        group.addTask { try await self.trimWhenKicked() }
        // The first task to end does so because of a shutdown, a cancellation or an error.
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch let error as StorageError where error.kind == .closed {
      logger.debug("The store was closed under the event log's retention")
    }
  }

  private func measure() async throws {
    while true {
      let after = state.withLock { $0.measuredThrough }
      let page = try await storage.read { snapshot in
        try CommitLog.measure(after: after, limit: Self.measurePage, in: snapshot)
      }
      state.withLock { state in
        state.bytes += page.bytes
        state.measuredThrough = page.last
      }
      if page.count < Self.measurePage { return }
    }
  }

  private func follow() async throws {
    for try await entries in tailer.entries(after: state.withLock { $0.measuredThrough }) {
      let isAbove = state.withLock { state in
        for entry in entries {
          state.bytes += entry.bytes
          state.measuredThrough = entry.record.sequence
        }
        return state.bytes > policy.bytesMax
      }
      if isAbove { kick.yield() }
    }
  }

  private func tick() async {
    while !Task.isCancelled {
      kick.yield()
      // A cancelled sleep ends the loop, so the error is ignored.
      try? await clock.sleep(for: policy.age / Self.ticksPerAge)
    }
  }

  private func trimWhenKicked() async throws {
    for await _ in kicks.cancelOnGracefulShutdown() {
      do {
        while try await trimBatch() {}
        while exceeded != nil, !Task.isShuttingDownGracefully {
          // Writes are refused, so no commit notifies this loop when the cursor has moved.
          try await clock.sleep(for: Self.exceededTick)
          while try await trimBatch() {}
        }
      } catch let error as StorageError where error.kind == .full {
        logger.warning("The disk is full; old events are kept until there is room")
      }
    }
  }

  /// Trims one batch; returns true if there may be more to trim.
  private func trimBatch() async throws -> Bool {
    let (bytes, measured) = state.withLock { ($0.bytes, $0.measuredThrough) }
    let (entries, slowest, count, batch) = try await storage.read { snapshot in
      let entries = try CommitLog.entries(after: 0, limit: Self.batchMax, in: snapshot)
      let slowest = try self.slowestCursor(in: snapshot)
      let count = policy.trimmable(
        entries,
        bytes: bytes,
        // Records that were not measured yet must not be subtracted from the size.
        upTo: min(slowest?.sequence ?? .max, measured, self.needed() ?? .max),
        now: now()
      )
      var batch = StorageBatch()
      if count > 0 {
        let records = entries.prefix(count).map(\.record)
        CommitLog.trim(through: records[count - 1], in: &batch)
        try willTrim?(records, snapshot, &batch)
      }
      return (entries, slowest, count, batch)
    }
    if let last = entries.prefix(count).last {
      try await storage.commit(batch, durability: .relaxed)
      logger.debug("Trimmed events", metadata: ["event.sequence": "\(last.record.sequence)"])
    }
    let trimmed = entries.prefix(count).reduce(0) { $0 + $1.bytes }
    return state.withLock { state in
      state.bytes -= trimmed
      let isAbove = state.bytes > policy.bytesMax
      // The cursor is responsible only if it keeps a record that would otherwise be trimmed.
      let next = count < entries.count ? entries[count].record.sequence : nil
      let isHeld = next.map { $0 > slowest?.sequence ?? .max } ?? false
      state.exceeded = isAbove && isHeld ? slowest?.name : nil
      return count > 0 && count == entries.count
    }
  }

  private func slowestCursor(
    in snapshot: any StorageSnapshot
  ) throws -> (name: String, sequence: UInt64)? {
    var cursors = try EventCursor.all(in: snapshot)
    for holder in holders where cursors[holder] == nil { cursors[holder] = 0 }
    return cursors.min { ($0.value, $0.key) < ($1.value, $1.key) }
      .map { (name: $0.key, sequence: $0.value) }
  }
}

/// The rule that decides which records are trimmed.
struct RetentionPolicy: Sendable {
  var age: Duration
  var bytesMax: Int

  /// Returns how many of the oldest `entries` can be trimmed if all records together have `bytes`.
  ///
  /// Records after `upTo` are never trimmed. Of the others, records are trimmed that are old enough
  /// or that exceed the size limit.
  func trimmable(_ entries: [EventEntry], bytes: Int, upTo: UInt64, now: Timestamp) -> Int {
    let ageMicroseconds = age / .microseconds(1)
    var left = bytes
    var count = 0
    for entry in entries {
      guard entry.record.sequence <= upTo else { break }
      let isOld =
        Double(now.microseconds - entry.record.commitTime.microseconds) >= ageMicroseconds
      guard isOld || left > bytesMax else { break }
      left -= entry.bytes
      count += 1
    }
    return count
  }
}
