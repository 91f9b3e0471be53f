package import Logging
import ServiceLifecycle
package import StorageEngine
import Synchronization

/// Reads new records of the log once for all followers.
///
/// The document store hands it each commit's record; others wake it after theirs. Nothing polls.
/// Followers share a bounded ring of decoded records. A follower that needs older records reads them
/// from storage at its own pace, so a slow follower holds up nobody.
package final class EventTailer: Service, Sendable {
  /// The ring's size in stored bytes; a thousand large commits could take far more.
  static let ringBytesMax = 32 << 20
  /// Records handed over at a time; a follower acts between two pages.
  static let pageMax = 128

  private struct State {
    /// The ring; nil until `run` has begun.
    var ring: EventRing?
    var isEnded = false
    /// Records that the ring lacks and that need not be read, by sequence.
    var offered: [UInt64: EventEntry] = [:]
    var offeredBytes = 0
    /// Whether the log may hold records that nobody offers.
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

    /// Keeps a record for the ring, unless so much is kept that reading it again is the lesser evil.
    mutating func keep(_ entry: EventEntry, countMax: Int) {
      guard !isEnded, entry.record.sequence > ring?.through ?? 0 else { return }
      guard offered.count < countMax, offeredBytes < EventTailer.ringBytesMax else {
        mustRead = true
        return
      }
      offered[entry.record.sequence] = entry
      offeredBytes += entry.bytes
    }

    /// Moves into the ring the kept records that follow it without a gap in the sequences.
    ///
    /// No record can be missing between them, so nothing has to be looked up in storage. Returns the
    /// followers that wait for records; they are resumed after the lock is released.
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

  /// A tailer of a store's log; it follows once `run` runs.
  package init(storage: any OrderedStorage, ringCapacity: Int = 1024, logger: Logger) {
    self.storage = storage
    self.ringCapacity = max(ringCapacity, 1)
    self.logger = logger
    // One pending wake-up is enough: handling it reads everything that is there.
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Says that the log has grown; cheap, callable from any thread, even before `run`.
  package func wake() {
    state.withLock { $0.mustRead = true }
    wakeup.yield()
  }

  /// Says that a commit with this record is visible; like `wake`, but spares reading it back.
  package func offer(_ entry: EventEntry) {
    state.withLock { $0.keep(entry, countMax: ringCapacity) }
    wakeup.yield()
  }

  /// The records that follow `sequence`, with their sizes, now and as they come.
  ///
  /// They come in order and without gaps. The sequence ends when the task is cancelled, on graceful
  /// shutdown, and when the tailer ends. It throws `EventsTrimmedError` when records after
  /// `sequence` are no longer kept; 0 stands for the oldest record kept.
  package func entries(after sequence: UInt64) -> Entries {
    Entries(tailer: self, sequence: sequence)
  }

  /// Follows the log until cancelled or shut down, and then ends the followers.
  ///
  /// Throws what storage throws, but ends quietly when the store has been closed.
  package func run() async throws {
    defer { end() }
    let start = storage.sequence
    begin(after: start)
    logger.debug("Following the event log", metadata: ["event.sequence": "\(start)"])
    // A commit may have come between reading the sequence and the first wake-up.
    wakeup.yield()
    do {
      // The stream's own end costs a wake-up nothing; `cancelOnGracefulShutdown` would pass each
      // one through two more tasks, once a commit.
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

  /// Brings the ring up to the last commit.
  private func load() async throws {
    var reads = false
    while true {
      let offeredWaiters = state.withLock { state in
        let waiters = state.appendConsecutive()
        // What is left of the offered records follows commits whose records, if any, are not known.
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
      // Only an empty page shows that the log holds no more.
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

  /// The pages of records that a follower gets; each call of `makeAsyncIterator` starts anew.
  package struct Entries: AsyncSequence, Sendable {
    fileprivate let tailer: EventTailer
    fileprivate let sequence: UInt64

    /// Follows the log from the requested sequence on.
    package func makeAsyncIterator() -> Iterator {
      Iterator(tailer: tailer, sequence: sequence)
    }

    /// One follower's place.
    package struct Iterator: AsyncIteratorProtocol {
      fileprivate let tailer: EventTailer
      /// The sequence up to which everything was handed over or is known to hold no record.
      fileprivate var sequence: UInt64

      /// The next records, at least one; nil at the end.
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

  /// Waits until there may be more than `read` found; also returns at the end or a cancellation.
  fileprivate func waitForChange(after sequence: UInt64) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    // A cancellation that came too late leaves this entry behind.
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
