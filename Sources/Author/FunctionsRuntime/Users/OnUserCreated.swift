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
public struct OnUserCreated: CloudFunction {
  private let body: UserFunction

  /// Creates a function with the name under which it is deployed.
  public init(
    _ name: String,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (UserEvent) async throws -> Void
  ) {
    body = UserFunction(
      name: name,
      type: "google.firebase.auth.user.v1.created",
      options: options.values,
      handler: handler
    )
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition { body.definition }

  /// Runs the handler and rethrows its error.
  public func run(_ event: UserEvent) async throws { try await body.handler(event) }
}
