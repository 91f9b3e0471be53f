package import Logging
import ServiceLifecycle
package import StorageEngine
import Synchronization

/// A service that reads new records of the log once for all followers.
///
/// The document store passes the record of each commit to it. Other writers wake it after their
/// commits. Nothing polls. Followers share a ring of decoded records with a limited size. A
/// follower that needs older records reads them from storage at its own pace, so a slow follower
/// delays no other.
package final class EventTailer: Service, Sendable {
  /// The size limit of the ring in stored bytes.
  ///
  /// A limit on the number of records alone would allow large commits to take far more.
  static let ringBytesMax = 32 << 20
  /// The maximum number of records per page.
  ///
  /// A follower can act between two pages.
  static let pageMax = 128

  private struct State {
    /// The ring; nil until `run` has started.
    var ring: EventRing?
    var isEnded = false
    /// Records by sequence that are not in the ring yet and need not be read from storage.
    var offered: [UInt64: EventEntry] = [:]
    var offeredBytes = 0
    /// True if the log may contain records that were not offered.
    var mustRead = true
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var cancelled: Set<UInt64> = []
    var nextID: UInt64 = 0

    mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
      defer { waiters = [:] }
      return Array(waiters.values)
    }

    mutating func takeOffered() -> [UInt64: EventEntry] {
      defer { (offered, offeredBytes) = ([:], 0) }
      return offered
    }

    /// Keeps a record for the ring.
    ///
    /// If too many are kept, it is read from storage later instead.
    mutating func keep(_ entry: EventEntry, countMax: Int) {
      guard !isEnded, entry.record.sequence > ring?.through ?? 0 else { return }
      guard offered.count < countMax, offeredBytes < EventTailer.ringBytesMax else {
        mustRead = true
        return
      }
      offered[entry.record.sequence] = entry
      offeredBytes += entry.bytes
    }

    /// Moves kept records into the ring if their sequences follow it without a gap.
    ///
    /// No record can be missing between them, so storage need not be read. Returns the waiting
    /// followers, which the caller resumes after it has released the lock.
    mutating func appendConsecutive() -> [CheckedContinuation<Void, Never>] {
      guard let through = ring?.through else { return [] }
      var entries: [EventEntry] = []
      while let entry = offered.removeValue(forKey: through + UInt64(entries.count) + 1) {
        offeredBytes -= entry.bytes
        entries.append(entry)
      }
      guard let last = entries.last else { return [] }
      ring?.append(entries, through: last.record.sequence)
      return takeWaiters()
    }

    func step(after sequence: UInt64) -> Step {
      if isEnded { return .ended }
      guard let ring else { return .wait }
      switch ring.read(after: sequence, limit: EventTailer.pageMax) {
      case .entries(let entries): return .entries(entries)
      case .nothingYet: return .wait
      case .tooOld: return .storage
      }
    }
  }

  private let storage: any OrderedStorage
  private let ringCapacity: Int
  private let logger: Logger
  private let state = Mutex(State())
  private let wakeups: AsyncStream<Void>
  private let wakeup: AsyncStream<Void>.Continuation

  /// Creates a tailer for the log of a store.
  ///
  /// It follows the log while `run` runs.
  package init(storage: any OrderedStorage, ringCapacity: Int = 1024, logger: Logger) {
    self.storage = storage
    self.ringCapacity = max(ringCapacity, 1)
    self.logger = logger
    // One pending wakeup is enough, because handling it reads everything that is there.
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Notifies the tailer that the log has grown.
  ///
  /// The call is cheap and can be made from any thread, even before `run`.
  package func wake() {
    state.withLock { $0.mustRead = true }
    wakeup.yield()
  }

  /// Passes the record of a visible commit to the tailer, so that it need not be read from storage.
  package func offer(_ entry: EventEntry) {
    state.withLock { $0.keep(entry, countMax: ringCapacity) }
    wakeup.yield()
  }

  /// Returns the records that follow `sequence`, with their sizes, now and as they are committed.
  ///
  /// The records are in order and without gaps. The returned sequence ends when the task is
  /// cancelled, on graceful shutdown, and when the tailer ends. It throws `EventsTrimmedError` if
  /// records after `sequence` have been trimmed. The value 0 stands for the oldest record that is
  /// kept.
  package func entries(after sequence: UInt64) -> Entries {
    Entries(tailer: self, sequence: sequence)
  }

  /// Follows the log until cancelled or shut down, and then ends the followers.
  ///
  /// Throws the errors of the storage, but returns without an error if the store has been closed.
  package func run() async throws {
    defer { end() }
    let start = storage.sequence
    begin(after: start)
    logger.debug("Following the event log", metadata: ["event.sequence": "\(start)"])
    // There may have been a commit between reading the sequence and the first wakeup.
    wakeup.yield()
    do {
      // Finishing the stream adds no cost per wakeup. `cancelOnGracefulShutdown` would pass each
      // wakeup, and so each commit, through two more tasks.
      try await withGracefulShutdownHandler {
        for await _ in wakeups { try await load() }
      } onGracefulShutdown: { [wakeup] in
        wakeup.finish()
      }
    } catch let error as StorageError where error.kind == .closed {
      logger.debug("The store was closed under the event log")
    }
  }

  private func begin(after sequence: UInt64) {
    let waiters = state.withLock { state in
      state.ring = EventRing(
        after: sequence,
        countMax: ringCapacity,
        bytesMax: Self.ringBytesMax
      )
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume() }
  }

  private func end() {
    let waiters = state.withLock { state in
      state.isEnded = true
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Updates the ring to the last commit.
  private func load() async throws {
    var reads = false
    while true {
      let offeredWaiters = state.withLock { state in
        let waiters = state.appendConsecutive()
        // The offered records that remain follow commits whose records, if any, are not known.
        if state.mustRead || !state.offered.isEmpty { reads = true }
        state.mustRead = false
        return waiters
      }
      for waiter in offeredWaiters { waiter.resume() }
      guard reads else { return }
      let (through, offered) = state.withLock { ($0.ring?.through ?? 0, $0.takeOffered()) }
      guard storage.sequence > through else { return }
      let (entries, sequence) = try await storage.read { snapshot in
        (
          try CommitLog.entries(
            after: through,
            limit: Self.pageMax,
            knowing: offered,
            in: snapshot
          ),
          snapshot.sequence
        )
      }
      // Only an empty page shows that the log contains no further records.
      let reached = entries.last?.record.sequence ?? sequence
      let waiters = state.withLock { state in
        state.ring?.append(entries, through: reached)
        for entry in offered.values { state.keep(entry, countMax: ringCapacity) }
        return entries.isEmpty ? [] : state.takeWaiters()
      }
      for waiter in waiters { waiter.resume() }
    }
  }

  // MARK: Followers

  /// The pages of records for a follower.
  ///
  /// Each iterator starts at the requested sequence.
  package struct Entries: AsyncSequence, Sendable {
    fileprivate let tailer: EventTailer
    fileprivate let sequence: UInt64

    package func makeAsyncIterator() -> Iterator {
      Iterator(tailer: tailer, sequence: sequence)
    }

    /// The position of one follower.
    package struct Iterator: AsyncIteratorProtocol {
      fileprivate let tailer: EventTailer
      /// The sequence up to which all records were returned or there are none.
      fileprivate var sequence: UInt64

      /// Waits for the next records and returns at least one; nil at the end.
      package mutating func next() async throws -> [EventEntry]? {
        while !Task.isCancelled, !Task.isShuttingDownGracefully {
          switch tailer.read(after: sequence) {
          case .ended: return nil
          case .wait: await tailer.waitForChange(after: sequence)
          case .entries(let entries):
            sequence = entries.last?.record.sequence ?? sequence
            return entries
          case .storage:
            let (entries, reached) = try await tailer.readStorage(after: sequence)
            sequence = reached
            if !entries.isEmpty { return entries }
          }
        }
        return nil
      }
    }
  }

  fileprivate enum Step {
    case entries([EventEntry])
    case storage
    case wait
    case ended
  }

  fileprivate func read(after sequence: UInt64) -> Step {
    state.withLock { $0.step(after: sequence) }
  }

  fileprivate func readStorage(
    after sequence: UInt64
  ) async throws -> (entries: [EventEntry], reached: UInt64) {
    try await storage.read { snapshot in
      if sequence > 0, let trimmed = try CommitLog.trimmedThrough(in: snapshot),
        trimmed.sequence > sequence
      {
        throw EventsTrimmedError(asked: sequence, trimmedThrough: trimmed.sequence)
      }
      let entries = try CommitLog.entries(after: sequence, limit: Self.pageMax, in: snapshot)
      return (entries, entries.last?.record.sequence ?? max(sequence, snapshot.sequence))
    }
  }

  /// Waits until there may be records after `sequence`.
  ///
  /// Also returns at the end or on cancellation.
  fileprivate func waitForChange(after sequence: UInt64) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    // A cancellation after the wait has ended leaves this entry behind.
    defer { state.withLock { _ = $0.cancelled.remove(id) } }
    await withTaskCancellationOrGracefulShutdownHandler {
      await withCheckedContinuation { continuation in
        let isWaiting = state.withLock { state in
          guard case .wait = state.step(after: sequence), state.cancelled.remove(id) == nil else {
            return false
          }
          state.waiters[id] = continuation
          return true
        }
        if !isWaiting { continuation.resume() }
      }
    } onCancelOrGracefulShutdown: { [self] in
      let waiter = state.withLock { state in
        let waiter = state.waiters.removeValue(forKey: id)
        if waiter == nil { state.cancelled.insert(id) }
        return waiter
      }
      waiter?.resume()
    }
  }
}
