import Synchronization

/// Reads that stay true until the writes based on them are committed.
///
/// ```swift
/// let left = try await firestore.runTransaction { transaction in
///   let stock: Stock = try await transaction.get(reference).data()
///   try transaction.update(reference, ["count": .value(stock.count - 1)])
///   return stock.count - 1
/// }
/// ```
///
/// The body of `runTransaction(attemptsMax:_:)` gets one; all reads come before the first write.
/// Reads do not see the writes, which are only sent at the end.
public final class Transaction: Sendable {
  let id: [UInt8]
  private let firestore: Firestore
  private let batch: Mutex<WriteBatch>

  init(id: [UInt8], firestore: Firestore) {
    self.id = id
    self.firestore = firestore
    batch = Mutex(firestore.batch())
  }

  var writes: [Write] { batch.withLock { $0.writes } }

  // MARK: Reading

  /// Reads a document; a missing one has `exists` false.
  ///
  /// Throws `FirestoreError`, also for a read after the first write.
  public func get(_ reference: DocumentReference) async throws -> DocumentSnapshot {
    let snapshots = try await getAll([reference])
    return snapshots[0]
  }

  /// Reads documents in the given order.
  ///
  /// Throws `FirestoreError`, also for a read after the first write.
  public func getAll(_ references: [DocumentReference]) async throws -> [DocumentSnapshot] {
    try refuseAfterWrites()
    return try await firestore.calls.get(references, of: firestore, transaction: id)
  }

  /// Reads the documents that a query finds.
  ///
  /// Throws `FirestoreError`, also for a read after the first write.
  public func get(_ query: DocumentQuery) async throws -> QuerySnapshot {
    try refuseAfterWrites()
    return try await firestore.calls.run(try query.validQuery(), of: firestore, transaction: id)
  }

  private func refuseAfterWrites() throws {
    guard batch.withLock({ $0.count }) == 0 else {
      throw FirestoreError(
        .invalidArgument,
        "a transaction reads all it needs before its first write"
      )
    }
  }

  // MARK: Writing

  /// Adds the creation of a document that must not exist yet.
  ///
  /// Throws as `set` does.
  public func create(_ reference: DocumentReference, _ data: some Encodable) throws {
    try batch.withLock { try $0.create(reference, data) }
  }

  /// Adds the creation of a document that must not exist yet.
  ///
  /// Throws as `set` does.
  public func create(_ reference: DocumentReference, _ fields: [String: FieldValue]) throws {
    try batch.withLock { try $0.create(reference, fields) }
  }

  /// Adds a write of a document, replacing an existing one or merging into it.
  ///
  /// Throws `FirestoreError` with `invalidArgument` for a path that names no document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public func set(
    _ reference: DocumentReference,
    _ data: some Encodable,
    _ mode: SetMode = .replace
  ) throws {
    try batch.withLock { try $0.set(reference, data, mode) }
  }

  /// Adds a write of a document, replacing an existing one or merging into it.
  ///
  /// Throws `FirestoreError` with `invalidArgument` for a path that names no document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public func set(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    _ mode: SetMode = .replace
  ) throws {
    try batch.withLock { try $0.set(reference, fields, mode) }
  }

  /// Adds a change of the fields at the given paths; the document must exist.
  ///
  /// Throws as `set` does.
  public func update(_ reference: DocumentReference, _ fields: [String: FieldValue]) throws {
    try batch.withLock { try $0.update(reference, fields) }
  }

  /// Adds a change of the fields at the given paths; the keys of `fields` are read as paths.
  ///
  /// Throws as `set` does.
  public func update(_ reference: DocumentReference, _ fields: some Encodable) throws {
    try batch.withLock { try $0.update(reference, fields) }
  }

  /// Adds a deletion; without a condition a missing document is no error.
  ///
  /// Throws as `set` does.
  public func delete(_ reference: DocumentReference, _ condition: DeleteCondition = .none) throws {
    try batch.withLock { try $0.delete(reference, condition) }
  }
}

extension Firestore {
  /// Runs `body` and commits its writes, as if nobody else had done anything meanwhile.
  ///
  /// When others use the same documents, `body` runs again after a short random wait, until the
  /// function's time is over, or for 60 seconds outside of a function; so it must not have effects
  /// of its own. After other failures of the server it runs five times at most. `attemptsMax`
  /// bounds the runs for whatever reason. An error that `body` throws ends the transaction without
  /// a trace; so does cancellation.
  ///
  /// Throws what `body` throws, and `FirestoreError`. When the connection fails during the commit,
  /// nobody knows whether the commit was applied: `body` does not run again, and the error has
  /// `mayHaveActed` set.
  public func runTransaction<Output: Sendable>(
    attemptsMax: Int? = nil,
    _ body: (Transaction) async throws -> Output
  ) async throws -> Output {
    var previous: [UInt8]?
    var patience = Patience(calls.retries, totalMax: attemptsMax ?? .max)
    while true {
      let id = try await calls.begin(database, .readWrite(retrying: previous))
      let transaction = Transaction(id: id, firestore: self)
      var isCommitting = false
      do {
        let output = try await body(transaction)
        isCommitting = true
        _ = try await calls.commit(transaction.writes, database: database, transaction: id)
        return output
      } catch {
        await abandon(id)
        guard let error = error as? FirestoreError,
          isCommitting
            ? calls.retries.allowsTransactionAgain(afterCommit: error)
            : calls.retries.allowsTransactionAgain(error),
          let wait = patience.wait(after: error, at: calls.retries.now()), !Task.isCancelled
        else { throw error }
        previous = id
        try await calls.retries.sleep(wait)
      }
    }
  }

  /// Runs `body` with reads that all show one moment: now, or a time in the last hour.
  ///
  /// It takes no locks and blocks nobody.
  /// Throws what `body` throws, and `FirestoreError`: `failedPrecondition` for a time that is too
  /// old, and `invalidArgument` for one in the future.
  public func runReadOnlyTransaction<Output: Sendable>(
    at readTime: Timestamp? = nil,
    _ body: (Transaction) async throws -> Output
  ) async throws -> Output {
    let id = try await calls.begin(database, .readOnly(at: readTime))
    let transaction = Transaction(id: id, firestore: self)
    do {
      let output = try await body(transaction)
      _ = try await calls.commit(transaction.writes, database: database, transaction: id)
      return output
    } catch {
      await abandon(id)
      throw error
    }
  }

  /// Gives back the locks of a failed transaction.
  private func abandon(_ id: [UInt8]) async {
    // This function owns the task and waits for its end; a separate task lets a cancelled
    // transaction give back its locks, too. The call has a timeout.
    await Task {
      // The transaction has already failed; without the rollback its locks end with their timeout.
      try? await calls.rollback(database, transaction: id)
    }.value
  }
}
