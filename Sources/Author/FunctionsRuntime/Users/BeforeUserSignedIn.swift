/// A function that decides on a sign-in before the user receives tokens.
///
/// ```swift
/// var checkSignIn: BeforeUserSignedIn {
///   .init("checkSignIn") { event in
///     UserChanges(sessionClaims: ["signedInWith": .string(event.method ?? "")])
///   }
/// }
/// ```
///
/// It also runs after `BeforeUserCreated`; a new user who is refused here exists all the same. Auth
/// waits at most seven seconds. It does not ask for anonymous users or for custom tokens. An app
/// has at most one such function.
public struct BeforeUserSignedIn: CloudFunction {
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
      type: .beforeSignIn,
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
