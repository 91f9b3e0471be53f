import Events
import Invocation

/// A function that runs after a user has been created.
///
/// ```swift
/// var onCreated: OnUserCreated {
///   .init("onUserCreated") { event in
///     event.logger.info("\(event.user.uid) was created")
///   }
/// }
/// ```
///
/// As in production, there is no event for users that a custom token creates or an administrator
/// imports in a batch.
/// A failed event is retried only if the option `retry` allows it.
public typealias OnUserCreated = UserFunction<UserCreation>

/// A function that runs after a user has been deleted.
///
/// ```swift
/// var onDeleted: OnUserDeleted {
///   .init("onUserDeleted") { event in
///     event.logger.info("\(event.user.uid) was deleted")
///   }
/// }
/// ```
///
/// As in production, there is no event for users that an administrator deletes in a batch.
/// A failed event is retried only if the option `retry` allows it.
public typealias OnUserDeleted = UserFunction<UserDeletion>

/// A kind of changes of users that runs functions.
///
/// Do not conform other types to this protocol.
public protocol UserTrigger: SendableMetatype {
  /// The CloudEvents type of the event.
  static var type: String { get }
}

/// The trigger of `OnUserCreated`.
public enum UserCreation: UserTrigger {
  /// The CloudEvents type of the event.
  public static var type: String { "google.firebase.auth.user.v1.created" }
}

/// The trigger of `OnUserDeleted`.
public enum UserDeletion: UserTrigger {
  /// The CloudEvents type of the event.
  public static var type: String { "google.firebase.auth.user.v1.deleted" }
}

/// A function that runs after a user has changed: `OnUserCreated` or `OnUserDeleted`.
public struct UserFunction<Trigger: UserTrigger>: CloudFunction {
  private let name: String
  private let options: FunctionOptions
  private let handler: @Sendable (UserEvent) async throws -> Void

  /// Creates a function with the name under which it is deployed.
  public init(
    _ name: String,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (UserEvent) async throws -> Void
  ) {
    self.name = name
    self.options = options.values
    self.handler = handler
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    FunctionDefinition(
      name: name,
      trigger: .cloudEvent(CloudEventFilter(type: Trigger.type)),
      options: options
    ) { request, scope in
      await EventInvocation(scope: scope).reply(to: request) { received in
        guard received.type == Trigger.type else {
          throw EventRefusedError("The function wants \(Trigger.type), not \(received.type).")
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

  /// Runs the handler and rethrows its error.
  public func run(_ event: UserEvent) async throws { try await handler(event) }
}
