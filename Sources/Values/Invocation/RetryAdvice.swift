import HTTPMessages
package import HTTPTypes

/// The advice of a failing event handler on retrying the event.
///
/// `FunctionsRuntime` sets it on its reply, and trigger delivery reads it.
package enum RetryAdvice: Sendable, Hashable {
  /// Do not retry: the event can only fail.
  case never
  /// Retry after the back-off delay, but no earlier than after this many seconds.
  case after(seconds: Double)
  /// Retry after this many seconds instead of the back-off delay.
  case exactlyAfter(seconds: Double)

  /// The reply header that carries the advice: `never`, `after=SECONDS` or `exactly-after=SECONDS`.
  package static let header = fieldName("x-hearth-retry")

  /// The advice as header text.
  package var headerValue: String {
    switch self {
    case .never: "never"
    case .after(let seconds): "after=\(seconds)"
    case .exactlyAfter(let seconds): "exactly-after=\(seconds)"
    }
  }

  /// Parses the header text; nil if it has none of the forms.
  package init?(headerValue: String) {
    if headerValue == "never" {
      self = .never
      return
    }
    let words = headerValue.split(separator: "=", maxSplits: 1)
    guard words.count == 2, let seconds = Double(words[1]), seconds >= 0, seconds.isFinite else {
      return nil
    }
    switch words[0] {
    case "after": self = .after(seconds: seconds)
    case "exactly-after": self = .exactlyAfter(seconds: seconds)
    default: return nil
    }
  }
}
