import Invocation

/// An error by which a handler of an event, schedule or task says whether to try again.
///
/// ```swift
/// throw EventError.permanent("The message has no text")
/// throw EventError.retry(after: .seconds(30), "The provider is busy", cause: error)
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
  /// The event is tried again only if the function's `retry` option allows it.
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
}

extension EventError: CustomStringConvertible {
  /// The message and, where known, its cause.
  public var description: String { cause.map { "\(message) (\($0))" } ?? message }
}
