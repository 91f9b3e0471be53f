import Invocation

/// An error by which a handler of an event, schedule or task says whether to try again.
///
/// ```swift
/// throw EventError.permanent("The message has no text")
/// throw EventError.retry(after: .seconds(30), "The provider is busy", cause: error)
/// throw EventError.retry(exactlyAfter: retryAfter, "The provider named a time", cause: error)
/// ```
///
/// For any other error the function's `retry` option decides.
public struct EventError: Error, Sendable {
  /// What went wrong, for the log.
  public var message: String
  /// The error behind it, for the log.
  public var cause: (any Error)?
  let advice: RetryAdvice

  /// Trying again cannot help: the event ends here, whatever the function's `retry` option says.
  ///
  /// Hearth keeps the event as dead. In production, where nothing else stops the tries, it is
  /// acknowledged.
  public static func permanent(_ message: String, cause: (any Error)? = nil) -> EventError {
    EventError(message: message, cause: cause, advice: .never)
  }

  /// Trying again may help, but not before `delay` has passed.
  ///
  /// The waits still grow with each failure: the next try comes after `delay` or after the wait of
  /// the function's `retry` option, whichever is longer. At most a day counts. The event is tried
  /// again only if that option allows it.
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

  /// Trying again may help once `delay` has passed, however often the event has failed.
  ///
  /// Only for a time that a provider itself named, such as its `Retry-After`: `delay` takes the
  /// place of the growing wait, and a constant here would be asked for at the same pace for a day.
  /// Less than a second counts as one, more than a day as a day. The event is tried again only if
  /// the function's `retry` option allows it.
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
  /// The message and, where known, its cause.
  public var description: String { cause.map { "\(message) (\($0))" } ?? message }
}
