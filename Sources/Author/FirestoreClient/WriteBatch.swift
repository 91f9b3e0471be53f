/// Writes that are committed together or not at all.
///
/// ```swift
/// var batch = firestore.batch()
/// try batch.set(firestore.document("users/tina"), User(name: "Tina"))
/// try batch.delete(firestore.document("invitations/tina"))
/// try await batch.commit()
/// ```
///
/// An impossible write, for example of a value that cannot be encoded, throws when it is added.
public struct WriteBatch: Sendable {
  private let firestore: Firestore
  private(set) var writes: [Write] = []

  init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// How many writes there are.
  public var count: Int { writes.count }

  /// Adds the creation of a document that must not exist yet.
  ///
  /// Throws as `set` does.
  public mutating func create(_ reference: DocumentReference, _ data: some Encodable) throws {
    try addCreation(of: reference, FieldValue.fields(of: data))
  }

  /// Adds the creation of a document that must not exist yet.
  ///
  /// Throws as `set` does.
  public mutating func create(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue]
  ) throws {
    try addCreation(of: reference, Array(fields))
  }

  /// Adds a write of a document, replacing an existing one or merging into it.
  ///
  /// Throws `FirestoreError` with `invalidArgument` for a path that names no document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public mutating func set(
    _ reference: DocumentReference,
    _ data: some Encodable,
    _ mode: SetMode = .replace
  ) throws {
    try addSet(of: reference, FieldValue.fields(of: data), mode)
  }

  /// Adds a write of a document, replacing an existing one or merging into it.
  ///
  /// Throws `FirestoreError` with `invalidArgument` for a path that names no document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public mutating func set(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    _ mode: SetMode = .replace
  ) throws {
    try addSet(of: reference, Array(fields), mode)
  }

  /// Adds a change of the fields at the given paths, such as `address.city`; other fields stay.
  ///
  /// The document must exist, last changed at `lastUpdated` if that is given.
  /// Throws as `set` does.
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    lastUpdated: Timestamp? = nil
  ) throws {
    try addUpdate(of: reference, Array(fields), lastUpdated: lastUpdated)
  }

  /// Adds a change of the fields at the given paths; the keys of `fields` are read as paths.
  ///
  /// Throws as `set` does.
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: some Encodable,
    lastUpdated: Timestamp? = nil
  ) throws {
    try addUpdate(of: reference, FieldValue.fields(of: fields), lastUpdated: lastUpdated)
  }

  /// Adds a deletion; without a condition a missing document is no error.
  ///
  /// Throws as `set` does.
  public mutating func delete(
    _ reference: DocumentReference,
    _ condition: DeleteCondition = .none
  ) throws {
    let precondition: Precondition =
      switch condition {
      case .none: .none
      case .exists: .exists(true)
      case .lastUpdated(let time): .updateTime(time)
      }
    writes.append(Write(.delete(try checked(reference)), precondition: precondition))
  }

  /// Commits all writes; throws and changes nothing when one of them is impossible.
  ///
  /// The commit is sent again only while the server has surely not acted, so nothing is written
  /// twice; while others use the same documents, for as long as a transaction runs again. After `unavailable` or `deadlineExceeded` the writes may or may not have been made.
  @discardableResult
  public func commit() async throws -> CommitResult {
    try await firestore.calls.commit(writes, database: firestore.database)
  }

  private mutating func addCreation(
    of reference: DocumentReference,
    _ fields: [NamedFieldValue]
  ) throws {
    let name = try checked(reference)
    writes.append(
      try FieldWrites(fields).replacement(of: name, precondition: .exists(false))
    )
  }

  private mutating func addSet(
    of reference: DocumentReference,
    _ fields: [NamedFieldValue],
    _ mode: SetMode
  ) throws {
    let name = try checked(reference)
    let sorted = try FieldWrites(fields)
    switch mode.kind {
    case .replace: writes.append(try sorted.replacement(of: name, precondition: .none))
    case .merge: writes.append(try sorted.merge(into: name, only: nil))
    case .mergeFields(let paths):
      writes.append(try sorted.merge(into: name, only: try paths.map(FieldPath.parse)))
    }
  }

  private mutating func addUpdate(
    of reference: DocumentReference,
    _ fields: [NamedFieldValue],
    lastUpdated: Timestamp?
  ) throws {
    let name = try checked(reference)
    let pairs = try FieldValue.sorted(fields).map { field in
      (path: try FieldPath.parse(field.key), value: field.value)
    }
    writes.append(try FieldWrites.update(of: name, pairs, lastUpdated: lastUpdated))
  }

  private func checked(_ reference: DocumentReference) throws -> DocumentName {
    let name = try reference.validName()
    guard name.database == firestore.database else {
      throw FirestoreError(.invalidArgument, "\(name) is of another database")
    }
    return name
  }
}

extension FieldValue {
  fileprivate static func fields(of data: some Encodable) throws -> [NamedFieldValue] {
    if let fields = fields(holdingFieldValues: data) { return Array(fields) }
    return try ValueEncoder().encodeFields(data).map { key, value in
      (key, FieldValue(kind: .value(value)))
    }
  }
}

/// How `set` treats an existing document.
public struct SetMode: Sendable {
  enum Kind {
    case replace
    case merge
    case mergeFields([String])
  }

  let kind: Kind

  /// Nothing of the document stays.
  public static let replace = SetMode(kind: .replace)

  /// The given fields are written, down to the leaves of maps; all others stay.
  public static let merge = SetMode(kind: .merge)

  /// Only the fields at these paths are written; each must be in the data.
  public static func mergeFields(_ paths: [String]) -> SetMode {
    SetMode(kind: .mergeFields(paths))
  }
}

/// The condition for a deletion.
public enum DeleteCondition: Sendable, Hashable {
  /// No condition.
  case none
  /// The document exists; otherwise it throws `notFound`.
  case exists
  /// The document was last changed at this time; otherwise it throws `failedPrecondition`.
  case lastUpdated(Timestamp)
}

/// The result of a commit.
public struct CommitResult: Sendable, Hashable {
  /// The time of the commit.
  public let commitTime: Timestamp
  /// One result for each write, in order.
  public let writeResults: [WriteResult]
}

/// The result of one write.
public struct WriteResult: Sendable, Hashable {
  /// When the document was last changed; nil after a deletion.
  ///
  /// Earlier than the commit if this write changed nothing.
  public let updateTime: Timestamp?
  /// The values that the server computed, in the order of the fields' paths.
  ///
  /// They are the new number of an increment, the time of a server timestamp, and null for arrays.
  public let transformResults: [FirestoreValue]
}
