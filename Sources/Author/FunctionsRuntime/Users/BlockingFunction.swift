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
public typealias BeforeUserCreated = BlockingFunction<UserCreationDecision>

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
public typealias BeforeUserSignedIn = BlockingFunction<SignInDecision>

/// A moment at which Auth waits for a function.
///
/// Do not conform other types to this protocol.
public protocol BlockingTrigger: SendableMetatype {
  /// The moment.
  static var type: BlockingEventType { get }
}

/// The moments at which Auth waits for a function.
public enum BlockingEventType: String, Sendable, Hashable {
  /// A user is about to be created.
  case beforeCreate
  /// A user is about to receive tokens.
  case beforeSignIn
}

/// The trigger of `BeforeUserCreated`.
public enum UserCreationDecision: BlockingTrigger {
  /// The moment before a user is created.
  public static var type: BlockingEventType { .beforeCreate }
}

/// The trigger of `BeforeUserSignedIn`.
public enum SignInDecision: BlockingTrigger {
  /// The moment before a user receives tokens.
  public static var type: BlockingEventType { .beforeSignIn }
}

/// A function for whose decision Auth waits: `BeforeUserCreated` or `BeforeUserSignedIn`.
public struct BlockingFunction<Trigger: BlockingTrigger>: CloudFunction {
  private let name: String
  private let options: FunctionOptions
  private let handler: @Sendable (BlockingEvent) async throws -> UserChanges?

  /// Creates a function with the name under which it is deployed.
  ///
  /// The handler returns the changes of the user; nil for none. It refuses by throwing a
  /// `CallableError`.
  public init(
    _ name: String,
    options: BlockingOptions = BlockingOptions(),
    handler: @escaping @Sendable (BlockingEvent) async throws -> UserChanges?
  ) {
    self.name = name
    self.options = options.values
    self.handler = handler
  }

  /// The description of the function that a `FunctionsApp` uses to host it.
  public var definition: FunctionDefinition {
    FunctionDefinition(name: name, trigger: .blocking(Trigger.type), options: options) {
      request,
      scope in
      await BlockingInvocation(scope: scope, type: Trigger.type).reply(to: request, handler)
    }
  }

  /// Runs the handler and rethrows its error.
  @discardableResult
  public func run(_ event: BlockingEvent) async throws -> UserChanges? {
    try await handler(event)
  }
}
