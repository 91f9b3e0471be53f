package import DocumentModel
package import Events
package import Identity

/// One event on its way to one function.
package struct Delivery: Sendable, Hashable {
  /// `{commit sequence}.{index of the change in its commit}.{function}`.
  package var id: DeliveryID
  package var change: DocumentChange
  /// The kind of event that the function asked for.
  package var kind: DocumentEventKind
  package var commitTime: Timestamp
  package var auth: AuthContext
  /// Whether a failing handler is tried again.
  package var retries: Bool
  package var state: State
  /// Handler runs that ended in an answer or a time-out.
  package var attempts: Int
  /// Runs that ended with the worker's death, since the last answer.
  package var crashes: Int
  /// Not to be tried before this time.
  package var dueTime: Timestamp
  package var settledTime: Timestamp?
  /// Why the last try did not succeed.
  package var lastError: String?

  /// Where a delivery stands.
  package enum State: String, Sendable, Hashable, CaseIterable, Codable {
    /// To be tried, now or at `dueTime`.
    case pending
    case succeeded
    /// The handler failed and its function does not retry.
    case failed
    /// Given up: attempts or time exhausted, crashed too often, or the function is gone.
    case dead

    /// Whether nothing more happens unless somebody asks.
    package var isSettled: Bool { self != .pending }
  }

  /// A delivery that is due at once.
  package init(
    id: DeliveryID,
    change: DocumentChange,
    kind: DocumentEventKind,
    commitTime: Timestamp,
    auth: AuthContext,
    retries: Bool
  ) {
    self.id = id
    self.change = change
    self.kind = kind
    self.commitTime = commitTime
    self.auth = auth
    self.retries = retries
    self.state = .pending
    self.attempts = 0
    self.crashes = 0
    self.dueTime = commitTime
  }
}

/// Names a delivery; stable over redeliveries and restarts.
package struct DeliveryID: Sendable, Hashable {
  package var sequence: UInt64
  package var changeIndex: UInt32
  package var function: String

  /// The delivery of one change of a commit to a function.
  package init(sequence: UInt64, changeIndex: UInt32, function: String) {
    self.sequence = sequence
    self.changeIndex = changeIndex
    self.function = function
  }

  /// The CloudEvents id: the same for every function that the change reaches.
  package var eventID: String { "\(sequence).\(changeIndex)" }

  /// The key of the delivery's row: ordered by commit.
  var key: [UInt8] {
    var key = KeyEncoder()
    key.append(sequence)
    key.append(UInt64(changeIndex))
    key.append(raw: function.utf8)
    return key.bytes
  }
}

extension DeliveryID: CustomStringConvertible, LosslessStringConvertible, Comparable {
  package var description: String { "\(eventID).\(function)" }

  /// Reads what `description` writes; nil when malformed.
  package init?(_ description: String) {
    let parts = description.split(separator: ".", maxSplits: 2)
    guard parts.count == 3, let sequence = UInt64(parts[0]), let index = UInt32(parts[1]) else {
      return nil
    }
    self.init(sequence: sequence, changeIndex: index, function: String(parts[2]))
  }

  package static func < (left: DeliveryID, right: DeliveryID) -> Bool {
    (left.sequence, left.changeIndex, left.function)
      < (right.sequence, right.changeIndex, right.function)
  }
}

extension Delivery {
  /// The row as the storage engine holds it.
  func encoded() -> [UInt8] {
    var encoder = BinaryEncoder()
    encoder.append(byte: 1)
    encoder.append(id.sequence)
    encoder.append(UInt64(id.changeIndex))
    encoder.append(id.function)
    encoder.append(change.name)
    encoder.append(optional: change.before)
    encoder.append(optional: change.after)
    encoder.append(kind.rawValue)
    encoder.append(signed: commitTime.microseconds)
    switch auth {
    case .admin: encoder.append(byte: 0)
    case .unauthenticated: encoder.append(byte: 1)
    case .user(let user):
      encoder.append(byte: 2)
      encoder.append(user.uid)
      encoder.append(user.claimsJSON)
    }
    encoder.append(byte: retries ? 1 : 0)
    encoder.append(state.rawValue)
    encoder.append(UInt64(attempts))
    encoder.append(UInt64(crashes))
    encoder.append(signed: dueTime.microseconds)
    encoder.append(signed: settledTime?.microseconds ?? 0)
    encoder.append(lastError ?? "")
    return encoder.bytes
  }

  /// Reads a row; throws `CorruptDataError`.
  init(decoding bytes: [UInt8]) throws(CorruptDataError) {
    var decoder = BinaryDecoder(bytes)
    let version = try decoder.byte()
    guard version == 1 else { throw CorruptDataError("unknown delivery version \(version)") }
    let sequence = try decoder.number()
    let index = UInt32(truncatingIfNeeded: try decoder.number())
    let id = DeliveryID(sequence: sequence, changeIndex: index, function: try decoder.text())
    let change = DocumentChange(
      name: try decoder.documentName(),
      before: try decoder.optionalDocument(),
      after: try decoder.optionalDocument()
    )
    guard let kind = DocumentEventKind(rawValue: try decoder.text()) else {
      throw CorruptDataError("unknown event kind")
    }
    let commitTime = Timestamp(microseconds: try decoder.signed())
    let auth: AuthContext
    switch try decoder.byte() {
    case 0: auth = .admin
    case 1: auth = .unauthenticated
    case 2: auth = .user(UserIdentity(uid: try decoder.text(), claimsJSON: try decoder.text()))
    case let other: throw CorruptDataError("unknown kind of caller \(other)")
    }
    self.init(
      id: id,
      change: change,
      kind: kind,
      commitTime: commitTime,
      auth: auth,
      retries: try decoder.byte() == 1
    )
    guard let state = State(rawValue: try decoder.text()) else {
      throw CorruptDataError("unknown delivery state")
    }
    self.state = state
    attempts = Int(truncatingIfNeeded: try decoder.number())
    crashes = Int(truncatingIfNeeded: try decoder.number())
    dueTime = Timestamp(microseconds: try decoder.signed())
    let settled = try decoder.signed()
    settledTime = settled == 0 ? nil : Timestamp(microseconds: settled)
    let error = try decoder.text()
    lastError = error.isEmpty ? nil : error
  }
}

extension BinaryEncoder {
  fileprivate mutating func append(optional document: Document?) {
    append(byte: document == nil ? 0 : 1)
    if let document { append(document) }
  }
}

extension BinaryDecoder {
  fileprivate mutating func optionalDocument() throws(CorruptDataError) -> Document? {
    try byte() == 0 ? nil : try document()
  }
}
