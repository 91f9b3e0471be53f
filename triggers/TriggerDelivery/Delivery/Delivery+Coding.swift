import DocumentModel
import EventLog
import Events

extension Delivery {
  private static let version: UInt8 = 3

  /// The properties in a row's second byte, which can be read without decoding the row.
  struct Flags: OptionSet, Sendable {
    var rawValue: UInt8
    static let hasLane = Flags(rawValue: 1)
    static let isPostponed = Flags(rawValue: 2)
    static let isUnanswered = Flags(rawValue: 4)
    /// The row contains the state, attempts and times of the delivery.
    static let isAttempted = Flags(rawValue: 8)
    static let hasPostponedTime = Flags(rawValue: 16)
    static let hasEventBytes = Flags(rawValue: 32)
    static let hasOrigin = Flags(rawValue: 64)
  }

  /// The row as stored.
  ///
  /// It does not contain the id, which is part of the row's key.
  func encoded() -> [UInt8] {
    var flags: Flags = []
    if lane != nil { flags.insert(.hasLane) }
    if isPostponed { flags.insert(.isPostponed) }
    if isUnanswered { flags.insert(.isUnanswered) }
    let isAttempted = state.isSettled || isPostponed
    if isAttempted { flags.insert(.isAttempted) }
    let postponedTime = isPostponed ? postponedTime : nil
    if postponedTime != nil { flags.insert(.hasPostponedTime) }
    if eventBytes > 0 { flags.insert(.hasEventBytes) }
    if origin != nil { flags.insert(.hasOrigin) }
    var encoder = BinaryEncoder()
    encoder.append(byte: Self.version)
    encoder.append(byte: flags.rawValue)
    if let lane { encoder.append(lane.hash) }
    encoder.append(source)
    encoder.append(subject)
    encoder.append(signed: commitTime.microseconds)
    encoder.append(optional: cause?.description)
    encoder.append(UInt64(depth))
    if isAttempted { appendAttempts(to: &encoder) }
    // These fields come last, where earlier versions do not look.
    if eventBytes > 0 { encoder.append(UInt64(eventBytes)) }
    if let origin {
      encoder.append(origin.root.sequence)
      encoder.append(origin.root.rank)
      encoder.append(UInt64(max(0, origin.generation)))
    }
    return encoder.bytes
  }

  private func appendAttempts(to encoder: inout BinaryEncoder) {
    encoder.append(state.rawValue)
    encoder.append(UInt64(attempts))
    encoder.append(UInt64(crashes))
    encoder.append(UInt64(executions))
    encoder.append(UInt64(lastStatus ?? 0))
    encoder.append(signed: firstAttemptTime?.microseconds ?? 0)
    encoder.append(signed: dueTime.microseconds)
    encoder.append(signed: settledTime?.microseconds ?? 0)
    encoder.append(optional: lastError)
    if isPostponed, let postponedTime { encoder.append(signed: postponedTime.microseconds) }
  }

  /// Decodes a row; throws `CorruptDataError`.
  init(_ id: DeliveryID, decoding bytes: [UInt8]) throws(CorruptDataError) {
    var decoder = BinaryDecoder(bytes)
    let version = try decoder.byte()
    guard version == Self.version else {
      throw CorruptDataError("unknown delivery version \(version)")
    }
    let flags = Flags(rawValue: try decoder.byte())
    self.id = id
    lane = flags.contains(.hasLane) ? DeliveryLane(hash: try decoder.number()) : nil
    source = try decoder.source()
    subject = try decoder.text()
    commitTime = Timestamp(microseconds: try decoder.signed())
    cause = try decoder.optionalText().flatMap { DeliveryID($0) }
    depth = Int(truncatingIfNeeded: try decoder.number())
    state = .pending
    attempts = 0
    crashes = 0
    executions = 0
    isUnanswered = flags.contains(.isUnanswered)
    isPostponed = flags.contains(.isPostponed)
    dueTime = commitTime
    if flags.contains(.isAttempted) { try readAttempts(from: &decoder, flags) }
    if flags.contains(.hasEventBytes) {
      eventBytes = Int(truncatingIfNeeded: try decoder.number())
    }
    if flags.contains(.hasOrigin) {
      let sequence = try decoder.number()
      origin = Origin(
        root: EventPlace(sequence: sequence, rank: try decoder.number()),
        generation: Int(truncatingIfNeeded: try decoder.number())
      )
    }
  }

  private mutating func readAttempts(
    from decoder: inout BinaryDecoder,
    _ flags: Flags
  ) throws(CorruptDataError) {
    guard let state = State(rawValue: try decoder.text()) else {
      throw CorruptDataError("unknown delivery state")
    }
    self.state = state
    attempts = Int(truncatingIfNeeded: try decoder.number())
    crashes = Int(truncatingIfNeeded: try decoder.number())
    executions = Int(truncatingIfNeeded: try decoder.number())
    let status = Int(truncatingIfNeeded: try decoder.number())
    lastStatus = status == 0 ? nil : status
    firstAttemptTime = try decoder.optionalTime()
    dueTime = Timestamp(microseconds: try decoder.signed())
    settledTime = try decoder.optionalTime()
    lastError = try decoder.optionalText()
    if flags.contains(.hasPostponedTime) {
      postponedTime = Timestamp(microseconds: try decoder.signed())
    }
  }

  /// Reads the flags of an encoded row.
  static func flags(of row: [UInt8]) throws(CorruptDataError) -> Flags {
    guard row.count > 2 else { throw CorruptDataError("a delivery's row") }
    return Flags(rawValue: row[1])
  }
}

extension BinaryEncoder {
  fileprivate mutating func append(_ source: Delivery.Source) {
    switch source {
    case .document(let type, let change):
      append(byte: type.hasAuthContext ? 1 : 0)
      append(type.kind.rawValue)
      append(change.rawValue)
    case .event(let type):
      append(byte: 2)
      append(type)
    case .schedule: append(byte: 3)
    case .task: append(byte: 4)
    case .value(let kind, let change):
      append(byte: 5)
      append(kind.rawValue)
      append(change.rawValue)
    }
  }
}

extension BinaryDecoder {
  fileprivate mutating func source() throws(CorruptDataError) -> Delivery.Source {
    switch try byte() {
    case let tag where tag < 2:
      let type = DocumentEventType(try eventKind(), hasAuthContext: tag == 1)
      return .document(type, change: try eventKind())
    case 2: return .event(type: try text())
    case 3: return .schedule
    case 4: return .task
    case 5: return .value(try eventKind(), change: try eventKind())
    case let tag: throw CorruptDataError("unknown source of a delivery \(tag)")
    }
  }

  private mutating func eventKind() throws(CorruptDataError) -> ChangeKind {
    guard let kind = ChangeKind(rawValue: try text()) else {
      throw CorruptDataError("unknown event kind")
    }
    return kind
  }

  fileprivate mutating func optionalTime() throws(CorruptDataError) -> Timestamp? {
    let microseconds = try signed()
    return microseconds == 0 ? nil : Timestamp(microseconds: microseconds)
  }
}
