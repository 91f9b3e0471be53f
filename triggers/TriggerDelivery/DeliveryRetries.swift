package import Invocation

/// When a function's failed deliveries are tried again; from its endpoint in the manifest.
package struct DeliveryRetries: Sendable, Hashable {
  /// Tries in all; nil for no bound.
  package var attemptsMax: Int?
  /// The time after which there is no further try; nil for no bound.
  package var window: Duration?
  /// Whether a try is the last only when both bounds are passed; else when either is.
  package var needsBothBounds: Bool
  package var backOffMin: Duration
  package var backOffMax: Duration
  /// How often the wait doubles before it grows linearly.
  package var doublings: Int

  /// A policy; without other bounds it gives a failing delivery one try.
  package init(
    attemptsMax: Int? = 1,
    window: Duration? = nil,
    needsBothBounds: Bool = false,
    backOffMin: Duration = .seconds(1),
    backOffMax: Duration = .seconds(600),
    doublings: Int = 16
  ) {
    self.attemptsMax = attemptsMax
    self.window = window
    self.needsBothBounds = needsBothBounds
    self.backOffMin = backOffMin
    self.backOffMax = backOffMax
    self.doublings = doublings
  }

  /// The wait after failure number `failures`, counted from 1: it doubles, then grows by the last
  /// doubled wait, and never exceeds `backOffMax`.
  package func wait(afterFailures failures: Int) -> Duration {
    let steps = max(failures - 1, 0)
    let doubled = min(steps, doublings, Self.doublingsMax)
    let wait = backOffMin * (1 << doubled)
    guard steps > doubled else { return min(wait, backOffMax) }
    return wait >= backOffMax ? backOffMax : min(wait * (1 + steps - doubled), backOffMax)
  }

  /// Whether a delivery that failed `attempts` times may be tried again `elapsed` after the start.
  package func allowsRetry(attempts: Int, elapsed: Duration) -> Bool {
    let isCountLeft = attemptsMax.map { attempts < $0 }
    let isTimeLeft = window.map { elapsed <= $0 }
    switch (isCountLeft, isTimeLeft) {
    case (let count?, let time?): return needsBothBounds ? count || time : count && time
    case (let count?, nil): return count
    case (nil, let time?): return time
    case (nil, nil): return true
    }
  }

  /// More would overflow, and no bound is so far.
  private static let doublingsMax = 30
}

extension DeliveryRetries {
  /// The policy of a deployed function.
  package init(_ endpoint: FunctionEndpoint) {
    if let queue = endpoint.taskQueueTrigger {
      self = .tasks
      if let config = queue.retryConfig { apply(config, countsFirst: true) }
    } else if let schedule = endpoint.scheduleTrigger {
      self = .schedules
      if let config = schedule.retryConfig { apply(config, countsFirst: false) }
    } else {
      self = endpoint.eventTrigger?.retry == true ? .events : DeliveryRetries()
      if endpoint.eventTrigger?.retry == true, let config = endpoint.eventTrigger?.retryConfig {
        apply(config, countsFirst: true)
      }
    }
  }

  /// Events of a function that retries: a day, as in production, but the first wait is 1 s and not
  /// 10 s, for a person waits.
  package static let events = DeliveryRetries(attemptsMax: nil, window: .seconds(24 * 3600))

  /// Cloud Tasks' defaults for Firebase's queues.
  package static let tasks = DeliveryRetries(
    attemptsMax: 3,
    needsBothBounds: true,
    backOffMin: .milliseconds(100),
    backOffMax: .seconds(3600)
  )

  /// Cloud Scheduler's defaults.
  package static let schedules = DeliveryRetries(
    attemptsMax: 1,
    needsBothBounds: true,
    backOffMin: .seconds(5),
    backOffMax: .seconds(3600),
    doublings: 5
  )

  private mutating func apply(_ config: FunctionEndpoint.RetryConfig, countsFirst: Bool) {
    if let most = config.maxAttempts { attemptsMax = most < 0 ? nil : max(1, most) }
    if !countsFirst, let more = config.retryCount { attemptsMax = max(0, more) + 1 }
    if let seconds = config.maxRetrySeconds { window = seconds > 0 ? .seconds(seconds) : nil }
    if let seconds = config.minBackoffSeconds { backOffMin = .seconds(max(0, seconds)) }
    if let seconds = config.maxBackoffSeconds { backOffMax = .seconds(max(0, seconds)) }
    if let count = config.maxDoublings { doublings = max(0, count) }
  }
}
