// Overloads for dictionaries whose values have different types, like those that `setData` of the
// iOS SDK accepts. They are disfavored, so that literals with `.serverTimestamp` and similar values
// use the overloads for `[String: FieldValue]`.

extension DocumentReference {
  /// Creates the document; throws `FirestoreError` `alreadyExists` if it exists.
  @_disfavoredOverload
  @discardableResult
  public func create(_ fields: [String: any Encodable]) async throws -> WriteResult {
    try await create(FieldValue.fields(fields))
  }

  /// Writes the document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError`.
  @_disfavoredOverload
  @discardableResult
  public func set(
    _ fields: [String: any Encodable],
    _ mode: SetMode = .replace
  ) async throws -> WriteResult {
    try await set(FieldValue.fields(fields), mode)
  }

  /// Changes the fields at the given paths, such as `address.city`.
  ///
  /// Other fields stay unchanged.
  ///
  /// Throws `FirestoreError` `notFound` if the document does not exist, and `failedPrecondition` if
  /// it was last changed at a time other than `lastUpdated`.
  @_disfavoredOverload
  @discardableResult
  public func update(
    _ fields: [String: any Encodable],
    lastUpdated: (any PointInTime)? = nil
  ) async throws -> WriteResult {
    try await update(FieldValue.fields(fields), lastUpdated: lastUpdated)
  }
}

extension CollectionReference {
  /// Creates a document with a random id and returns a reference to it; throws `FirestoreError`.
  @_disfavoredOverload
  @discardableResult
  public func add(_ fields: [String: any Encodable]) async throws -> DocumentReference {
    try await add(FieldValue.fields(fields))
  }
}

extension WriteBatch {
  /// Adds the creation of a document to the batch.
  ///
  /// The commit fails if the document exists.
  ///
  /// Throws the same errors as `set`.
  @_disfavoredOverload
  public mutating func create(
    _ reference: DocumentReference,
    _ fields: [String: any Encodable]
  ) throws {
    try create(reference, FieldValue.fields(fields))
  }

  /// Adds a write of a document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError` `invalidArgument` for a path that does not name a document, and the
  /// encoder's error for a value that cannot be encoded.
  @_disfavoredOverload
  public mutating func set(
    _ reference: DocumentReference,
    _ fields: [String: any Encodable],
    _ mode: SetMode = .replace
  ) throws {
    try set(reference, FieldValue.fields(fields), mode)
  }

  /// Adds a change of the fields at the given paths to the batch.
  ///
  /// Throws the same errors as `set`.
  @_disfavoredOverload
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: [String: any Encodable],
    lastUpdated: (any PointInTime)? = nil
  ) throws {
    try update(reference, FieldValue.fields(fields), lastUpdated: lastUpdated)
  }
}

extension Transaction {
  /// Adds the creation of a document.
  ///
  /// The commit fails if the document exists.
  ///
  /// Throws the same errors as `WriteBatch.set`.
  @_disfavoredOverload
  public func create(_ reference: DocumentReference, _ fields: [String: any Encodable]) throws {
    try create(reference, FieldValue.fields(fields))
  }

  /// Adds a write of a document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws the same errors as `WriteBatch.set`.
  @_disfavoredOverload
  public func set(
    _ reference: DocumentReference,
    _ fields: [String: any Encodable],
    _ mode: SetMode = .replace
  ) throws {
    try set(reference, FieldValue.fields(fields), mode)
  }

  /// Adds a change of the fields at the given paths.
  ///
  /// Throws the same errors as `WriteBatch.set`.
  @_disfavoredOverload
  public func update(_ reference: DocumentReference, _ fields: [String: any Encodable]) throws {
    try update(reference, FieldValue.fields(fields))
  }
}
