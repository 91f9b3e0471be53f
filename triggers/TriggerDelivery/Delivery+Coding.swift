import DocumentModel
import EventLog
import Events

extension Delivery {
  private static let version: UInt8 = 2
  /// The version whose rows held events of documents only.
  private static let firstVersion: UInt8 = 1

  /// The row as the storage engine holds it.
  func encoded() -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: Self.version)
    encoder.append(id.sequence)
    encoder.append(UInt64(id.changeIndex))
    encoder.append(id.function)
    encoder.append(content)
    encoder.append(signed: commitTime.microseconds)
    encoder.append(auth)
    encoder.append(optional: cause?.description)
    encoder.append(UInt64(depth))
    encoder.append(state.rawValue)
    encoder.append(UInt64(attempts))
    encoder.append(UInt64(crashes))
    encoder.append(UInt64(executions))
    encoder.append(UInt64(lastStatus ?? 0))
    encoder.append(signed: firstAttemptTime?.microseconds ?? 0)
    encoder.append(signed: dueTime.microseconds)
    encoder.append(signed: settledTime?.microseconds ?? 0)
    encoder.append(lastError ?? "")
    encoder.append(byte: isUnanswered ? 1 : 0)
    return encoder.bytes
  }

  /// Reads a row; throws `CorruptDataError`.
  init(decoding bytes: [UInt8]) throws(CorruptDataError) {
    var decoder = BinaryDecoder(bytes)
    let version = try decoder.byte()
    guard version == Self.version || version == Self.firstVersion else {
      throw CorruptDataError("unknown delivery version \(version)")
    }
    let isFirst = version == Self.firstVersion
    let id = DeliveryID(
      sequence: try decoder.number(),
      changeIndex: UInt32(truncatingIfNeeded: try decoder.number()),
      function: try decoder.text()
    )
    self.init(
      id: id,
      content: isFirst
        ? .document(try decoder.change(), try decoder.eventType())
        : try decoder.content(),
      commitTime: Timestamp(microseconds: try decoder.signed()),
      auth: try decoder.auth()
    )
    if isFirst {
      // This byte said whether the function retries, which its deployment now says.
      _ = try decoder.byte()
    } else {
      cause = try decoder.optionalText().flatMap { DeliveryID($0) }
      depth = Int(truncatingIfNeeded: try decoder.number())
    }
    guard let state = State(rawValue: try decoder.text()) else {
      throw CorruptDataError("unknown delivery state")
    }
    self.state = state
    attempts = Int(truncatingIfNeeded: try decoder.number())
    crashes = Int(truncatingIfNeeded: try decoder.number())
    if !isFirst {
      executions = Int(truncatingIfNeeded: try decoder.number())
      let status = Int(truncatingIfNeeded: try decoder.number())
      lastStatus = status == 0 ? nil : status
      firstAttemptTime = try decoder.optionalTime()
    }
    dueTime = Timestamp(microseconds: try decoder.signed())
    settledTime = try decoder.optionalTime()
    let error = try decoder.text()
    lastError = error.isEmpty ? nil : error
    isUnanswered = isFirst ? false : try decoder.byte() == 1
  }
}

extension BinaryEncoder {
  fileprivate mutating func append(_ content: Delivery.Content) {
    switch content {
    case .document(let change, let type):
      append(byte: 0)
      append(change.name)
      append(optional: change.before)
      append(optional: change.after)
      append(type.kind.rawValue)
      append(byte: type.hasAuthContext ? 1 : 0)
    case .occurrence(let occurrence):
      append(byte: 1)
      append(occurrence)
    }
  }

  private mutating func append(optional document: FirestoreDocument?) {
    append(byte: document == nil ? 0 : 1)
    if let document { append(document) }
  }
}

extension BinaryDecoder {
  fileprivate mutating func content() throws(CorruptDataError) -> Delivery.Content {
    switch try byte() {
    case 0:
      let change = try change()
      var type = try eventType()
      type.hasAuthContext = try byte() == 1
      return .document(change, type)
    case 1: return .occurrence(try occurrence())
    case let tag: throw CorruptDataError("unknown content of a delivery \(tag)")
    }
  }

  fileprivate mutating func change() throws(CorruptDataError) -> DocumentChange {
    DocumentChange(
      name: try documentName(),
      before: try optionalDocument(),
      after: try optionalDocument()
    )
  }

  fileprivate mutating func eventType() throws(CorruptDataError) -> DocumentEventType {
    guard let kind = DocumentEventKind(rawValue: try text()) else {
      throw CorruptDataError("unknown event kind")
    }
    return DocumentEventType(kind)
  }

  fileprivate mutating func optionalTime() throws(CorruptDataError) -> Timestamp? {
    let microseconds = try signed()
    return microseconds == 0 ? nil : Timestamp(microseconds: microseconds)
  }

  private mutating func optionalDocument() throws(CorruptDataError) -> FirestoreDocument? {
    try byte() == 0 ? nil : try document()
  }
}
