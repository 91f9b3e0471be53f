/// The failure of an external service, such as a model provider.
public struct ServiceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of the failure.
  public var kind: Kind
  /// A description without keys and without texts of users.
  public var message: String
  /// The minimum delay before another call; nil if unknown.
  ///
  /// It is the delay that the service asked for, or the time until its circuit allows a call.
  public var retryAfter: Duration?
  /// The state of the service's circuit after this failure.
  public internal(set) var circuit = Circuit.closed
  /// True if this failure is the first of its kind in an outage.
  ///
  /// It opened the circuit, which was closed before or open for another kind of failure.
  public internal(set) var isNews = false
  /// The usage of a model before its call failed.
  var usage = TokenUsage()
  /// The service's own statement about an immediate retry; nil if it made none.
  var shouldRetry: Bool?

  /// The kinds of failure, by the reaction that they require.
  public enum Kind: String, Sendable, Hashable {
    /// The service is down, slow or overloaded. The same request may succeed later.
    case unavailable
    /// The service received too many requests and may accept more later.
    case rateLimited
    /// The account has no quota left until a person adds more.
    case quotaExhausted
    /// The call may need more than the app's own limits leave for the day.
    case limitReached
    /// The settings are wrong: a key, a model or an index.
    case misconfigured
    /// The service does not accept the request.
    case refused
    case notFound, alreadyExists
  }

  /// The states of a service's circuit.
  public enum Circuit: Sendable, Hashable {
    /// Calls reach the service.
    case closed
    /// All calls fail with this error until `retryAfter`, without reaching the service.
    case open
    /// Calls fail for a moment, while one call tests if the service is available again.
    case halfOpen
  }

  /// Creates a failure of the given kind.
  public init(_ kind: Kind, _ message: String, retryAfter: Duration? = nil) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
  }

  /// True if the same request may succeed soon.
  var isTransient: Bool { kind == .unavailable || kind == .rateLimited }

  /// True if a person must correct something before the service can be used.
  public var needsCorrection: Bool { kind == .misconfigured || kind == .quotaExhausted }

  /// True if the service cannot be used now, whatever the request.
  ///
  /// Callers that can work without the service do so, and others wait.
  public var isOutage: Bool { isTransient || needsCorrection || kind == .limitReached }

  /// The text of `message`.
  public var description: String { message }
}
