/// The rule for retrying failed events, scheduled runs and tasks, or simply `true` or `false`.
///
/// ```swift
/// options: .init(retry: true)
/// options: .init(retry: .init(attempts: 5, minBackOff: .seconds(1), maxBackOff: .seconds(60)))
/// ```
///
/// `retry: true` uses all defaults: events are retried for a day, tasks have three attempts, and
/// scheduled runs are retried up to five times. `retry: false` makes a single attempt. A handler
/// can override the policy for a single failure by throwing an `EventError`.
public struct RetryPolicy: Sendable, Hashable, ExpressibleByBooleanLiteral {
  /// The number of attempts, including the first; nil for the default of the function's kind.
  ///
  /// With a `window` and without `attempts`, only the window limits the attempts.
  public var attempts: Int?
  /// The time since the first attempt after which no further attempts are made.
  public var window: Duration?
  /// The wait after the first failure.
  public var minBackOff: Duration?
  /// The longest wait between two attempts.
  public var maxBackOff: Duration?
  /// The number of times that the wait doubles.
  ///
  /// After that it grows by equal steps.
  public var doublings: Int?

  /// Creates a policy.
  ///
  /// Settings that are nil have the default of the function's kind.
  public init(
    attempts: Int? = nil,
    window: Duration? = nil,
    minBackOff: Duration? = nil,
    maxBackOff: Duration? = nil,
    doublings: Int? = nil
  ) {
    self.attempts = attempts
    self.window = window
    self.minBackOff = minBackOff
    self.maxBackOff = maxBackOff
    self.doublings = doublings
  }

  /// Creates a policy with all defaults for `true`, or with a single attempt for `false`.
  public init(booleanLiteral value: Bool) {
    self.init(attempts: value ? nil : 1)
  }

  /// True if the policy allows a second attempt.
  var triesAgain: Bool { attempts != 1 }

  /// The problems of the policy, as sentence endings that follow the function's name.
  var problems: [String] {
    var problems: [String] = []
    if let attempts, attempts < 1 {
      problems.append("has \(attempts) attempts; set at least 1, which means no retry.")
    }
    let times = [("window", window), ("minBackOff", minBackOff), ("maxBackOff", maxBackOff)]
    for case (let name, let time?) in times where time <= .zero {
      problems.append("has a retry with the \(name) \(time); set a time above zero.")
    }
    if let minBackOff, let maxBackOff, minBackOff > maxBackOff {
      problems.append(
        "has a retry whose minBackOff \(minBackOff) is above its maxBackOff \(maxBackOff); "
          + "exchange them."
      )
    }
    if let doublings, doublings < 0 {
      problems.append("has a retry with \(doublings) doublings; set 0 or more.")
    }
    return problems
  }
}
