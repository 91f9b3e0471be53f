/// Writes that are committed together or not at all.
///
/// ```swift
/// var batch = firestore.batch()
/// try batch.set(firestore.document("users/tina"), User(name: "Tina"))
/// try batch.delete(firestore.document("invitations/tina"))
/// try await batch.commit()
/// ```
///
/// An invalid write, for example of a value that cannot be encoded, throws when it is added.
public struct WriteBatch: Sendable {
  private let firestore: Firestore
  private(set) var writes: [Write] = []

  init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// The number of writes in the batch.
  public var count: Int { writes.count }

  /// Adds the creation of a document.
  ///
  /// The commit fails if the document exists.
  ///
  /// Throws the same errors as `set`.
  public mutating func create(_ reference: DocumentReference, _ data: some Encodable) throws {
    try addCreation(of: reference, FieldValue.fields(of: data))
  }

  /// Adds the creation of a document.
  ///
  /// The commit fails if the document exists.
  ///
  /// Throws the same errors as `set`.
  public mutating func create(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue]
  ) throws {
    try addCreation(of: reference, Array(fields))
  }

  /// Adds a write of a document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError` `invalidArgument` for a path that does not name a document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public mutating func set(
    _ reference: DocumentReference,
    _ data: some Encodable,
    _ mode: SetMode = .replace
  ) throws {
    try addSet(of: reference, FieldValue.fields(of: data), mode)
  }

  /// Adds a write of a document.
  ///
  /// An existing one is replaced or merged, depending on `mode`.
  ///
  /// Throws `FirestoreError` `invalidArgument` for a path that does not name a document of this
  /// database, and `ValueCodingError` for data that cannot be encoded.
  public mutating func set(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    _ mode: SetMode = .replace
  ) throws {
    try addSet(of: reference, Array(fields), mode)
  }

  /// Adds a change of the fields at the given paths, such as `address.city`.
  ///
  /// Other fields stay.
  ///
  /// The commit fails if the document does not exist, or was last changed at a time other than
  /// `lastUpdated`. Throws the same errors as `set`.
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    lastUpdated: (any PointInTime)? = nil
  ) throws {
    try addUpdate(of: reference, Array(fields), lastUpdated: lastUpdated?.timestamp)
  }

  /// Adds a change of the fields whose paths are the keys of the encoded `fields`.
  ///
  /// The commit fails if the document does not exist, or was last changed at a time other than
  /// `lastUpdated`. Throws the same errors as `set`.
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: some Encodable,
    lastUpdated: (any PointInTime)? = nil
  ) throws {
    try addUpdate(
      of: reference,
      FieldValue.fields(of: fields),
      lastUpdated: lastUpdated?.timestamp
    )
  }

  /// Adds a deletion.
  ///
  /// Without a condition a missing document is not an error.
  ///
  /// Throws the same errors as `set`.
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

  /// Commits all writes, or none of them if one of them fails.
  ///
  /// The commit is repeated only if the server certainly has not acted, so nothing is written
  /// twice. After contention on the same documents it is repeated for as long as a transaction is.
  /// After the errors `unavailable` and `deadlineExceeded` it is unknown whether the writes were
  /// made.
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

/// The way in which `set` treats an existing document.
public struct SetMode: Sendable {
  enum Kind {
    case replace
    case merge
    case mergeFields([String])
  }

  let kind: Kind

  /// A mode that replaces the document.
  ///
  /// None of its fields stay.
  public static let replace = SetMode(kind: .replace)

  /// A mode that writes the given fields, in nested maps too.
  ///
  /// All other fields stay.
  public static let merge = SetMode(kind: .merge)

  /// Returns a mode that writes only the fields at these paths, which must be in the data.
  ///
  /// All other fields stay.
  public static func mergeFields(_ paths: [String]) -> SetMode {
    SetMode(kind: .mergeFields(paths))
  }
}

/// A condition that a document must meet to be deleted.
public enum DeleteCondition: Sendable, Hashable {
  /// Deletes the document if it exists.
  case none
  /// Requires that the document exists; otherwise the deletion throws `notFound`.
  case exists
  /// Requires the document's last change at this time; otherwise throws `failedPrecondition`.
  case lastUpdated(Timestamp)

  /// Returns the condition that the document's last change was at this time, such as a `Date`.
  public static func lastUpdated(_ time: some PointInTime) -> DeleteCondition {
    .lastUpdated(time.timestamp)
  }
}

/// The result of a commit.
public struct CommitResult: Sendable, Hashable {
  /// The time at which all writes took effect.
  public let commitTime: Timestamp
  /// The results of the writes, in the order of the batch.
  public let writeResults: [WriteResult]
}

/// The result of one write.
public struct WriteResult: Sendable, Hashable {
  /// The time at which the document was last changed; nil after a deletion.
  ///
  /// It is earlier than the commit time if this write changed nothing.
  public let updateTime: Timestamp?
  /// The values that the server computed, in the order of the fields' paths.
  ///
  /// An increment has the new number, a server timestamp has its time, and array transforms have
  /// null.
  public let transformResults: [FirestoreValue]
}
