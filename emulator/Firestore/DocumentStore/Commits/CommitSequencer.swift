import DocumentModel
import QueryEngine
import StorageEngine
import Synchronization

/// The sequencer of a store's commits; it also issues commit times and read times.
///
/// Each commit gets its time, is built and is submitted to storage in one step, and steps do not
/// overlap. Commit times therefore follow storage's sequence numbers, and the indexes cannot change
/// between building a batch and submitting it.
///
/// The clock is read from storage before its first use. A read time is issued only once storage has
/// a bound above it; the next run of the store begins above that bound.
final class CommitSequencer: Sendable {
  private let storage: any OrderedStorage
  private let now: @Sendable () -> Timestamp
  /// Held during a step; always taken before `clock`.
  private let steps = Mutex(RecentWrites())
  private let clock = Mutex(CommitClock())
  private let isOpen = Atomic(false)

  /// Creates a sequencer for a storage whose documents no other component writes.
  init(storage: any OrderedStorage, now: @escaping @Sendable () -> Timestamp) {
    self.storage = storage
    self.now = now
  }

  /// The way a finished commit is submitted to storage.
  struct Handover {
    /// The documents that a commit changes.
    enum Changes {
      case documents([DocumentName])
      /// Any number of documents, in any database.
      case everything
    }

    var durability: Durability
    var changes = Changes.documents([])
    /// Called once, on one of storage's threads, when the commit is visible or has failed.
    ///
    /// The success value is the commit's sequence number.
    var completed: @Sendable (Result<UInt64, any Error>) -> Void = { _ in }
    /// Called once after `completed` and after the commit's caller has been resumed.
    ///
    /// For work that wakes other threads, so that the caller does not wait for it.
    var resumed: @Sendable (Result<UInt64, any Error>) -> Void = { _ in }
  }

  /// Makes one commit and returns its time once the commit is visible and as durable as requested.
  ///
  /// `build` adds the commit's changes. It must not block, because all other commits wait for it.
  /// Throws storage's error; nothing is written then. Throws `LookUpsChangedError` before `build`
  /// runs if a commit that was submitted earlier has changed one of `lookUps`.
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

  /// Reads the clock from storage, unless that has been done, so that it can be used.
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

  /// Returns the latest time up to which every snapshot taken from now on shows all commits.
  func settledTime() async throws -> Timestamp {
    try await open()
    let time = withClock { $0.settledTime(now: $1) }
    await keepBound(beyond: time)
    return time
  }

  /// Returns true if every snapshot taken from now on shows all commits up to `time`.
  func isSettled(upTo time: Timestamp) async throws -> Bool {
    try await open()
    let isSettled = withClock { clock, _ in clock.isSettled(upTo: time) }
    if isSettled { await keepBound(beyond: time) }
    return isSettled
  }

  /// Returns once storage has a bound above a read time.
  ///
  /// One bound covers the reads of some seconds and is raised before its end. If storage fails, the
  /// read continues anyway: a full disk must not prevent reads.
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
    // Inside a step, so that the bounds reach storage in increasing order.
    steps.withLock { _ in
      let bound = clock.withLock { $0.nextBound(beyond: time) }
      var batch = StorageBatch()
      StoredClock.writeBound(bound, to: &batch)
      // Relaxed durability suffices: losing a bound does harm only if power is lost and the
      // machine's clock is behind too.
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
