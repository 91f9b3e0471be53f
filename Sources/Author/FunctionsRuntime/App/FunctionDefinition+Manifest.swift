import Events
import Manifests

extension FunctionDefinition.Trigger {
  /// True if the platform can retry a failed run without a new request from a client.
  var canBeTriedAgain: Bool {
    switch self {
    case .callable, .typed, .http, .blocking: false
    case .document, .value, .cloudEvent, .schedule, .taskQueue: true
    }
  }

  /// True if the function's input and output types travel as JSON.
  var hasJSON: Bool {
    switch self {
    case .callable, .typed, .cloudEvent, .taskQueue: true
    case .http, .document, .value, .schedule, .blocking: false
    }
  }

  /// True if browsers may call the function from pages of other origins, provided it allows them.
  var isCalledByPages: Bool { self == .callable || self == .http }

  /// The longest timeout that Cloud Functions allows for this kind of trigger, in seconds.
  var secondsMax: Int {
    switch self {
    case .document, .value, .cloudEvent: FunctionLimits.eventSecondsMax
    case .schedule, .taskQueue: FunctionLimits.backgroundSecondsMax
    case .callable, .typed, .http: FunctionLimits.requestSecondsMax
    case .blocking: FunctionLimits.blockingSecondsMax
    }
  }
}

extension FunctionEndpoint.EventTrigger {
  /// Creates the trigger for one type of event on documents that match a pattern.
  ///
  /// A pattern with wildcards becomes an Eventarc path pattern; any other becomes an exact filter.
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

  /// Creates the trigger for one kind of change in the Realtime Database.
  ///
  /// Eventarc takes `ref` as a pattern even without wildcards.
  init(of kind: ChangeKind, instance: String, ref: String) {
    let ref = ref.split(separator: "/").joined(separator: "/")
    let isPattern = instance.contains("*")
    self.init(
      eventType: DatabaseEventType(kind).name,
      eventFilters: isPattern ? [:] : ["instance": instance],
      eventFilterPathPatterns: isPattern ? ["instance": instance, "ref": ref] : ["ref": ref]
    )
  }

  /// Applies a retry policy.
  ///
  /// A policy with default values only needs no retry configuration.
  mutating func setRetry(_ policy: RetryPolicy?) {
    retry = policy?.triesAgain ?? false
    guard retry, let policy, policy != true else { return }
    retryConfig = FunctionEndpoint.RetryConfig(policy)
    retryConfig?.maxAttempts = policy.attempts
  }
}

extension FunctionEndpoint.RetryConfig {
  /// Creates a configuration from the settings that retry policies of every kind share.
  init(_ policy: RetryPolicy) {
    self.init(
      maxRetrySeconds: policy.window.map { $0 / .seconds(1) },
      minBackoffSeconds: policy.minBackOff.map { $0 / .seconds(1) },
      maxBackoffSeconds: policy.maxBackOff.map { $0 / .seconds(1) },
      maxDoublings: policy.doublings
    )
  }

  /// Creates the retry configuration of a schedule.
  ///
  /// Cloud Scheduler counts the attempts after the first and allows at most five of them.
  init(ofSchedule policy: RetryPolicy) {
    self.init(policy)
    retryCount = policy.attempts.map { max(0, $0 - 1) } ?? FunctionLimits.scheduleRetriesMax
  }

  /// Creates the retry configuration of a task queue; nil if the defaults of Cloud Tasks apply.
  init?(ofTasks policy: RetryPolicy) {
    guard policy != true else { return nil }
    self.init(policy)
    maxAttempts = policy.attempts ?? (policy.window == nil ? nil : -1)
  }
}

extension FunctionEndpoint.RateLimits {
  /// Creates the rate limits of a task queue; nil if the defaults of Cloud Tasks apply.
  init?(_ limits: TaskRateLimits) {
    guard limits != TaskRateLimits() else { return nil }
    self.init(
      maxConcurrentDispatches: limits.concurrentDispatches,
      maxDispatchesPerSecond: limits.dispatchesPerSecond
    )
  }
}
