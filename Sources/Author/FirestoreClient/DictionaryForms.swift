// Dictionaries whose values are of several types, as `setData` of the phone SDKs takes them. They
// are disfavoured, so that literals with `.serverTimestamp` and similar values find `[String:
// FieldValue]`.

extension DocumentReference {
  /// Writes the document if there is none yet; otherwise throws `FirestoreError` `alreadyExists`.
  @_disfavoredOverload
  @discardableResult
  public func create(_ fields: [String: any Encodable]) async throws -> WriteResult {
    try await create(FieldValue.fields(fields))
  }

  /// Writes the document, replacing an existing one or merging into it.
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

  /// Changes the fields at the given paths, such as `address.city`; other fields stay.
  ///
  /// Throws `FirestoreError`: `notFound` when there is no document, and `failedPrecondition` when
  /// it was last changed at a time other than `lastUpdated`.
  @_disfavoredOverload
  @discardableResult
  public func update(
    _ fields: [String: any Encodable],
    lastUpdated: Timestamp? = nil
  ) async throws -> WriteResult {
    try await update(FieldValue.fields(fields), lastUpdated: lastUpdated)
  }
}

extension CollectionReference {
  /// Creates a document with a new random id; throws `FirestoreError`.
  @_disfavoredOverload
  @discardableResult
  public func add(_ fields: [String: any Encodable]) async throws -> DocumentReference {
    try await add(FieldValue.fields(fields))
  }
}

extension WriteBatch {
  /// Adds the creation of a document that must not exist yet; throws as `set` does.
  @_disfavoredOverload
  public mutating func create(
    _ reference: DocumentReference,
    _ fields: [String: any Encodable]
  ) throws {
    try create(reference, FieldValue.fields(fields))
  }

  /// Adds a write of a document, replacing an existing one or merging into it.
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

  /// Adds a change of the fields at the given paths; throws as `set` does.
  @_disfavoredOverload
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: [String: any Encodable],
    lastUpdated: Timestamp? = nil
  ) throws {
    try update(reference, FieldValue.fields(fields), lastUpdated: lastUpdated)
  }
}

extension Transaction {
  /// Adds the creation of a document that must not exist yet; throws as `WriteBatch.set` does.
  @_disfavoredOverload
  public func create(_ reference: DocumentReference, _ fields: [String: any Encodable]) throws {
    try create(reference, FieldValue.fields(fields))
  }

  /// Adds a write of a document, replacing an existing one or merging into it.
  ///
  /// Throws as `WriteBatch.set` does.
  @_disfavoredOverload
  public func set(
    _ reference: DocumentReference,
    _ fields: [String: any Encodable],
    _ mode: SetMode = .replace
  ) throws {
    try set(reference, FieldValue.fields(fields), mode)
  }

  /// Adds a change of the fields at the given paths; throws as `WriteBatch.set` does.
  @_disfavoredOverload
  public func update(_ reference: DocumentReference, _ fields: [String: any Encodable]) throws {
    try update(reference, FieldValue.fields(fields))
  }
}
