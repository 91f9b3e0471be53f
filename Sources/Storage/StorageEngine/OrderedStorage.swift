/// An ordered, transactional store of bytes, in which the modules above keep their data.
///
/// Keys are ordered bytewise within a keyspace. Commits are numbered 1, 2, 3 … without gaps. Commit
/// *n* becomes visible only after commit *n − 1*, and all at once.
package protocol OrderedStorage: Sendable {
  /// Runs `body` on a consistent view of the store and ends the view when `body` returns.
  ///
  /// The view shows every commit that was acknowledged before the call. `body` runs synchronously,
  /// so it must be short: limit the ranges that it scans. The call waits for a free reader if all
  /// are in use.
  func read<Result: Sendable>(
    _ body: (any StorageSnapshot) throws -> sending Result
  ) async throws -> sending Result

  /// Submits a batch. Commits get their sequences in the order of these calls.
  ///
  /// The call returns immediately. `completion` is called exactly once, on one of the engine's
  /// threads, and must not block. It gets the sequence after the commit is visible and has the
  /// requested durability. If nothing was applied, it gets a `StorageError` instead.
  ///
  /// This synchronous method allows a caller to fix the order of commits under its own lock. Other
  /// callers use `commit`.
  func submit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation],
    durability: Durability,
    completion: @escaping @Sendable (Result<UInt64, any Error>) -> Void
  )

  /// The sequence of the last visible commit; 0 for an empty store.
  var sequence: UInt64 { get }

  /// Finishes the accepted commits, makes them durable and closes the store.
  ///
  /// Later calls throw a `StorageError` of kind `.closed`.
  func close() async throws
}

extension OrderedStorage {
  /// Applies a batch completely or not at all, and returns its sequence.
  ///
  /// Returns once the commit is visible and has the requested durability. Throws a `StorageError`
  /// of kind `.conflict` if an expectation is not met.
  @discardableResult
  package func commit(
    _ batch: StorageBatch,
    expecting: [VersionExpectation] = [],
    durability: Durability = .synced
  ) async throws -> UInt64 {
    try await withCheckedThrowingContinuation { continuation in
      submit(batch, expecting: expecting, durability: durability) { continuation.resume(with: $0) }
    }
  }
}

/// The guarantee that a completed commit has.
package enum Durability: Sendable, Hashable {
  /// The commit survives power loss, in an engine that was opened as durable.
  case synced
  /// The commit survives a crash of the process.
  ///
  /// It may be lost if the machine crashes before a later synced commit.
  case relaxed
}

/// The version that a key must have for a commit to succeed; nil if the key must not exist.
package struct VersionExpectation: Sendable, Hashable {
  package var keyspace: Keyspace
  package var key: [UInt8]
  package var version: UInt64?

  /// Creates the expectation that `key` still has `version`.
  package init(_ keyspace: Keyspace, _ key: [UInt8], version: UInt64?) {
    self.keyspace = keyspace
    self.key = key
    self.version = version
  }
}
