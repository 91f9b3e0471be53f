/// Why an outside service, such as a model provider, did not do what was asked.
public struct ServiceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of failure it is.
  public var kind: Kind
  /// A sentence without keys and without texts of users.
  public var message: String
  /// How long the service asked to be left alone; nil when it did not say.
  public var retryAfter: Duration?
  /// Whether the service itself said to try again at once; nil when it said nothing.
  var shouldRetry: Bool?

  /// The kinds of failure, by what to do about them.
  public enum Kind: String, Sendable, Hashable {
    /// The service is down, slow or overloaded: the same request may succeed later.
    case unavailable
    /// Too many requests for now.
    case rateLimited
    /// The account has no quota left; waiting does not help.
    case quotaExhausted
    /// The settings are wrong: a key, a model or an index.
    case misconfigured
    /// The service does not take the request.
    case refused
    case notFound, alreadyExists
  }

  /// A failure.
  public init(_ kind: Kind, _ message: String, retryAfter: Duration? = nil) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
  }

  /// Whether the same request may succeed later.
  public var isTransient: Bool { kind == .unavailable || kind == .rateLimited }

  /// The message.
  public var description: String { message }
}
