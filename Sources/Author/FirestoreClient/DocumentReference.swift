/// A reference to a document, which may or may not exist.
///
/// ```swift
/// let tina = firestore.document("users/tina")
/// try await tina.set(User(name: "Tina"))
/// try await tina.update(["name": "Tina T.", "visits": .increment(1)])
/// let name = try await tina.get().fields["name"]
/// ```
public struct DocumentReference: Sendable {
  /// The database that contains the document.
  public let firestore: Firestore
  let resourcePath: ResourcePath

  init(firestore: Firestore, resourcePath: ResourcePath) {
    self.firestore = firestore
    self.resourcePath = resourcePath
  }

  /// The last segment of the document's path.
  public var id: String { resourcePath.id ?? "" }

  /// The document's path below the database, such as `chats/c1`.
  public var path: String { resourcePath.description }

  /// The full resource name, as stored in reference values.
  public var name: DocumentName {
    DocumentName(database: firestore.database, path: resourcePath)
  }

  /// The collection that contains the document.
  public var parent: CollectionReference {
    CollectionReference(firestore: firestore, resourcePath: resourcePath.parent)
  }

  /// Returns a reference to a collection below this document.
  ///
  /// An id that contains a slash throws where the reference is used.
  public func collection(_ id: String) -> CollectionReference {
    CollectionReference(firestore: firestore, resourcePath: resourcePath.appending(id))
  }

  /// Lists the collections below this document.
  ///
  /// Throws `FirestoreError`, as `DocumentReference.get()` does.
  public func listCollections() async throws -> [CollectionReference] {
    try await firestore.calls
      .listCollectionIDs(database: firestore.database, parent: try validName().path)
      .map(collection)
  }

  // MARK: Reading

  /// Reads the document.
  ///
  /// If it does not exist, `exists` of the snapshot is false.
  ///
  /// Throws `FirestoreError`: `unavailable` or `deadlineExceeded` if the server does not respond,
  /// `permissionDenied` if the rules refuse access, and `invalidArgument` for a path that does not
  /// name a document.
  public func get() async throws -> DocumentSnapshot {
    let snapshots = try await firestore.getAll([self])
    return snapshots[0]
  }

  /// Returns a sequence of the current document and its state after every change.
  ///
  /// See `DocumentSnapshots` for its behavior.
  public func snapshots() -> DocumentSnapshots {
    DocumentSnapshots(reference: self)
  }

  // MARK: Writing

  /// Creates the document; throws `FirestoreError` `alreadyExists` if it exists.
  @discardableResult
  public func create(_ data: some Encodable) async throws -> WriteResult {
    try await commit { try $0.create(self, data) }
  }

  /// Creates the document; throws `FirestoreError` `alreadyExists` if it exists.
  @discardableResult
  public func create(_ fields: [String: FieldValue]) async throws -> WriteResult {
    try await commit { try $0.create(self, fields) }
  }

  /// Writes the document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func set(_ data: some Encodable, _ mode: SetMode = .replace) async throws -> WriteResult {
    try await commit { try $0.set(self, data, mode) }
  }

  /// Writes the document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func set(
    _ fields: [String: FieldValue],
    _ mode: SetMode = .replace
  ) async throws -> WriteResult {
    try await commit { try $0.set(self, fields, mode) }
  }

  /// Changes the fields at the given paths, such as `address.city`.
  ///
  /// Other fields stay unchanged.
  ///
  /// Throws `FirestoreError` `notFound` if the document does not exist, and `failedPrecondition` if
  /// it was last changed at a time other than `lastUpdated`.
  @discardableResult
  public func update(
    _ fields: [String: FieldValue],
    lastUpdated: (any PointInTime)? = nil
  ) async throws -> WriteResult {
    try await commit { try $0.update(self, fields, lastUpdated: lastUpdated) }
  }

  /// Changes the fields whose paths are the keys of the encoded `fields`.
  ///
  /// Throws `FirestoreError`, and `ValueCodingError` for data that cannot be encoded.
  @discardableResult
  public func update(
    _ fields: some Encodable,
    lastUpdated: (any PointInTime)? = nil
  ) async throws -> WriteResult {
    try await commit { try $0.update(self, fields, lastUpdated: lastUpdated) }
  }

  /// Deletes the document.
  ///
  /// The collections below it stay.
  ///
  /// Without a condition a missing document is not an error. Throws `FirestoreError` `notFound` or
  /// `failedPrecondition` if the condition is not met.
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
  /// Returns true if both refer to the same document of the same database.
  public static func == (left: DocumentReference, right: DocumentReference) -> Bool {
    left.name == right.name
  }

  /// Hashes the full resource name.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(name)
  }
}

extension DocumentReference: Encodable {
  /// Encodes a reference value for Firestore, or the full resource name for other encoders.
  ///
  /// Rethrows the error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(name)
  }
}
