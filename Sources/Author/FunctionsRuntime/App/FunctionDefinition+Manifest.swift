import Events
import Invocation

extension FunctionDefinition.Trigger {
  /// Whether a failed run can be followed by another one without a client's request.
  var canBeTriedAgain: Bool {
    switch self {
    case .callable, .typed, .http: false
    case .document, .cloudEvent, .schedule, .taskQueue: true
    }
  }

  /// Whether the author's types travel as JSON.
  var hasJSON: Bool {
    switch self {
    case .callable, .typed, .cloudEvent, .taskQueue: true
    case .http, .document, .schedule: false
    }
  }

  /// Whether browsers may call it from pages of other origins, if the function allows that.
  var isCalledByPages: Bool { self == .callable || self == .http }

  /// The longest time-out that Cloud Functions allows.
  var secondsMax: Int {
    switch self {
    case .document, .cloudEvent: InvocationLimits.eventSecondsMax
    case .schedule, .taskQueue: InvocationLimits.backgroundSecondsMax
    case .callable, .typed, .http: InvocationLimits.requestSecondsMax
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

  /// Takes over a policy; a policy of defaults alone needs no configuration.
  mutating func setRetry(_ policy: RetryPolicy?) {
    retry = policy?.triesAgain ?? false
    guard retry, let policy, policy != true else { return }
    retryConfig = FunctionEndpoint.RetryConfig(policy)
    retryConfig?.maxAttempts = policy.attempts
  }
}

extension FunctionEndpoint.RetryConfig {
  /// The members that policies of every kind have.
  init(_ policy: RetryPolicy) {
    self.init(
      maxRetrySeconds: policy.window.map { $0 / .seconds(1) },
      minBackoffSeconds: policy.minBackOff.map { $0 / .seconds(1) },
      maxBackoffSeconds: policy.maxBackOff.map { $0 / .seconds(1) },
      maxDoublings: policy.doublings
    )
  }

  /// A schedule's policy: Cloud Scheduler counts the tries after the first, and at most five.
  init(ofSchedule policy: RetryPolicy) {
    self.init(policy)
    retryCount = policy.attempts.map { max(0, $0 - 1) } ?? InvocationLimits.scheduleRetriesMax
  }

  /// A queue's policy; nil for Cloud Tasks' defaults.
  init?(ofTasks policy: RetryPolicy) {
    guard policy != true else { return nil }
    self.init(policy)
    maxAttempts = policy.attempts ?? (policy.window == nil ? nil : -1)
  }
}

extension FunctionEndpoint.RateLimits {
  /// A queue's limits; nil for Cloud Tasks' defaults.
  init?(_ limits: TaskRateLimits) {
    guard limits != TaskRateLimits() else { return nil }
    self.init(
      maxConcurrentDispatches: limits.concurrentDispatches,
      maxDispatchesPerSecond: limits.dispatchesPerSecond
    )
  }
}
