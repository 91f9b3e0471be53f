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
public struct OnUserDeleted: CloudFunction {
  private let body: UserFunction

  /// Creates a function with the name under which it is deployed.
  public init(
    _ name: String,
    options: EventOptions = EventOptions(),
    handler: @escaping @Sendable (UserEvent) async throws -> Void
  ) {
    body = UserFunction(
      name: name,
      type: "google.firebase.auth.user.v1.deleted",
      options: options.values,
      handler: handler
    )
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition { body.definition }

  /// Runs the handler and rethrows its error.
  public func run(_ event: UserEvent) async throws { try await body.handler(event) }
}
