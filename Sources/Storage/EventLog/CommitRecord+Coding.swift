package import DocumentModel
import Events

extension CommitRecord {
  private static let version: UInt8 = 3
  /// The version without a purpose.
  ///
  /// All its records are for events.
  private static let secondVersion: UInt8 = 2
  /// The version without occurrences and without a cause.
  private static let firstVersion: UInt8 = 1
  private static let hasBefore: UInt8 = 1
  private static let hasAfter: UInt8 = 2

  /// The stored form of the record.
  ///
  /// It omits the sequence, which is the key.
  package var encoded: [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: Self.version)
    encoder.append(signed: commitTime.microseconds)
    encoder.append(database.project)
    encoder.append(database.database)
    encoder.append(auth)
    encoder.append(UInt64(changes.count))
    for change in changes { encoder.append(change) }
    encoder.append(UInt64(occurrences.count))
    for occurrence in occurrences { encoder.append(occurrence) }
    encoder.append(optional: cause)
    encoder.append(byte: purpose.code)
    return encoder.bytes
  }

  /// Reads only the commit time from the stored form.
  static func commitTime(encoded: [UInt8]) throws(CorruptDataError) -> Timestamp {
    var decoder = BinaryDecoder(encoded)
    _ = try decoder.byte()
    return Timestamp(microseconds: try decoder.signed())
  }

  /// Reads a record from its stored form.
  package init(sequence: UInt64, encoded: [UInt8]) throws(CorruptDataError) {
    var decoder = BinaryDecoder(encoded)
    let version = try decoder.byte()
    guard (Self.firstVersion...Self.version).contains(version) else {
      throw CorruptDataError("event record of unknown version \(version)")
    }
    let commitTime = Timestamp(microseconds: try decoder.signed())
    let database = DatabaseName(project: try decoder.text(), database: try decoder.text())
    let auth = try decoder.auth()
    var changes: [DocumentChange] = []
    for _ in 0..<(try decoder.count()) { changes.append(try decoder.change(in: database)) }
    var occurrences: [Occurrence] = []
    var cause: String?
    if version != Self.firstVersion {
      for _ in 0..<(try decoder.count()) { occurrences.append(try decoder.occurrence()) }
      cause = try decoder.optionalText()
    }
    let purpose =
      version <= Self.secondVersion ? Purpose.events : try Purpose(code: try decoder.byte())
    guard decoder.isAtEnd else { throw CorruptDataError("event record has more than it says") }
    self.init(
      sequence: sequence,
      commitTime: commitTime,
      database: database,
      changes: changes,
      occurrences: occurrences,
      auth: auth,
      cause: cause,
      purpose: purpose
    )
  }

  fileprivate static func sides(_ change: DocumentChange) -> UInt8 {
    (change.before == nil ? 0 : hasBefore) | (change.after == nil ? 0 : hasAfter)
  }

  fileprivate static func includes(_ side: Side, _ sides: UInt8) -> Bool {
    sides & (side == .before ? hasBefore : hasAfter) != 0
  }

  fileprivate enum Side {
    case before, after
  }
}

extension CommitRecord.Purpose {
  fileprivate var code: UInt8 {
    switch self {
    case .events: 0
    case .listenersOnly: 1
    case .discontinuity: 2
    }
  }

  fileprivate init(code: UInt8) throws(CorruptDataError) {
    switch code {
    case 0: self = .events
    case 1: self = .listenersOnly
    case 2: self = .discontinuity
    default: throw CorruptDataError("event record of unknown purpose \(code)")
    }
  }
}

extension BinaryEncoder {
  /// Writes a change without its database, which the record contains once for all changes.
  fileprivate mutating func append(_ change: DocumentChange) {
    append(UInt64(change.name.path.segments.count))
    for segment in change.name.path.segments { append(segment) }
    append(byte: CommitRecord.sides(change))
    for document in [change.before, change.after] {
      guard let document else { continue }
      append(signed: document.createTime.microseconds)
      append(signed: document.updateTime.microseconds)
      append(document.fields)
    }
  }
}

extension BinaryDecoder {
  fileprivate mutating func change(
    in database: DatabaseName
  ) throws(CorruptDataError) -> DocumentChange {
    var segments: [String] = []
    for _ in 0..<(try count()) { segments.append(try text()) }
    let name = DocumentName(database: database, path: ResourcePath(segments))
    let sides = try byte()
    return DocumentChange(
      name: name,
      before: CommitRecord.includes(.before, sides) ? try document(name) : nil,
      after: CommitRecord.includes(.after, sides) ? try document(name) : nil
    )
  }

  private mutating func document(_ name: DocumentName) throws(CorruptDataError) -> FirestoreDocument
  {
    let created = Timestamp(microseconds: try signed())
    let updated = Timestamp(microseconds: try signed())
    return FirestoreDocument(
      name: name,
      fields: try fields(),
      createTime: created,
      updateTime: updated
    )
  }
}
