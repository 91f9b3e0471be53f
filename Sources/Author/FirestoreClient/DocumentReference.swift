/// The place of a document, whether or not the document exists.
///
/// ```swift
/// let tina = firestore.document("users/tina")
/// try await tina.set(User(name: "Tina"))
/// try await tina.update(["name": "Tina T.", "visits": .increment(1)])
/// let name = try await tina.get().fields["name"]
/// ```
public struct DocumentReference: Sendable {
  /// The database it belongs to.
  public let firestore: Firestore
  let resourcePath: ResourcePath

  init(firestore: Firestore, resourcePath: ResourcePath) {
    self.firestore = firestore
    self.resourcePath = resourcePath
  }

  /// The document's own id.
  public var id: String { resourcePath.id ?? "" }

  /// The path below the database, such as `chats/c1`.
  public var path: String { resourcePath.description }

  /// The full name, as reference values hold it.
  public var name: DocumentName {
    DocumentName(database: firestore.database, path: resourcePath)
  }

  /// The collection that the document belongs to.
  public var parent: CollectionReference {
    CollectionReference(firestore: firestore, resourcePath: resourcePath.parent)
  }

  /// A collection below this document.
  ///
  /// An id with a slash throws where the reference is used.
  public func collection(_ id: String) -> CollectionReference {
    CollectionReference(firestore: firestore, resourcePath: resourcePath.appending(id))
  }

  /// The collections below this document.
  ///
  /// Throws `FirestoreError`, as `DocumentReference.get()` does.
  public func listCollections() async throws -> [CollectionReference] {
    try await firestore.calls
      .listCollectionIDs(database: firestore.database, parent: try validName().path)
      .map(collection)
  }

  // MARK: Reading

  /// Reads the document; a missing one has `exists` false.
  ///
  /// Throws `FirestoreError`: `unavailable` or `deadlineExceeded` when the server does not answer,
  /// `permissionDenied` when the rules refuse, `invalidArgument` for a path that names nothing.
  public func get() async throws -> DocumentSnapshot {
    let snapshots = try await firestore.getAll([self])
    return snapshots[0]
  }

  /// The document now and after every change, see `DocumentSnapshots`.
  public func snapshots() -> DocumentSnapshots {
    DocumentSnapshots(reference: self)
  }

  // MARK: Writing

  /// Writes the document if there is none yet; otherwise throws `alreadyExists`.
  @discardableResult
  public func create(_ data: some Encodable) async throws -> WriteResult {
    try await commit { try $0.create(self, data) }
  }

  /// Writes the document if there is none yet; otherwise throws `alreadyExists`.
  @discardableResult
  public func create(_ fields: [String: FieldValue]) async throws -> WriteResult {
    try await commit { try $0.create(self, fields) }
  }

  /// Writes the document, replacing an existing one or merging into it.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func set(_ data: some Encodable, _ mode: SetMode = .replace) async throws -> WriteResult {
    try await commit { try $0.set(self, data, mode) }
  }

  /// Writes the document, replacing an existing one or merging into it.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func set(
    _ fields: [String: FieldValue],
    _ mode: SetMode = .replace
  ) async throws -> WriteResult {
    try await commit { try $0.set(self, fields, mode) }
  }

  /// Changes the fields at the given paths, such as `address.city`; other fields stay.
  ///
  /// Throws `notFound` when there is no document, and `failedPrecondition` when it was last changed
  /// at a time other than `lastUpdated`.
  @discardableResult
  public func update(
    _ fields: [String: FieldValue],
    lastUpdated: Timestamp? = nil
  ) async throws -> WriteResult {
    try await commit { try $0.update(self, fields, lastUpdated: lastUpdated) }
  }

  /// Changes the fields at the given paths; the keys of `fields` are read as paths.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func update(
    _ fields: some Encodable,
    lastUpdated: Timestamp? = nil
  ) async throws -> WriteResult {
    try await commit { try $0.update(self, fields, lastUpdated: lastUpdated) }
  }

  /// Deletes the document; the collections below it stay.
  ///
  /// Without a condition a missing document is no error.
  /// Throws `FirestoreError`: `notFound` or `failedPrecondition` when the condition does not hold.
  @discardableResult
  public func delete(_ condition: DeleteCondition = .none) async throws -> WriteResult {
    try await commit { try $0.delete(self, condition) }
  }

  private func commit(_ write: (inout WriteBatch) throws -> Void) async throws -> WriteResult {
    var batch = firestore.batch()
    try write(&batch)
    let result = try await batch.commit()
    guard let first = result.writeResults.first else {
      throw FirestoreError(.internal, "the server did not answer for the write")
    }
    return first
  }

  func validName() throws(FirestoreError) -> DocumentName {
    guard resourcePath.isDocument, resourcePath.isWellFormed else {
      throw FirestoreError(.invalidArgument, "\"\(path)\" is not the path of a document")
    }
    return name
  }
}

extension DocumentReference: Hashable {
  /// Whether both are the same document of the same database.
  public static func == (left: DocumentReference, right: DocumentReference) -> Bool {
    left.name == right.name
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name)
  }
}

extension DocumentReference: Encodable {
  /// Writes a reference value, or the full name for other encoders.
  ///
  /// Throws the encoder's error.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(name)
  }
}
