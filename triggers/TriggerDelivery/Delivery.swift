package import DocumentModel
package import Events
package import Identity

/// One event on its way to one function.
package struct Delivery: Sendable, Hashable {
  /// `{commit sequence}.{index of the event in its commit}.{function}`.
  package var id: DeliveryID
  package var content: Content
  /// When the event was recorded.
  package var commitTime: Timestamp
  package var auth: AuthContext
  /// The delivery that made a function write what this event is about; nil when unknown.
  package var cause: DeliveryID?
  /// Deliveries before this one in its chain of causes; tasks begin a new chain.
  package var depth: Int
  package var state: State
  /// Handler runs that ended in an answer or a time-out.
  package var attempts: Int
  /// Runs since the last answer that ended with the worker's death.
  package var crashes: Int
  /// Answers that were not the server's own failure, which Cloud Tasks counts.
  package var executions: Int
  /// The HTTP status of the last answer.
  package var lastStatus: Int?
  /// When the delivery was first tried.
  package var firstAttemptTime: Timestamp?
  /// The time before which the delivery is not tried.
  package var dueTime: Timestamp
  package var settledTime: Timestamp?
  /// Why the last try did not succeed.
  package var lastError: String?
  /// Whether the delivery waits although no handler has failed.
  ///
  /// It then waits for a worker, in place of one that died or could not be had, or because the
  /// fault mode delays it.
  package var isUnanswered: Bool

  /// What the function is told.
  package enum Content: Sendable, Hashable {
    case document(DocumentChange, DocumentEventType)
    case occurrence(Occurrence)
  }

  /// Where a delivery stands.
  package enum State: String, Sendable, Hashable, CaseIterable, Codable {
    /// The delivery is to be tried, now or at `dueTime`.
    case pending
    case succeeded
    /// The handler failed and its function does not retry.
    case failed
    /// The delivery was given up.
    ///
    /// Its attempts or time ran out, it crashed too often, it was discarded, it is part of a loop,
    /// or its function is gone.
    case dead

    /// Whether nothing more happens unless somebody asks for it.
    package var isSettled: Bool { self != .pending }
  }

  /// A delivery that is due at once or, if it brings a task, at the task's time.
  package init(
    id: DeliveryID,
    content: Content,
    commitTime: Timestamp,
    auth: AuthContext,
    cause: DeliveryID? = nil,
    depth: Int = 0
  ) {
    self.id = id
    self.content = content
    self.commitTime = commitTime
    self.auth = auth
    self.cause = cause
    self.depth = depth
    self.state = .pending
    self.attempts = 0
    self.crashes = 0
    self.executions = 0
    self.isUnanswered = false
    self.dueTime = commitTime
    if case .occurrence(.task(let task)) = content {
      self.dueTime = max(commitTime, task.scheduleTime)
    }
  }

  /// The task it brings; nil for events.
  package var task: EnqueuedTask? {
    if case .occurrence(.task(let task)) = content { task } else { nil }
  }

  /// The lane of deliveries that run one after the other; nil for events and tasks without order.
  ///
  /// Deliveries of one document, or of one schedule, to one function share a lane.
  var lane: DeliveryLane? {
    switch content {
    case .document(let change, _):
      DeliveryLane(id.function, change.name.database.description, change.name.path.description)
    case .occurrence(.schedule): .schedule(of: id.function)
    case .occurrence: nil
    }
  }

  /// What the delivery is about, for people: a document's path, an event's subject, a task's id.
  package var subject: String {
    switch content {
    case .document(let change, _): change.name.path.description
    case .occurrence(.event(let event)): event.subject ?? event.source
    case .occurrence(.schedule(_, let time)): time.description
    case .occurrence(.task(let task)): task.id
    }
  }

  /// What kind of event it is, for people: `created`, an event type, `schedule` or `task`.
  package var kind: String {
    switch content {
    case .document(_, let type): type.kind.rawValue
    case .occurrence(.event(let event)): event.type
    case .occurrence(.schedule): "schedule"
    case .occurrence(.task): "task"
    }
  }
}

/// The lane of a delivery, as a hash that is the same in every process.
///
/// Two lanes whose hashes collide wait for each other, which does no other harm.
struct DeliveryLane: Sendable, Hashable {
  var hash: UInt64

  init(hash: UInt64) {
    self.hash = hash
  }

  /// The lane of a function's scheduled runs.
  static func schedule(of function: String) -> DeliveryLane {
    DeliveryLane(function, "schedule")
  }

  init(_ parts: String...) {
    // FNV-1a, because it needs no seed; a zero byte separates the parts.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for part in parts {
      for byte in part.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      hash = hash &* 0x100_0000_01B3
    }
    self.hash = hash
  }
}

/// Names a delivery; stable over redeliveries and restarts.
package struct DeliveryID: Sendable, Hashable {
  package var sequence: UInt64
  package var changeIndex: UInt32
  package var function: String

  /// The delivery of one event of a commit to a function; occurrences follow the changes.
  package init(sequence: UInt64, changeIndex: UInt32, function: String) {
    self.sequence = sequence
    self.changeIndex = changeIndex
    self.function = function
  }

  /// The CloudEvents id: the same for every function that the change reaches.
  package var eventID: String { "\(sequence).\(changeIndex)" }

  /// The key of the delivery's row; keys are ordered by commit.
  var key: [UInt8] {
    var key = KeyEncoder()
    key.append(sequence)
    key.append(UInt64(changeIndex))
    key.append(raw: function.utf8)
    return key.bytes
  }

  /// Reads a key; throws `CorruptDataError`.
  init(key: some Collection<UInt8>) throws(CorruptDataError) {
    guard key.count > 16 else { throw CorruptDataError("the key of a delivery") }
    func number(_ bytes: some Collection<UInt8>) -> UInt64 {
      bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
    self.init(
      sequence: number(key.prefix(8)),
      changeIndex: UInt32(truncatingIfNeeded: number(key.dropFirst(8).prefix(8))),
      function: String(decoding: key.dropFirst(16), as: UTF8.self)
    )
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
