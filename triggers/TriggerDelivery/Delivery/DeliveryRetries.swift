package import FlowControl
package import Manifests

/// The retry policy for a function's failed deliveries, from its endpoint in the manifest.
package struct DeliveryRetries: Sendable, Hashable {
  /// The maximum number of attempts in all; nil for no bound.
  package var attemptsMax: Int?
  /// The time after which there are no further attempts; nil for no bound.
  package var window: Duration?
  /// True if retries end only when both bounds are passed, rather than either of them.
  package var needsBothBounds: Bool
  /// The waits between attempts.
  package var backOff: BackOff

  /// Creates a policy; by default a failing delivery has one attempt.
  package init(
    attemptsMax: Int? = 1,
    window: Duration? = nil,
    needsBothBounds: Bool = false,
    backOff: BackOff = BackOff(initial: .seconds(1), maximum: .seconds(600), doublings: 16)
  ) {
    self.attemptsMax = attemptsMax
    self.window = window
    self.needsBothBounds = needsBothBounds
    self.backOff = backOff
  }

  /// Indicates whether a delivery may be retried after `attempts` failures and `elapsed` time.
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
}

extension DeliveryRetries {
  /// Creates the policy of a deployed function.
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

  /// The retries of events: one day, as in production.
  ///
  /// The first wait is 1 s instead of production's 10 s, because a developer is waiting.
  package static let events = DeliveryRetries(attemptsMax: nil, window: .seconds(24 * 3600))

  /// Cloud Tasks' defaults for the queues of Firebase functions.
  package static let tasks = DeliveryRetries(
    attemptsMax: 3,
    needsBothBounds: true,
    backOff: BackOff(initial: .milliseconds(100), maximum: .seconds(3600), doublings: 16)
  )

  /// Cloud Scheduler's defaults.
  package static let schedules = DeliveryRetries(
    attemptsMax: 1,
    needsBothBounds: true,
    backOff: BackOff(initial: .seconds(5), maximum: .seconds(3600), doublings: 5)
  )

  private mutating func apply(_ config: FunctionEndpoint.RetryConfig, countsFirst: Bool) {
    if let most = config.maxAttempts { attemptsMax = most < 0 ? nil : max(1, most) }
    if !countsFirst, let more = config.retryCount { attemptsMax = max(0, more) + 1 }
    if let seconds = config.maxRetrySeconds { window = seconds > 0 ? .seconds(seconds) : nil }
    if let seconds = config.minBackoffSeconds { backOff.initial = .seconds(max(0, seconds)) }
    if let seconds = config.maxBackoffSeconds { backOff.maximum = .seconds(max(0, seconds)) }
    if let count = config.maxDoublings { backOff.doublings = max(0, count) }
  }
}
