import Synchronization

/// A transaction, whose reads stay valid until the writes that depend on them are committed.
///
/// ```swift
/// let left = try await firestore.runTransaction { transaction in
///   let stock: Stock = try await transaction.get(reference).data()
///   try transaction.update(reference, ["count": .value(stock.count - 1)])
///   return stock.count - 1
/// }
/// ```
///
/// The body of `runTransaction(attemptsMax:_:)` receives a transaction. All its reads must come
/// before its first write. Reads do not see the writes, because these are sent only at the end.
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

  /// Reads a document.
  ///
  /// If it does not exist, `exists` of the snapshot is false.
  ///
  /// Throws `FirestoreError`, in particular for a read after the first write.
  public func get(_ reference: DocumentReference) async throws -> DocumentSnapshot {
    let snapshots = try await getAll([reference])
    return snapshots[0]
  }

  /// Reads documents in the given order.
  ///
  /// Throws `FirestoreError`, in particular for a read after the first write.
  public func getAll(_ references: [DocumentReference]) async throws -> [DocumentSnapshot] {
    try refuseAfterWrites()
    return try await firestore.calls.get(references, of: firestore, transaction: id)
  }

  /// Reads the documents that match a query.
  ///
  /// Throws `FirestoreError`, in particular for a read after the first write.
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

  /// Adds the creation of a document.
  ///
  /// The commit fails if the document exists.
  ///
  /// Throws the same errors as `set`.
  public func create(_ reference: DocumentReference, _ data: some Encodable) throws {
    try batch.withLock { try $0.create(reference, data) }
  }

  /// Adds the creation of a document.
  ///
  /// The commit fails if the document exists.
  ///
  /// Throws the same errors as `set`.
  public func create(_ reference: DocumentReference, _ fields: [String: FieldValue]) throws {
    try batch.withLock { try $0.create(reference, fields) }
  }

  /// Adds a write of a document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError` `invalidArgument` for a path that does not name a document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public func set(
    _ reference: DocumentReference,
    _ data: some Encodable,
    _ mode: SetMode = .replace
  ) throws {
    try batch.withLock { try $0.set(reference, data, mode) }
  }

  /// Adds a write of a document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError` `invalidArgument` for a path that does not name a document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public func set(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    _ mode: SetMode = .replace
  ) throws {
    try batch.withLock { try $0.set(reference, fields, mode) }
  }

  /// Adds a change of the fields at the given paths.
  ///
  /// The commit fails if the document does not exist. Throws the same errors as `set`.
  public func update(_ reference: DocumentReference, _ fields: [String: FieldValue]) throws {
    try batch.withLock { try $0.update(reference, fields) }
  }

  /// Adds a change of the fields whose paths are the keys of the encoded `fields`.
  ///
  /// The commit fails if the document does not exist. Throws the same errors as `set`.
  public func update(_ reference: DocumentReference, _ fields: some Encodable) throws {
    try batch.withLock { try $0.update(reference, fields) }
  }

  /// Adds a deletion.
  ///
  /// Without a condition a missing document is not an error.
  ///
  /// Throws the same errors as `set`.
  public func delete(_ reference: DocumentReference, _ condition: DeleteCondition = .none) throws {
    try batch.withLock { try $0.delete(reference, condition) }
  }
}

extension Firestore {
  /// Runs `body` in a transaction and commits its writes in isolation from other clients.
  ///
  /// `body` must not have side effects of its own, because it may run several times:
  ///
  /// - After contention on the same documents it runs again after a short random wait. These
  ///   retries end at the deadline of the function, or after 60 seconds outside functions.
  /// - After other failures of the server it runs at most five times.
  ///
  /// `attemptsMax` limits the total number of runs. An error of `body` ends the transaction without
  /// any writes, and so does cancellation.
  ///
  /// Throws `FirestoreError`, and rethrows the error of `body`. If the connection fails during the
  /// commit, it is unknown whether the commit was applied. In this case `body` does not run again,
  /// and the error has `mayHaveActed` set.
  @discardableResult
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

  /// Runs `body` with reads that all show the same moment: now, or a time within the last hour.
  ///
  /// The transaction takes no locks and blocks no other client. Throws `FirestoreError`:
  /// `failedPrecondition` for a time that is too old, and `invalidArgument` for a time in the
  /// future. Rethrows the error of `body`.
  @discardableResult
  public func runReadOnlyTransaction<Output: Sendable>(
    at readTime: (any PointInTime)? = nil,
    _ body: (Transaction) async throws -> Output
  ) async throws -> Output {
    let id = try await calls.begin(database, .readOnly(at: readTime?.timestamp))
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

  /// Releases the locks of a failed transaction.
  private func abandon(_ id: [UInt8]) async {
    // This function waits for the end of the task. A separate task is necessary to release the
    // locks of a cancelled transaction too. The call has a timeout.
    await Task {
      // The transaction has failed already. Without the rollback its locks expire.
      try? await calls.rollback(database, transaction: id)
    }.value
  }
}
