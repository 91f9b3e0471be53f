package import DocumentModel
package import Identity
import QueryEngine
package import StatusCodes
import StorageEngine
import Synchronization

/// The result of a lookup.
package struct LookUpResult: Sendable {
  /// The names in the order of the request; a missing document is nil.
  package var documents: [(name: DocumentName, document: FirestoreDocument?)]
  /// The time as of which all documents are read.
  package var readTime: Timestamp
  /// The transaction that the lookup began, if it was asked to begin one.
  package var newTransaction: TransactionID?
  /// The sequence number of the last commit that the lookup has seen.
  package var sequence: UInt64

  /// The total size of the documents as `StorageSize` computes it.
  package var storedBytes: Int {
    documents.reduce(0) { sum, found in
      sum + (found.document.map { StorageSize.document($0.name, $0.fields) } ?? 0)
    }
  }
}

extension DocumentDatabase {
  /// Reads documents by name, all as of one time.
  ///
  /// With a mask, the documents have only its fields. A pessimistic transaction locks the names,
  /// including those of missing documents, and may wait for the locks. `database` is needed only if
  /// the list of names is empty.
  package func lookUp(
    _ names: [DocumentName],
    mask: [FieldPath]?,
    database: DatabaseName? = nil,
    at consistency: ReadConsistency,
    auth: AuthContext
  ) async throws -> LookUpResult {
    guard let database = database ?? names.first?.database else {
      throw StatusError.invalidArgument("A lookup needs a database.")
    }
    for name in names {
      try NameValidation.check(name)
      try NameValidation.check(name, isIn: database)
    }
    try Self.check(mask: mask)
    let reads = ReadSet(documents: Set(names.map(DocumentKeys.key)))
    let authorized = AuthorizedDocuments()
    let result = try await read(
      reads,
      database,
      at: consistency,
      authorize: authorization(ofReading: names, auth, authorized)
    ) { reader in
      let found = try authorized.documents(of: reader) ?? names.map(reader.document)
      let documents = found.map { $0?.masked(by: mask) }
      return (documents: documents, sequence: reader.snapshot.sequence)
    }
    return LookUpResult(
      documents: zip(names, result.answer.documents).map { (name: $0, document: $1) },
      readTime: result.readTime,
      newTransaction: result.newTransaction,
      sequence: result.answer.sequence
    )
  }

  /// Throws for a mask with a path that no document can have.
  package static func check(mask: [FieldPath]?) throws(StatusError) {
    for path in mask ?? [] where !path.isDocumentID { try WriteValidation.check(path) }
  }

  func accessView(_ reader: SnapshotReader, notes: AccessView.Notes? = nil) -> AccessView {
    let time = sequencer.withClock { $0.latest(now: $1) }
    return AccessView(
      requestTime: time.flooredToMillisecond,
      notes: notes,
      stored: reader.document
    )
  }

  /// Returns the access check for reading documents.
  ///
  /// Returns nil for the administrator and for open databases.
  private func authorization(
    ofReading names: [DocumentName],
    _ auth: AuthContext,
    _ authorized: AuthorizedDocuments
  ) -> Authorization? {
    guard auth != .admin, let database = names.first?.database, !accessPolicy.isOpen(database)
    else { return nil }
    return { reader in
      let found = try names.map { (name: $0, document: try reader.document($0)) }
      try self.accessPolicy.authorizeReads(found, auth: auth, view: self.accessView(reader))
      authorized.keep(found.map(\.document), of: reader)
    }
  }

  /// Returns the access check for a query.
  ///
  /// Returns nil for the administrator and for open databases.
  func authorization(of query: Query, _ auth: AuthContext) -> Authorization? {
    guard auth != .admin, !accessPolicy.isOpen(query.database) else { return nil }
    return { reader in
      try self.accessPolicy.authorizeQuery(query, auth: auth, view: self.accessView(reader))
    }
  }

  /// Throws for a request that only the administrator may make, unless the database is open.
  func authorize(
    _ request: AdministrativeRequest,
    in database: DatabaseName,
    _ auth: AuthContext
  ) throws {
    if auth != .admin { try accessPolicy.authorize(request, in: database) }
  }
}

/// The documents of a lookup that the access policy has seen, so that they are read only once.
///
/// They are used as the result only if the result is read from the same state.
private final class AuthorizedDocuments {
  private var seen: (documents: [FirestoreDocument?], sequence: UInt64, time: Timestamp?)?

  func keep(_ documents: [FirestoreDocument?], of reader: SnapshotReader) {
    seen = (documents, reader.snapshot.sequence, reader.past?.time)
  }

  /// Returns the documents as `reader` would read them.
  ///
  /// Returns nil if the policy saw another state or was not consulted.
  func documents(of reader: SnapshotReader) -> [FirestoreDocument?]? {
    guard let seen, seen.sequence == reader.snapshot.sequence, seen.time == reader.past?.time else {
      return nil
    }
    return seen.documents
  }
}

extension FirestoreDocument {
  /// Returns the document with only the fields of a mask; unchanged without a mask.
  package func masked(by mask: [FieldPath]?) -> FirestoreDocument {
    guard let mask else { return self }
    var masked = self
    masked.fields = [:]
    for path in mask where !path.isDocumentID {
      if let value = fields[path] { masked.fields.set(value, at: path) }
    }
    return masked
  }
}
