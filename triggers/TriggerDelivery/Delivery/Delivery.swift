package import DocumentModel
package import Events

/// One event on its way to one function: where it stands, without the event itself.
package struct Delivery: Sendable, Hashable {
  /// `{commit sequence}.{index of the event in its commit}.{function}`.
  package var id: DeliveryID
  package var source: Source
  /// What the delivery is about, for people: a document's path, an event's subject, a task's id.
  package var subject: String
  /// When the event was recorded.
  package var commitTime: Timestamp
  /// The delivery that made a function write what this event is about; nil when unknown.
  package var cause: DeliveryID?
  /// Deliveries before this one in its chain of causes; tasks begin a new chain.
  package var depth: Int
  /// The lane of deliveries that run one after the other; nil for those without order.
  var lane: DeliveryLane?
  package var state: State
  /// Handler runs that ended in an answer or a time-out.
  package var attempts: Int
  /// Runs since the last answer that ended with the death of a worker of its own.
  package var crashes: Int
  /// Answers that were not the server's own failure, which Cloud Tasks counts.
  package var executions: Int
  /// The HTTP status of the last answer.
  package var lastStatus: Int?
  /// When the delivery was first tried.
  package var firstAttemptTime: Timestamp?
  /// The time before which the delivery is not tried.
  package var dueTime: Timestamp
  /// When the next try was put off to `dueTime`; nil when nobody has put it off.
  var postponedTime: Timestamp?
  package var settledTime: Timestamp?
  /// Why the last try did not succeed.
  package var lastError: String?
  /// Whether the delivery waits although no handler has failed.
  ///
  /// It then waits for a worker in place of one that died, or because the fault mode delays it.
  package var isUnanswered: Bool
  /// Whether the delivery has a row by due time: it is tried again, or later than its event.
  var isPostponed: Bool
  /// The approximate size of the event in storage; 0 when unknown.
  var eventBytes = 0
  /// Where the delivery's chain of causes began; nil for a delivery without a cause.
  var origin: Origin?

  /// Where a chain of causes began, and how far it has spread since.
  package struct Origin: Sendable, Hashable {
    /// The event that no delivery caused.
    var root: EventPlace
    /// How often the function has run before in the chain, each time for another document.
    var generation: Int
  }

  /// Which kind of trigger the delivery belongs to.
  package enum Source: Sendable, Hashable {
    /// A document's event of the type that the function asked for, and what was done.
    case document(DocumentEventType, change: DocumentEventKind)
    /// A CloudEvent of another service.
    case event(type: String)
    case schedule
    case task
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
    /// or its function was not deployed again in time.
    case dead

    /// Whether nothing more happens unless somebody asks for it.
    package var isSettled: Bool { self != .pending }
  }

  /// A delivery that is due at once or, if it brings a task, at the task's time.
  ///
  /// `type` is what the function asked for; it is ignored for events that are not a document's.
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
    }
  }

  /// Whether the delivery brings a task.
  package var isTask: Bool { source == .task }

  /// What kind of event it is, for people: `created`, an event type, `schedule` or `task`.
  package var kind: String {
    switch source {
    case .document(let type, _): type.kind.rawValue
    case .event(let type): type
    case .schedule: "schedule"
    case .task: "task"
    }
  }

  /// Like `kind`, but of a document's event what was done to the document.
  package var changeKind: String {
    if case .document(_, let change) = source { change.rawValue } else { kind }
  }

  /// Whether the delivery may be tried at `now`.
  ///
  /// A wait that began later than `now` is over: the clock was set back, and how much of the wait is
  /// left is not known.
  func isDue(at now: Timestamp) -> Bool {
    !isPostponed || dueTime <= now || postponedTime.map { $0 > now } ?? false
  }

  /// Settles the delivery.
  mutating func end(_ state: State, _ error: String?, _ now: Timestamp) {
    self.state = state
    isPostponed = false
    isUnanswered = false
    settledTime = now
    lastError = error
  }

  /// Puts the next try off, at `now`, to a time.
  ///
  /// Without `now` that time stands even if the clock is set back: it is not a wait.
  mutating func postpone(to time: Timestamp, _ error: String?, at now: Timestamp?) {
    dueTime = time
    postponedTime = now
    isPostponed = true
    lastError = error
  }

  /// Makes a settled delivery pending again, as if it had never been tried.
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
