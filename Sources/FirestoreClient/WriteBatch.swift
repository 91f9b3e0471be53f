/// Writes that are committed together or not at all.
///
/// A write that cannot be made, say because a value cannot be encoded, throws when it is added.
public struct WriteBatch: Sendable {
  private let firestore: Firestore
  private(set) var writes: [Write] = []

  init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// How many writes there are.
  public var count: Int { writes.count }

  /// Adds the writing of a document that must not be there yet.
  public mutating func create(_ reference: DocumentReference, _ data: some Encodable) throws {
    try create(reference, FieldValue.fields(of: data))
  }

  /// Adds the writing of a document that must not be there yet.
  public mutating func create(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue]
  ) throws {
    let name = try checked(reference)
    writes.append(
      try FieldWrites(fields).replacement(of: name, precondition: .exists(false))
    )
  }

  /// Adds the writing of a document, replacing one that is there, or merging into it.
  public mutating func set(
    _ reference: DocumentReference,
    _ data: some Encodable,
    _ mode: SetMode = .replace
  ) throws {
    try set(reference, FieldValue.fields(of: data), mode)
  }

  /// Adds the writing of a document, replacing one that is there, or merging into it.
  public mutating func set(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    _ mode: SetMode = .replace
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

  /// Adds a change of the fields at the given paths, such as `address.city`; the others stay.
  ///
  /// There must be a document, last changed at `lastUpdated` if that is given.
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: [String: FieldValue],
    lastUpdated: Timestamp? = nil
  ) throws {
    let name = try checked(reference)
    let pairs = try ValueOrder.sortedUTF8(fields.keys).compactMap { key in
      try fields[key].map { (path: try FieldPath.parse(key), value: $0) }
    }
    writes.append(try FieldWrites.update(of: name, pairs, lastUpdated: lastUpdated))
  }

  /// Adds a change of the fields at the given paths; the keys of `fields` are read as paths.
  public mutating func update(
    _ reference: DocumentReference,
    _ fields: some Encodable,
    lastUpdated: Timestamp? = nil
  ) throws {
    try update(reference, FieldValue.fields(of: fields), lastUpdated: lastUpdated)
  }

  /// Adds a deletion; without a condition a missing document is no error.
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

  /// Commits all writes; throws and changes nothing when one of them cannot be made.
  ///
  /// Sent again only while the server surely has not acted, so nothing is written twice; after
  /// `unavailable` or `deadlineExceeded` it may or may not have been written.
  @discardableResult
  public func commit() async throws -> CommitResult {
    try await firestore.calls.commit(writes, database: firestore.database)
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
  fileprivate static func fields(of data: some Encodable) throws -> [String: FieldValue] {
    try ValueEncoder().encodeFields(data).mapValues { FieldValue(kind: .value($0)) }
  }
}

/// How `set` treats a document that is there.
public struct SetMode: Sendable {
  enum Kind {
    case replace
    case merge
    case mergeFields([String])
  }

  let kind: Kind

  /// Nothing of it stays.
  public static let replace = SetMode(kind: .replace)

  /// The fields given are written, down to the leaves of maps; all others stay.
  public static let merge = SetMode(kind: .merge)

  /// Only the fields at these paths are written; each must be in the data.
  public static func mergeFields(_ paths: [String]) -> SetMode {
    SetMode(kind: .mergeFields(paths))
  }
}

/// What must hold for a deletion.
public enum DeleteCondition: Sendable, Hashable {
  /// Nothing.
  case none
  /// There is a document; else `notFound`.
  case exists
  /// It was last changed at this time; else `failedPrecondition`.
  case lastUpdated(Timestamp)
}

/// What a commit did.
public struct CommitResult: Sendable, Hashable {
  /// The time of the commit.
  public let commitTime: Timestamp
  /// One for each write, in order.
  public let writeResults: [WriteResult]
}

/// What one write did.
public struct WriteResult: Sendable, Hashable {
  /// When the document was last changed: earlier than the commit if this write changed nothing,
  /// nil after a deletion.
  public let updateTime: Timestamp?
  /// What the server computed, in the order of the fields' paths.
  ///
  /// The new number of an increment, the time of a server timestamp, null for arrays.
  public let transformResults: [Value]
}
