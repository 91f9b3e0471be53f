package import DocumentModel
package import Events

/// The delivery of one event to one function: its state, without the event itself.
package struct Delivery: Sendable, Hashable {
  /// `{commit sequence}.{index of the event in its commit}.{function}`.
  ///
  /// A node of a change in the Realtime Database, other than the first, has its number after the
  /// index and a hyphen.
  package var id: DeliveryID
  package var source: Source
  /// A readable description of the event: a path, an event's subject or a task's id.
  ///
  /// The path of a node of the Realtime Database identifies it within its change.
  package var subject: String
  /// The time at which the event was recorded.
  package var commitTime: Timestamp
  /// The delivery whose function caused this event; nil if unknown.
  package var cause: DeliveryID?
  /// The number of deliveries before this one in its chain of causes; a task begins a new chain.
  package var depth: Int
  /// The lane of deliveries that run one after the other; nil if the delivery has no order.
  var lane: DeliveryLane?
  package var state: State
  /// The number of attempts that ended with a response or a timeout; for a task, also with a crash.
  package var attempts: Int
  /// The number of crashes of a worker that ran only this delivery, since the last response.
  package var crashes: Int
  /// The number of responses without a 5xx status, as Cloud Tasks counts executions.
  package var executions: Int
  /// The HTTP status of the last response.
  package var lastStatus: Int?
  /// The start of the first attempt.
  package var firstAttemptTime: Timestamp?
  /// The earliest time of the next attempt.
  package var dueTime: Timestamp
  /// The time at which the next attempt was postponed to `dueTime`; nil if it was not postponed.
  var postponedTime: Timestamp?
  package var settledTime: Timestamp?
  /// The reason why the last attempt did not succeed.
  package var lastError: String?
  /// True if the delivery waits although no handler has failed.
  ///
  /// It then waits for a worker to replace one that crashed, or because the fault mode delays it.
  package var isUnanswered: Bool
  /// True if the delivery has a row by due time.
  ///
  /// It has one if it waits for a retry or is due later than its event.
  var isPostponed: Bool
  /// The approximate size of the event in storage; 0 if unknown.
  var eventBytes = 0
  /// The origin of the delivery's chain of causes; nil for a delivery without a cause.
  var origin: Origin?

  /// The origin of a chain of causes, and how far the chain has spread since.
  package struct Origin: Sendable, Hashable {
    /// The event that no delivery caused.
    var root: EventPlace
    /// The number of earlier runs of the function in the chain that changed its document.
    ///
    /// A run counts if it was for another document than the function's previous run in the chain.
    var generation: Int
  }

  /// The kind of trigger that the delivery belongs to.
  package enum Source: Sendable, Hashable {
    /// A document event of the type that the function's trigger names, and the actual change.
    case document(DocumentEventType, change: ChangeKind)
    /// A change of a node of the Realtime Database, of the kind that the function's trigger names.
    case value(ChangeKind, change: ChangeKind)
    /// A CloudEvent of another service.
    case event(type: String)
    case schedule
    case task
  }

  /// The state of a delivery.
  package enum State: String, Sendable, Hashable, CaseIterable, Codable {
    /// The delivery waits for an attempt, now or at `dueTime`, or is running.
    case pending
    case succeeded
    /// The handler failed and its function has no retries.
    case failed
    /// The delivery was given up.
    ///
    /// It ran out of attempts or time, crashed too often, was discarded, is part of a loop, or its
    /// function was not deployed again in time.
    case dead

    /// True if nothing more happens to the delivery without a request.
    package var isSettled: Bool { self != .pending }
  }

  /// Creates a delivery that is due at once or, for a task, at the task's time.
  ///
  /// `type` is the event type that the function's trigger names. It is ignored unless the event is
  /// a document's, or of the Realtime Database, where its kind counts. A change in the Realtime
  /// Database must be narrowed to the node that the function watches.
  package init(
    id: DeliveryID,
    event: DeliveryEvent,
    type: DocumentEventType = DocumentEventType(.written),
    cause: DeliveryID? = nil,
    depth: Int = 0
  ) {
    self.id = id
    self.commitTime = event.commitTime
    self.cause = cause
    self.depth = depth
    self.state = .pending
    self.attempts = 0
    self.crashes = 0
    self.executions = 0
    self.isUnanswered = false
    self.isPostponed = false
    self.dueTime = event.commitTime
    switch event.content {
    case .document(let change):
      source = .document(type, change: change.kind)
      subject = change.name.path.description
      lane = DeliveryLane(id.function, change.name.database.description, subject)
    case .occurrence(.event(let event)):
      source = .event(type: event.type)
      subject = event.subject ?? event.source
    case .occurrence(.schedule(let function, let time)):
      source = .schedule
      subject = time.description
      lane = .schedule(of: function)
    case .occurrence(.task(let task)):
      source = .task
      subject = task.id
      dueTime = max(commitTime, task.scheduleTime)
    case .occurrence(.value(let change)):
      source = .value(type.kind, change: change.kind)
      subject = change.path.joined(separator: "/")
      lane = DeliveryLane(id.function, "database", change.instance, subject)
    }
  }

  /// True if the delivery carries a task rather than an event.
  package var isTask: Bool { source == .task }

  /// A readable kind of the event: `created`, an event type, `schedule` or `task`.
  package var kind: String {
    switch source {
    case .document(let type, _): type.kind.rawValue
    case .value(let kind, _): kind.rawValue
    case .event(let type): type
    case .schedule: "schedule"
    case .task: "task"
    }
  }

  /// The kind of the event; for a document or a value, the actual change.
  package var changeKind: String {
    switch source {
    case .document(_, let change), .value(_, let change): change.rawValue
    case .event, .schedule, .task: kind
    }
  }

  /// Indicates whether the delivery may be attempted at `now`.
  ///
  /// A wait that began later than `now` counts as over: the clock was set back, and the rest of the
  /// wait is not known.
  func isDue(at now: Timestamp) -> Bool {
    !isPostponed || dueTime <= now || postponedTime.map { $0 > now } ?? false
  }

  /// Settles the delivery with a final state.
  mutating func end(_ state: State, _ error: String?, _ now: Timestamp) {
    self.state = state
    isPostponed = false
    isUnanswered = false
    settledTime = now
    lastError = error
  }

  /// Postpones the next attempt to a time; `now` is the time at which the wait begins.
  ///
  /// If `now` is nil, the attempt has a fixed time and is not the end of a wait. The due time then
  /// stands even if the clock is set back.
  mutating func postpone(to time: Timestamp, _ error: String?, at now: Timestamp?) {
    dueTime = time
    postponedTime = now
    isPostponed = true
    lastError = error
  }

  /// Makes a settled delivery pending again, as if it had never been attempted.
  mutating func renew(at time: Timestamp) {
    state = .pending
    attempts = 0
    crashes = 0
    executions = 0
    lastStatus = nil
    firstAttemptTime = nil
    settledTime = nil
    isUnanswered = false
    postpone(to: time, lastError, at: time)
  }
}
