/// When a failing event, scheduled run or task is tried again; `true` and `false` are policies too.
///
/// ```swift
/// options: .init(retry: true)
/// options: .init(retry: .init(attempts: 5, minBackOff: .seconds(1), maxBackOff: .seconds(60)))
/// ```
///
/// `retry: true` takes every default: events are tried for a day, tasks three times, scheduled runs
/// five more times. `retry: false` tries once. A single failure can override the policy by an
/// `EventError`.
public struct RetryPolicy: Sendable, Hashable, ExpressibleByBooleanLiteral {
  /// Tries in all, including the first; nil for the kind's default.
  ///
  /// With a `window` and without `attempts`, only the window bounds the tries.
  public var attempts: Int?
  /// The time since the first try after which there are no further tries.
  public var window: Duration?
  /// The wait after the first failure.
  public var minBackOff: Duration?
  /// The longest wait.
  public var maxBackOff: Duration?
  /// How often the wait doubles before it grows by equal steps.
  public var doublings: Int?

  /// A policy; nil members have the default of the function's kind.
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

  /// All defaults for `true`, a single try for `false`.
  public init(booleanLiteral value: Bool) {
    self.init(attempts: value ? nil : 1)
  }

  /// Whether there is a second try at all.
  var triesAgain: Bool { attempts != 1 }

  /// The problems of the policy, as ends of sentences.
  var problems: [String] {
    var problems: [String] = []
    if let attempts, attempts < 1 {
      problems.append("has \(attempts) attempts; set at least 1, which is no retry.")
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
