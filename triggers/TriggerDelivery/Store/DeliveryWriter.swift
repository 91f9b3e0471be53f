import Logging
import StorageEngine
import Synchronization

/// The writer of deliveries' outcomes, which combines many changes into one batch, in order.
///
/// While one batch is being written, the next batch collects changes. A full disk loses nothing:
/// the batch is written again until there is space.
final class DeliveryWriter: Sendable {
  /// A change that is written completely or not at all.
  private struct Change {
    var batch: StorageBatch
    var completion: @Sendable (Result<Void, any Error>) -> Void
  }

  private struct State {
    var waiting: [Change] = []
    /// The changes that are being written or have found the disk full.
    var writing: [Change] = []
    var isFull = false
    /// True if a full disk is an error, because nobody calls `retry` any more.
    var isStopped = false

    /// Begins the next batch and returns it; nil if no change waits.
    mutating func next() -> StorageBatch? {
      guard writing.isEmpty, !waiting.isEmpty else { return nil }
      swap(&waiting, &writing)
      return batch
    }

    var batch: StorageBatch {
      var batch = StorageBatch()
      for change in writing { batch.append(change.batch) }
      return batch
    }
  }

  private let storage: any OrderedStorage
  private let logger: Logger
  private let state = Mutex(State())
  /// Yields when the disk was found full; the consumer must call `retry` after a pause.
  let stalls: AsyncStream<Void>
  private let stall: AsyncStream<Void>.Continuation

  init(storage: any OrderedStorage, logger: Logger) {
    self.storage = storage
    self.logger = logger
    (stalls, stall) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Writes a batch after all earlier batches.
  ///
  /// `completion` is called once, on a thread of the storage engine or within `write`. It must not
  /// block.
  func write(
    _ batch: StorageBatch,
    completion: @escaping @Sendable (Result<Void, any Error>) -> Void
  ) {
    state.withLock { $0.waiting.append(Change(batch: batch, completion: completion)) }
    submitNext()
  }

  /// Writes a batch after all earlier batches and returns when it is stored.
  func write(_ batch: StorageBatch) async throws {
    try await withCheckedThrowingContinuation { continuation in
      write(batch) { continuation.resume(with: $0) }
    }
  }

  /// Writes the batch again that has found the disk full.
  func retry() {
    let batch = state.withLock { state -> StorageBatch? in
      guard state.isFull else { return nil }
      state.isFull = false
      return state.batch
    }
    if let batch { submit(batch) }
  }

  /// Fails the changes that wait for space, and later ones that find the disk full.
  func stop() {
    let isFull = state.withLock { state in
      defer { state.isFull = false }
      state.isStopped = true
      return state.isFull
    }
    if isFull { ended(.failure(StorageError(.full, "the server stops while the disk is full"))) }
  }

  private func submitNext() {
    if let batch = state.withLock({ $0.next() }) { submit(batch) }
  }

  private func submit(_ batch: StorageBatch) {
    // If a system crash loses this write, events are expanded and deliveries run again.
    storage.submit(batch, expecting: [], durability: .relaxed) { [self] in ended($0) }
  }

  private func ended(_ result: Result<UInt64, any Error>) {
    if case .failure(let error as StorageError) = result, error.kind == .full, waitForSpace() {
      logger.error("What becomes of events waits: the disk is full")
      stall.yield()
      return
    }
    let changes = state.withLock { state in
      defer { state.writing = [] }
      return state.writing
    }
    for change in changes { change.completion(result.map { _ in }) }
    submitNext()
  }

  /// Keeps the batch for `retry`; false if the writer is stopped.
  ///
  /// The changes that wait then fail as well, because none may overtake an earlier one.
  private func waitForSpace() -> Bool {
    state.withLock { state in
      if state.isStopped {
        state.writing += state.waiting
        state.waiting = []
      }
      state.isFull = !state.isStopped
      return state.isFull
    }
  }
}
