package import StorageEngine
import Synchronization

/// A storage engine that passes everything on to another, and fails or stalls on demand.
package final class FaultyStorage: OrderedStorage {
  private typealias Submission = @Sendable () -> Void

  private struct State {
    /// What the next batches meet; nil lets one pass.
    var commitFailures: [StorageError?] = []
    var refusal: StorageError?
    var refused = 0
    var readFailures: [StorageError] = []
    var isHolding = false
    var held: [Submission] = []
    var submitted = 0
    var reads = 0
  }

  private let base: any OrderedStorage
  private let state = Mutex(State())

  /// A wrapper that has no faults yet.
  package init(_ base: any OrderedStorage = MemoryStorage()) {
    self.base = base
  }

  /// Refuses the next `count` batches with `error`, applying nothing of them.
  package func failCommits(_ count: Int = 1, with error: StorageError) {
    state.withLock { $0.commitFailures += Array(repeating: error, count: count) }
  }

  /// Refuses one batch with `error`, after `count` that pass.
  package func failCommit(after count: Int, with error: StorageError) {
    state.withLock { $0.commitFailures += Array(repeating: nil, count: count) + [error] }
  }

  /// Refuses every further batch with `error`.
  package func refuseCommits(with error: StorageError) {
    state.withLock { $0.refusal = error }
  }

  /// How many batches `refuseCommits` has refused.
  package var commitsRefused: Int { state.withLock { $0.refused } }

  /// Fails the next `count` reads with `error`.
  package func failReads(_ count: Int = 1, with error: StorageError) {
    state.withLock { $0.readFailures += Array(repeating: error, count: count) }
  }

  /// Holds batches back until `releaseCommits`, as a stalled disk does.
  package func holdCommits() {
    state.withLock { $0.isHolding = true }
  }

  /// Passes on the batches held back, in order, and holds no more.
  package func releaseCommits() {
    state.withLock { state in
      state.isHolding = false
      // Under the lock, so that no batch submitted meanwhile overtakes these; completions are never
      // called inside `submit`.
      for submission in state.held { submission() }
      state.held = []
    }
  }

  /// How many batches were submitted, refused ones included.
  package var commitsSubmitted: Int { state.withLock { $0.submitted } }

  /// How many reads were begun, failed ones included.
  package var readsBegun: Int { state.withLock { $0.reads } }

  package func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result {
    let failure = state.withLock { state in
      state.reads += 1
      return state.readFailures.isEmpty ? nil : state.readFailures.removeFirst()
    }
    if let failure { throw failure }
    return try await base.read(body)
  }

  package func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  ) {
    state.withLock { state in
      state.submitted += 1
      var submission: Submission = { [base] in
        base.submit(batch, expecting: expecting, durability: durability, completion: completion)
      }
      if state.refusal != nil { state.refused += 1 }
      let failure = state.commitFailures.isEmpty ? nil : state.commitFailures.removeFirst()
      if let error = failure ?? state.refusal {
        // An empty commit of the base would take a sequence. An expectation that cannot hold takes
        // none and still completes on the engine's own thread.
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
