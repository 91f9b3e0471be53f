import Invocation

/// An error of an event's, schedule's or task's handler that says whether trying again makes sense.
///
/// Any other error leaves that to the function's `retry` option.
public struct EventError: Error, Sendable {
  /// What went wrong, for the log.
  public var message: String
  /// The error behind it, for the log.
  public var cause: (any Error)?
  let advice: RetryAdvice

  /// Trying again cannot help: the event ends here, whatever the function's `retry` option says.
  ///
  /// Hearth keeps it as dead. In production, where nothing else stops the tries, it is acknowledged.
  public static func permanent(_ message: String, cause: (any Error)? = nil) -> EventError {
    EventError(message: message, cause: cause, advice: .never)
  }

  /// Trying again may help, but not before `delay` has passed.
  ///
  /// Only a function whose `retry` option allows it is tried again.
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
