import Events
import Invocation

extension FunctionDefinition.Trigger {
  /// Whether a failed run can be followed by another without a client's asking.
  var canBeTriedAgain: Bool {
    switch self {
    case .callable, .typed, .http: false
    case .document, .cloudEvent, .schedule, .taskQueue: true
    }
  }

  /// The longest time-out that Cloud Functions allows.
  var secondsMax: Int {
    switch self {
    case .document, .cloudEvent: 540
    case .schedule, .taskQueue: 1800
    case .callable, .typed, .http: 3600
    }
  }
}

extension FunctionEndpoint.EventTrigger {
  /// The trigger for one type of event on documents that match a pattern, as Eventarc filters it.
  init(type: DocumentEventType, pattern: String) {
    let hasWildcards = (try? PathPattern(pattern))?.hasWildcards ?? true
    self.init(
      eventType: type.name,
      eventFilters: [
        "database": "(default)", "namespace": "(default)",
      ].merging(hasWildcards ? [:] : ["document": pattern]) { $1 },
      eventFilterPathPatterns: hasWildcards ? ["document": pattern] : nil
    )
  }

  /// Takes over a policy; one of defaults alone needs no configuration of its own.
  mutating func setRetry(_ policy: RetryPolicy?) {
    retry = policy?.triesAgain ?? false
    guard retry, let policy, policy != true else { return }
    retryConfig = FunctionEndpoint.RetryConfig(policy)
    retryConfig?.maxAttempts = policy.attempts
  }
}

extension FunctionEndpoint.RetryConfig {
  /// What policies of every kind have.
  init(_ policy: RetryPolicy) {
    self.init(
      maxRetrySeconds: policy.window.map { $0 / .seconds(1) },
      minBackoffSeconds: policy.minBackOff.map { $0 / .seconds(1) },
      maxBackoffSeconds: policy.maxBackOff.map { $0 / .seconds(1) },
      maxDoublings: policy.doublings
    )
  }

  /// Cloud Scheduler counts the tries after the first, and at most five of them.
  init(ofSchedule policy: RetryPolicy) {
    self.init(policy)
    retryCount = policy.attempts.map { max(0, $0 - 1) } ?? Self.scheduleRetriesMax
  }

  /// Nil where Cloud Tasks' defaults are wanted.
  init?(ofTasks policy: RetryPolicy) {
    guard policy != true else { return nil }
    self.init(policy)
    maxAttempts = policy.attempts ?? (policy.window == nil ? nil : -1)
  }

  /// Cloud Scheduler's own limit.
  static let scheduleRetriesMax = 5
}

extension FunctionEndpoint.RateLimits {
  /// Nil where Cloud Tasks' defaults are wanted.
  init?(_ limits: TaskRateLimits) {
    guard limits != TaskRateLimits() else { return nil }
    self.init(
      maxConcurrentDispatches: limits.concurrentDispatches,
      maxDispatchesPerSecond: limits.dispatchesPerSecond
    )
  }
}
