package import DocumentModel
package import Identity
import StatusCodes
import Synchronization

extension DocumentDatabase {
  /// Begins a transaction and returns its token.
  ///
  /// The transaction ends with `commit` or `rollback`, after 60 seconds without a request, and at
  /// the latest after 270 seconds.
  package func begin(
    _ options: TransactionOptions,
    database: DatabaseName,
    auth: AuthContext
  ) async throws -> TransactionID {
    if case .readOnly(let readTime?) = options { try await checkRange(of: readTime) }
    let id = TransactionID.make()
    let time = elapsed()
    _ = try transactions.withLock { table throws(StatusError) in
      try table.begin(id, options, in: database, at: time)
    }
    return id
  }

  /// Ends a transaction without effect and releases its locks.
  ///
  /// Accepts the token of a forgotten transaction or of one that has ended. Throws `ABORTED` after
  /// a successful commit and `INVALID_ARGUMENT` for a malformed token, as production does.
  package func rollback(_ id: TransactionID, database: DatabaseName) async throws {
    let owner = try transactions.withLock { table throws(StatusError) in
      try table.rollBack(id, in: database)
    }
    if let owner { locks.release(owner) }
  }

  /// Ends a transaction whose client did not receive its token, or only with a failed response.
  package func abandon(_ id: TransactionID) {
    if let owner = transactions.withLock({ $0.end(id, .aborted) }) { locks.release(owner) }
  }

  func commit(
    _ writes: [Write],
    database: DatabaseName,
    transaction id: TransactionID,
    auth: AuthContext
  ) async throws -> CommitOutcome {
    let digest = writes.hashValue
    while true {
      let time = elapsed()
      let start = try transactions.withLock { table throws(StatusError) in
        try table.startCommit(id, writes: digest, in: database, at: time)
      }
      switch start {
      case .committed(let outcome): return outcome
      case .begun(let transaction): return try await commit(writes, database, transaction, auth)
      case .underWay(let end):
        do { return try await end.result.get() } catch is CancellationError {
          // The first request was cancelled without effect; this request takes its place.
          try Task.checkCancellation()
        }
      }
    }
  }

  private func commit(
    _ writes: [Write],
    _ database: DatabaseName,
    _ transaction: OpenTransaction,
    _ auth: AuthContext
  ) async throws -> CommitOutcome {
    let id = transaction.id
    do {
      try check(writes, database)
      let committer = try committer(for: transaction, writing: !writes.isEmpty)
      let outcome = try await apply(writes, database, as: committer, auth)
      transactions.withLock { $0.end(id, with: outcome) }
      transaction.commit?.end.reach(.success(outcome))
      return outcome
    } catch let error as CancellationError {
      // Nothing is written. The client may have lost its connection and send the commit again;
      // otherwise the transaction expires.
      let time = elapsed()
      if let owner = transactions.withLock({ $0.reopen(id, at: time) }) { locks.release(owner) }
      transaction.commit?.end.reach(.failure(error))
      throw error
    } catch {
      transactions.withLock { _ = $0.end(id, .aborted) }
      locks.release(transaction.owner)
      transaction.commit?.end.reach(.failure(error))
      throw error
    }
  }

  private func committer(
    for transaction: OpenTransaction,
    writing: Bool
  ) throws -> Committer {
    switch transaction.mode {
    case .pessimistic: return .pessimistic(transaction.owner)
    case .readOnly:
      guard !writing else {
        throw StatusError.invalidArgument(
          "Cannot modify entities in a read-only transaction."
        )
      }
      return .plain(transaction.owner)
    case .optimistic:
      // A transaction without writes saw one moment; later changes do not affect it.
      guard writing, let readTime = transaction.readTime else { return .plain(transaction.owner) }
      return .optimistic(transaction.owner, transaction.reads, readTime: readTime)
    }
  }
}
