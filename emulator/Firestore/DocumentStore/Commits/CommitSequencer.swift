import DocumentModel
import QueryEngine
import StorageEngine
import Synchronization

/// Orders the commits of a store and hands out their times.
///
/// A commit gets its time, is built and is handed to storage in one step that no other commit's
/// step overlaps. So commit times follow storage's sequences, and a batch is built for the indexes
/// as they are when the batch is handed over.
final class CommitSequencer: Sendable {
  private let storage: any OrderedStorage
  private let now: @Sendable () -> Timestamp
  /// Held during a step; always taken before `clock`.
  private let steps = Mutex<Void>(())
  private let clock = Mutex(CommitClock())

  /// The order of the commits to a storage whose documents nobody else writes.
  init(storage: any OrderedStorage, now: @escaping @Sendable () -> Timestamp) {
    self.storage = storage
    self.now = now
  }

  /// How a finished commit is handed to storage.
  struct Handover {
    var durability: Durability
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
  /// storage's error, and then nothing is written.
  @discardableResult
  func commit(
    notBefore requestTime: Timestamp = Timestamp(microseconds: 0),
    _ build: (_ time: Timestamp, _ batch: inout StorageBatch) -> Handover
  ) async throws -> Timestamp {
    try await withCheckedThrowingContinuation { continuation in
      steps.withLock { _ in
        let time = clock.withLock { $0.nextCommit(now: now(), notBefore: requestTime) }
        var batch = StorageBatch()
        StoredClock.write(time, to: &batch)
        let handover = build(time, &batch)
        let (completed, resumed) = (handover.completed, handover.resumed)
        storage.submit(batch, expecting: [], durability: handover.durability) { [self] result in
          clock.withLock { $0.finished(time) }
          completed(result)
          continuation.resume(with: result.map { _ in time })
          resumed(result)
        }
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
