package import StorageEngine
import Synchronization
package import Testing

/// A storage engine that passes every call on to another engine, and fails or stalls on demand.
package final class FaultyStorage: OrderedStorage {
  private typealias Submission = @Sendable () -> Void

  private struct State {
    /// The outcomes of the next batches, in order; nil lets a batch through.
    var commitFailures: [StorageError?] = []
    var refusal: StorageError?
    var refused = 0
    var readFailures: [StorageError] = []
    var isHolding = false
    var held: [Submission] = []
    var submitted = 0
    var reads = 0
    var overtaking: (@Sendable () async throws -> Void)?
    var readOvertaking: (read: Int, body: @Sendable () async throws -> Void)?
  }

  private let base: any OrderedStorage
  private let state = Mutex(State())

  /// Creates a wrapper without faults.
  package init(_ base: any OrderedStorage = MemoryStorage()) {
    self.base = base
  }

  /// Fails the next `count` batches with `error` and applies none of their changes.
  package func failCommits(_ count: Int = 1, with error: StorageError) {
    state.withLock { $0.commitFailures += Array(repeating: error, count: count) }
  }

  /// Lets `count` batches through and fails the one after them with `error`.
  package func failCommit(after count: Int, with error: StorageError) {
    state.withLock { $0.commitFailures += Array(repeating: nil, count: count) + [error] }
  }

  /// Fails every later batch with `error`.
  package func refuseCommits(with error: StorageError) {
    state.withLock { $0.refusal = error }
  }

  /// The number of batches that `refuseCommits` has failed.
  package var commitsRefused: Int { state.withLock { $0.refused } }

  /// Fails the next `count` reads with `error`.
  package func failReads(_ count: Int = 1, with error: StorageError) {
    state.withLock { $0.readFailures += Array(repeating: error, count: count) }
  }

  /// Holds batches back until `releaseCommits`, as a stalled disk does.
  package func holdCommits() {
    state.withLock { $0.isHolding = true }
  }

  /// Submits the batches held back, in order, and stops holding.
  package func releaseCommits() {
    state.withLock { state in
      state.isHolding = false
      // Submitted under the lock, so that no batch submitted in the meantime overtakes these.
      // `submit` never calls a completion itself.
      for submission in state.held { submission() }
      state.held = []
    }
  }

  /// Runs `body` before the next batch, as if its caller had been interrupted after its checks.
  ///
  /// If `body` throws, the batch fails with the error.
  package func overtakeNextCommit(_ body: @escaping @Sendable () async throws -> Void) {
    state.withLock { $0.overtaking = body }
  }

  /// Runs `body` before the read that follows `count` other reads; if it throws, so does the read.
  package func overtakeRead(
    after count: Int,
    _ body: @escaping @Sendable () async throws -> Void
  ) {
    state.withLock { $0.readOvertaking = ($0.reads + count + 1, body) }
  }

  /// The number of batches submitted, failed ones included.
  package var commitsSubmitted: Int { state.withLock { $0.submitted } }

  /// Returns once `count` batches have been submitted.
  package func waitForCommits(
    _ count: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    await eventually("\(count) commits are submitted", sourceLocation: sourceLocation) {
      commitsSubmitted >= count
    }
  }

  /// The number of reads begun, failed ones included.
  package var readsBegun: Int { state.withLock { $0.reads } }

  package func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    let (failure, overtaking) = state.withLock { state in
      state.reads += 1
      let isOvertaken = state.readOvertaking?.read == state.reads
      return (
        state.readFailures.isEmpty ? nil : state.readFailures.removeFirst(),
        isOvertaken ? state.readOvertaking.take()?.body : nil
      )
    }
    try await overtaking?()
    if let failure { throw failure }
    return try await base.read(body)
  }

  package func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    if let body = state.withLock({ $0.overtaking.take() }) {
      // Owned by the test, which waits for the batch; it ends with `body`.
      Task {
        do {
          try await body()
          submit(batch, expecting: expecting, durability: durability, completion: completion)
        } catch {
          completion(.failure(error))
        }
      }
      return
    }
    state.withLock { state in
      state.submitted += 1
      var submission: Submission = { [base] in
        base.submit(batch, expecting: expecting, durability: durability, completion: completion)
      }
      if state.refusal != nil { state.refused += 1 }
      let failure = state.commitFailures.isEmpty ? nil : state.commitFailures.removeFirst()
      if let error = failure ?? state.refusal {
        // An empty commit would take a sequence number from the base engine. A commit whose
        // expectation cannot hold takes none and still completes on the engine's own thread.
        submission = { [base] in
          base.submit(
            StorageBatch(),
            expecting: [VersionExpectation(Keyspace("faults"), [], version: .max)],
            durability: .relaxed,
            completion: { _ in completion(.failure(error)) }
          )
        }
      }
      if state.isHolding { state.held.append(submission) } else { submission() }
    }
  }

  package var sequence: UInt64 { base.sequence }

  package func close() async throws {
    releaseCommits()
    try await base.close()
  }
}
