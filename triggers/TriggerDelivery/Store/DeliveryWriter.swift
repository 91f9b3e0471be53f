import DequeModule
import Logging
import StorageEngine
import Synchronization

/// The writer of deliveries' outcomes, which combines many changes into one batch, in order.
///
/// While one batch is being written, the next batch collects changes. A full disk loses nothing:
/// the batch is written again until there is space. A change whose shards another dispatcher has
/// taken over is refused with a conflict.
final class DeliveryWriter: Sendable {
  /// A change that is written completely or not at all.
  struct Change: Sendable {
    /// The shards that the writer must still have.
    var shards: Set<Shard>
    var batch: StorageBatch
    /// Called once, on a thread of the storage engine or within `write`; must not block.
    var completion: @Sendable (Result<Void, any Error>) -> Void
    /// The proof that the writer had the shards when it received the change.
    fileprivate var claims: [VersionExpectation] = []

    init(
      shards: Set<Shard>,
      batch: StorageBatch,
      completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
      self.shards = shards
      self.batch = batch
      self.completion = completion
    }
  }

  private struct State {
    var waiting: Deque<Change> = []
    /// The changes that are being written or have found the disk full.
    var writing: [Change] = []
    /// The number of changes of a refused batch that are written singly to find the lost claim.
    var apart = 0
    var isFull = false
    var claims: [Shard: VersionExpectation] = [:]

    /// Begins the next batch and returns it with its expectations; nil if no change waits.
    mutating func next() -> (StorageBatch, [VersionExpectation])? {
      guard writing.isEmpty, !waiting.isEmpty else { return nil }
      let count = apart > 0 ? 1 : waiting.count
      apart = max(0, apart - 1)
      writing = Array(waiting.prefix(count))
      waiting.removeFirst(count)
      return batch
    }

    var batch: (StorageBatch, [VersionExpectation]) {
      var batch = StorageBatch()
      var required: Set<VersionExpectation> = []
      for change in writing {
        batch.append(change.batch)
        required.formUnion(change.claims)
      }
      return (batch, Array(required))
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

  /// Sets the proofs for all shards that this writer has.
  func update(claims: [Shard: VersionExpectation]) {
    state.withLock { $0.claims = claims }
  }

  /// Writes a change after all earlier changes.
  ///
  /// The write requires the claims of this moment. It fails if a claim is lost in the meantime,
  /// even if it is then won again.
  func write(_ change: Change) {
    var change = change
    let isClaimed = state.withLock { state in
      change.claims = change.shards.compactMap { state.claims[$0] }
      guard change.claims.count == change.shards.count else { return false }
      state.waiting.append(change)
      return true
    }
    if isClaimed { submitNext() } else { change.completion(.failure(Self.lost)) }
  }

  /// Writes a batch after all earlier changes and returns when it is stored.
  func write(_ batch: StorageBatch, shards: Set<Shard>) async throws {
    try await withCheckedThrowingContinuation { continuation in
      write(Change(shards: shards, batch: batch) { continuation.resume(with: $0) })
    }
  }

  /// Writes the batch again that has found the disk full.
  func retry() {
    let batch = state.withLock { state -> (StorageBatch, [VersionExpectation])? in
      guard state.isFull else { return nil }
      state.isFull = false
      return state.batch
    }
    if let batch { submit(batch) }
  }

  private func submitNext() {
    if let batch = state.withLock({ $0.next() }) { submit(batch) }
  }

  private func submit(_ batch: (StorageBatch, [VersionExpectation])) {
    // If a system crash loses this write, events are expanded and deliveries run again.
    storage.submit(batch.0, expecting: batch.1, durability: .relaxed) { [self] in ended($0) }
  }

  private func ended(_ result: Result<UInt64, any Error>) {
    var error: StorageError?
    if case .failure(let failure) = result { error = failure as? StorageError }
    if error?.kind == .full {
      state.withLock { $0.isFull = true }
      logger.error("What becomes of events waits: the disk is full")
      stall.yield()
      return
    }
    let changes = state.withLock { state -> [Change] in
      defer { state.writing = [] }
      guard error?.kind == .conflict, state.writing.count > 1 else { return state.writing }
      state.apart += state.writing.count
      for change in state.writing.reversed() { state.waiting.prepend(change) }
      return []
    }
    for change in changes { change.completion(result.map { _ in }) }
    submitNext()
  }

  private static let lost = StorageError(
    .conflict,
    "another dispatcher has taken over the shard of a delivery"
  )
}
