/// The creation or the deletion of a user.
///
/// Events are delivered at least once and can arrive out of order.
public struct UserEvent: Sendable {
  /// The user as created, or as last stored before the deletion.
  public var user: UserRecord
  /// The event's id, the same in each delivery of the event.
  public var id: String
  /// The time at which the user was created or deleted; nil if the sender did not state it.
  public var time: Timestamp?
  /// The number of this delivery of the event to the function, starting at 1.
  public var attempt: Int
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates an event for a test.
  public init(
    user: UserRecord,
    id: String = "test",
    time: (any PointInTime)? = nil,
    attempt: Int = 1,
    invocationID: String = "test",
    logger: Logger = Logger(label: "event")
  ) {
    self.user = user
    self.id = id
    self.time = time?.timestamp
    self.attempt = attempt
    self.invocationID = invocationID
    self.logger = logger
  }
}
