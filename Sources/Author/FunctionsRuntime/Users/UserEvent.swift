import Events
import Invocation

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

/// The part that `OnUserCreated` and `OnUserDeleted` have in common.
struct UserFunction: Sendable {
  var name: String
  /// The CloudEvents type of the event.
  var type: String
  var options: FunctionOptions
  var handler: @Sendable (UserEvent) async throws -> Void

  var definition: FunctionDefinition {
    FunctionDefinition(
      name: name,
      trigger: .cloudEvent(CloudEventFilter(type: type)),
      options: options
    ) { request, scope in
      await EventInvocation(scope: scope).reply(to: request) { received in
        guard received.type == type else {
          throw EventRefusedError("The function wants \(type), not \(received.type).")
        }
        let event = UserEvent(
          user: try UserRecord(EventJSON.value(received.data)),
          id: received.id,
          time: received.time.flatMap { Timestamp($0) },
          attempt: request.attempt,
          invocationID: request.id,
          logger: scope.logger
        )
        return { try await handler(event) }
      }
    }
  }
}
