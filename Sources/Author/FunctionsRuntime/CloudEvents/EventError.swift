import Invocation

/// An error that says whether and when to retry an event, a scheduled run or a task.
///
/// ```swift
/// throw EventError.permanent("The message has no text")
/// throw EventError.retry(after: .seconds(30), "The provider is busy", cause: error)
/// throw EventError.retry(exactlyAfter: retryAfter, "The provider named a time", cause: error)
/// ```
///
/// After any other error the function's `retry` option decides.
public struct EventError: Error, Sendable {
  /// A description of the problem, for the log.
  public var message: String
  /// The underlying error, for the log.
  public var cause: (any Error)?
  let advice: RetryAdvice

  /// Returns an error after which the event is never retried, whatever the option `retry` is.
  ///
  /// Use it if a retry cannot succeed. Hearth keeps the event as a dead event. In production the
  /// event is acknowledged, because nothing else stops the platform from retrying it.
  public static func permanent(_ message: String, cause: (any Error)? = nil) -> EventError {
    EventError(message: message, cause: cause, advice: .never)
  }

  /// Returns an error after which the event is retried no sooner than `delay`.
  ///
  /// The wait still grows with each failure. The next attempt happens after `delay` or after the
  /// wait of the function's `retry` option, whichever is longer. A delay of more than a day counts
  /// as a day. The event is retried only if the `retry` option allows it.
  public static func retry(
    after delay: Duration,
    _ message: String,
    cause: (any Error)? = nil
  ) -> EventError {
    EventError(
      message: message,
      cause: cause,
      advice: .after(seconds: max(0, delay / .seconds(1)))
    )
  }

  /// Returns an error after which the event is retried after exactly `delay`.
  ///
  /// Use it only for a time that a provider named, such as the value of a `Retry-After` header.
  /// `delay` replaces the growing wait, so a constant delay would repeat the attempts at the same
  /// rate for a day. A delay of less than a second counts as a second, and of more than a day as a
  /// day. The event is retried only if the function's `retry` option allows it.
  public static func retry(
    exactlyAfter delay: Duration,
    _ message: String,
    cause: (any Error)? = nil
  ) -> EventError {
    EventError(
      message: message,
      cause: cause,
      advice: .exactlyAfter(seconds: max(0, delay / .seconds(1)))
    )
  }
}

extension EventError: CustomStringConvertible {
  /// The message, followed by the cause if there is one.
  public var description: String { cause.map { "\(message) (\($0))" } ?? message }
}
