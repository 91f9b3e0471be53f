/// A function that decides on a new user before it is created.
///
/// ```swift
/// var checkSignUp: BeforeUserCreated {
///   .init("checkSignUp") { event in
///     guard event.user.email?.hasSuffix("@example.com") == true else {
///       throw CallableError(.permissionDenied, "Use your company's address.")
///     }
///     return UserChanges(customClaims: ["role": .string("member")])
///   }
/// }
/// ```
///
/// A user who is refused is not created. Auth waits at most seven seconds. It does not ask for
/// anonymous users, for custom tokens, or for users whom an administrator creates. An app has at
/// most one such function.
public struct BeforeUserCreated: CloudFunction {
  private let body: BlockingFunction

  /// Creates a function with the name under which it is deployed.
  ///
  /// The handler returns the changes of the user; nil for none. It refuses by throwing a
  /// `CallableError`.
  public init(
    _ name: String,
    options: BlockingOptions = BlockingOptions(),
    handler: @escaping @Sendable (BlockingEvent) async throws -> UserChanges?
  ) {
    body = BlockingFunction(
      name: name,
      type: .beforeCreate,
      options: options.values,
      handler: handler
    )
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition { body.definition }

  /// Runs the handler and rethrows its error.
  @discardableResult
  public func run(_ event: BlockingEvent) async throws -> UserChanges? {
    try await body.handler(event)
  }
}
