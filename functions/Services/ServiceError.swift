/// Why an outside service, such as a model provider, did not do what was asked.
public struct ServiceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What kind of failure it is.
  public var kind: Kind
  /// A sentence without keys and without texts of users.
  public var message: String
  /// When to ask again at the earliest: as the service asked, or when its circuit lets a call
  /// through; nil when nobody said.
  public var retryAfter: Duration?
  /// The circuit of the service after this failure.
  public internal(set) var circuit = Circuit.closed
  /// Whether the circuit opened for this failure and was closed, or open for another kind, before.
  public internal(set) var isNews = false
  /// What a model used before its call failed.
  var usage = TokenUsage()
  /// Whether the service itself said to try again at once; nil when it said nothing.
  var shouldRetry: Bool?

  /// The kinds of failure, by what to do about them.
  public enum Kind: String, Sendable, Hashable {
    /// The service is down, slow or overloaded: the same request may succeed later.
    case unavailable
    /// Too many requests for now.
    case rateLimited
    /// The account has no quota left until a person gives it some.
    case quotaExhausted
    /// The call may need more than the app's own limits leave for the day.
    case limitReached
    /// The settings are wrong: a key, a model or an index.
    case misconfigured
    /// The service does not take the request.
    case refused
    case notFound, alreadyExists
  }

  /// Whether calls reach the service at all.
  public enum Circuit: Sendable, Hashable {
    /// They do.
    case closed
    /// They all fail like this one until `retryAfter`, and nobody is asked.
    case open
    /// They fail for a moment, because one call finds out whether the service is back.
    case halfOpen
  }

  /// A failure.
  public init(_ kind: Kind, _ message: String, retryAfter: Duration? = nil) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
  }

  /// Whether the same request may succeed in a moment.
  var isTransient: Bool { kind == .unavailable || kind == .rateLimited }

  /// Whether a person must correct something before the service serves anybody.
  public var needsCorrection: Bool { kind == .misconfigured || kind == .quotaExhausted }

  /// Whether the service serves nobody right now, whatever is asked of it.
  ///
  /// Who can do without the service then does; others wait.
  public var isOutage: Bool { isTransient || needsCorrection || kind == .limitReached }

  /// The message.
  public var description: String { message }
}
