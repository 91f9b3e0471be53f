/// One event about a value in the Realtime Database, as passed to the handler of a trigger.
///
/// Events are delivered at least once and can arrive out of order. Handlers should therefore read
/// the current value, or compare times within the values.
public struct ValueEvent<Payload: Sendable>: Sendable {
  /// The event's id, which is the same in each delivery of the event.
  public var id: String
  /// The time at which the value changed; nil in an event made by hand.
  public var time: Timestamp?
  /// The path of the value, such as `presence/tina`.
  public var path: ResourcePath
  /// The name of the database's instance.
  public var instance: String
  /// The values that the wildcards of the trigger's pattern captured.
  public var params: EventParams
  /// The value, update or change, depending on the trigger.
  public var data: Payload
  /// The kind of caller that changed the value.
  public var authType: ValueAuthType
  /// The id of the user who changed the value; nil for other callers.
  public var authID: String?
  /// The number of this delivery of the event to the function, starting at 1.
  public var attempt: Int
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates an event for a test.
  ///
  /// You can omit `params`: a function that is called directly captures them from the path.
  public init(
    path: String,
    data: Payload,
    id: String = "test",
    time: (any PointInTime)? = nil,
    instance: String = "demo-test-default-rtdb",
    params: [String: String] = [:],
    authType: ValueAuthType = .unknown,
    authID: String? = nil,
    attempt: Int = 1,
    invocationID: String = "test",
    logger: Logger = Logger(label: "event")
  ) {
    self.path = ResourcePath(path.split(separator: "/").map { String($0) })
    self.data = data
    self.id = id
    self.time = time?.timestamp
    self.instance = instance
    self.params = EventParams(params)
    self.authType = authType
    self.authID = authID
    self.attempt = attempt
    self.invocationID = invocationID
    self.logger = logger
  }
}

/// The kinds of callers that change values in the Realtime Database.
public enum ValueAuthType: String, Sendable, Hashable, CaseIterable {
  /// A user who is signed in.
  case appUser = "app_user"
  /// A server, to which no rules apply.
  case admin
  /// A caller without any credential.
  case unauthenticated
  /// Any caller, if the sender does not say which.
  case unknown
}

/// A value before and after an update.
public struct ValueUpdate<Payload: Sendable>: Sendable {
  /// The value before the update.
  public var before: Payload
  /// The value after the update.
  public var after: Payload

  /// Creates an update for a test.
  public init(before: Payload, after: Payload) {
    self.before = before
    self.after = after
  }
}

/// A change of a value of any kind: creation, update or deletion.
public struct ValueWrite<Payload: Sendable>: Sendable {
  /// The value before the change; nil if it was created.
  public var before: Payload?
  /// The value after the change; nil if it was deleted.
  public var after: Payload?

  /// Creates a change for a test.
  public init(before: Payload?, after: Payload?) {
    self.before = before
    self.after = after
  }
}

extension ValueUpdate: Equatable where Payload: Equatable {}
extension ValueWrite: Equatable where Payload: Equatable {}
