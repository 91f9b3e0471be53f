import DocumentModel
import QueryEngine
import StorageEngine
import Synchronization

/// Orders the commits of a store and hands out their times.
///
/// A commit gets its time, is built and is handed to storage in one step that no other commit's
/// step overlaps. So commit times follow storage's sequences, and a batch is built for the indexes
/// as they are when the batch is handed over.
///
/// The clock is read from storage before its first use. A read time is handed out only once storage
/// has a bound above it, beyond which the next run of the store begins.
final class CommitSequencer: Sendable {
  private let storage: any OrderedStorage
  private let now: @Sendable () -> Timestamp
  /// Held during a step; always taken before `clock`.
  private let steps = Mutex(RecentWrites())
  private let clock = Mutex(CommitClock())
  private let isOpen = Atomic(false)

  /// The order of the commits to a storage whose documents nobody else writes.
  init(storage: any OrderedStorage, now: @escaping @Sendable () -> Timestamp) {
    self.storage = storage
    self.now = now
  }

  /// How a finished commit is handed to storage.
  struct Handover {
    /// The documents that a commit changes.
    enum Changes {
      case documents([DocumentName])
      /// Any number of documents, in any database.
      case everything
    }

    var durability: Durability
    var changes = Changes.documents([])
    /// Called once when the commit is visible, with its sequence, or has failed, on one of storage's
    /// threads.
    var completed: @Sendable (Result<UInt64, any Error>) -> Void = { _ in }
    /// Called once after `completed` and after the commit's caller has been resumed.
    ///
    /// For work that wakes other threads, so that the caller does not wait for it.
    var resumed: @Sendable (Result<UInt64, any Error>) -> Void = { _ in }
  }

  /// Makes one commit and returns its time once the commit is visible and as durable as asked.
  ///
  /// `build` adds the commit's changes; it must not block, because all other commits wait. Throws
  /// storage's error, or `LookUpsChangedError` before anything is built when a commit that was
  /// handed over earlier has changed one of `lookUps`. Nothing is written then.
  @discardableResult
  func commit(
    notBefore requestTime: Timestamp = Timestamp(microseconds: 0),
    unlessChanged lookUps: LookUps = LookUps(),
    _ build: (_ time: Timestamp, _ batch: inout StorageBatch) -> Handover
  ) async throws -> Timestamp {
    try await open()
    return try await withCheckedThrowingContinuation { continuation in
      let isHandedOver = steps.withLock { recent in
        guard recent.areUnchanged(lookUps) else { return false }
        let (time, bound) = clock.withLock { clock in
          let time = clock.nextCommit(now: now(), notBefore: requestTime)
          return (time, clock.isBoundNear(time) ? clock.nextBound(beyond: time) : nil)
        }
        var batch = StorageBatch()
        StoredClock.write(time, to: &batch)
        if let bound { StoredClock.writeBound(bound, to: &batch) }
        let handover = build(time, &batch)
        switch handover.changes {
        case .documents(let names): recent.note(names, at: time)
        case .everything: recent.noteEverything(at: time)
        }
        let (completed, resumed) = (handover.completed, handover.resumed)
        storage.submit(batch, expecting: [], durability: handover.durability) { [self] result in
          clock.withLock { clock in
            clock.finished(time)
            guard case .success = result else { return }
            clock.observe(time)
            if let bound { clock.keptBound(bound) }
          }
          completed(result)
          continuation.resume(with: result.map { _ in time })
          resumed(result)
        }
        return true
      }
      if !isHandedOver { continuation.resume(throwing: LookUpsChangedError()) }
    }
  }

  /// Reads the clock from storage, unless that has been done; it can be used from then on.
  func open() async throws {
    guard !isOpen.load(ordering: .acquiring) else { return }
    try await storage.read { snapshot in
      let visible = try StoredClock.read(snapshot)
      let bound = try StoredClock.bound(snapshot)
      clock.withLock { clock in
        clock.observe(visible)
        clock.begin(above: bound)
      }
    }
    isOpen.store(true, ordering: .releasing)
  }

  /// The latest time up to which every snapshot taken from now on shows all commits.
  func settledTime() async throws -> Timestamp {
    try await open()
    let time = withClock { $0.settledTime(now: $1) }
    await keepBound(beyond: time)
    return time
  }

  /// Whether every snapshot taken from now on shows all commits up to `time`.
  func isSettled(upTo time: Timestamp) async throws -> Bool {
    try await open()
    let isSettled = withClock { clock, _ in clock.isSettled(upTo: time) }
    if isSettled { await keepBound(beyond: time) }
    return isSettled
  }

  /// Returns once storage has a bound above a read time.
  ///
  /// A bound covers the reads of a while, and is raised before its end. When storage fails, the
  /// read goes on all the same: a full disk keeps nobody from reading.
  private func keepBound(beyond time: Timestamp) async {
    let state = clock.withLock { (isKept: $0.isBounded(time), isDue: $0.isBoundDue(time)) }
    if !state.isKept {
      await withCheckedContinuation { continuation in
        raiseBound(beyond: time) { continuation.resume() }
      }
    } else if state.isDue {
      raiseBound(beyond: time) {}
    }
  }

  private func raiseBound(beyond time: Timestamp, then completed: @escaping @Sendable () -> Void) {
    // In a step, so that the bounds that storage gets rise.
    steps.withLock { _ in
      let bound = clock.withLock { $0.nextBound(beyond: time) }
      var batch = StorageBatch()
      StoredClock.writeBound(bound, to: &batch)
      // Relaxed: after a loss of power the machine's clock would have to be behind, too.
      storage.submit(batch, expecting: [], durability: .relaxed) { [self] result in
        clock.withLock { clock in
          if case .success = result { clock.keptBound(bound) } else { clock.lostBound() }
        }
        completed()
      }
    }
  }

  /// Reads or advances the clock; see `CommitClock`.
  func withClock<Result>(
    _ body: (_ clock: inout CommitClock, _ now: Timestamp) throws -> sending Result
  ) rethrows -> sending Result {
    try clock.withLock { try body(&$0, now()) }
  }
}

extension CommitSequencer: CommitOrder {
  func alone<Result>(_ step: () throws -> sending Result) rethrows -> sending Result {
    try steps.withLock { _ in try step() }
  }
}
