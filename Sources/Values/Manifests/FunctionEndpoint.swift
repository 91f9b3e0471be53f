/// One function: its options and exactly one trigger.
package struct FunctionEndpoint: Codable, Sendable, Hashable {
  package var entryPoint: String
  package var region: [String]
  package var platform: String
  /// The maximum duration of one invocation; 60 when absent.
  package var timeoutSeconds: Int?
  package var availableMemoryMb: Int?
  /// The number of invocations that one worker runs at once; 80 when absent.
  package var concurrency: Int?
  package var minInstances: Int?
  package var maxInstances: Int?
  package var secretEnvironmentVariables: [SecretVariable]?
  package var callableTrigger: CallableTrigger?
  package var httpsTrigger: HTTPSTrigger?
  package var eventTrigger: EventTrigger?
  package var scheduleTrigger: ScheduleTrigger?
  package var taskQueueTrigger: TaskQueueTrigger?
  package var blockingTrigger: BlockingTrigger?

  /// The region of a function that does not set a region; the same as Firebase's default.
  package static let defaultRegion = "us-central1"

  /// The regions in which the function can be called; never empty.
  package var regions: [String] { region.isEmpty ? [Self.defaultRegion] : region }

  /// The longest `timeoutSeconds` that Cloud Functions allows for the function's trigger.
  package var timeoutSecondsMax: Int {
    if eventTrigger != nil { return FunctionLimits.eventSecondsMax }
    if blockingTrigger != nil { return FunctionLimits.blockingSecondsMax }
    return scheduleTrigger == nil && taskQueueTrigger == nil
      ? FunctionLimits.requestSecondsMax : FunctionLimits.backgroundSecondsMax
  }

  /// Creates an endpoint on `gcfv2`; the caller sets exactly one trigger.
  package init(entryPoint: String, region: [String] = [Self.defaultRegion]) {
    self.entryPoint = entryPoint
    self.region = region
    self.platform = "gcfv2"
  }

  /// A secret, identified by the name of its environment variable.
  package struct SecretVariable: Codable, Sendable, Hashable {
    package var key: String

    package init(key: String) { self.key = key }
  }

  /// A marker for a callable.
  package struct CallableTrigger: Codable, Sendable, Hashable {
    package init() {}
  }

  /// A marker for a plain HTTP function.
  package struct HTTPSTrigger: Codable, Sendable, Hashable {
    package init() {}
  }

  /// The selection of events that a function receives.
  package struct EventTrigger: Codable, Sendable, Hashable {
    /// A CloudEvents type.
    package var eventType: String
    /// The attributes that must have the given values, such as `database` and `namespace`.
    package var eventFilters: [String: String]
    /// The attributes that must match a pattern, such as `document`: `chats/{chatId}`.
    package var eventFilterPathPatterns: [String: String]?
    /// True if a failed event is retried.
    package var retry: Bool
    /// The retry policy for failed events; Hearth's own key, which other readers ignore.
    package var retryConfig: RetryConfig?

    package init(
      eventType: String,
      eventFilters: [String: String],
      eventFilterPathPatterns: [String: String]? = nil,
      retry: Bool = false,
      retryConfig: RetryConfig? = nil
    ) {
      self.eventType = eventType
      self.eventFilters = eventFilters
      self.eventFilterPathPatterns = eventFilterPathPatterns
      self.retry = retry
      self.retryConfig = retryConfig
    }
  }

  /// The schedule of a function that runs at set times.
  package struct ScheduleTrigger: Codable, Sendable, Hashable {
    /// The schedule in the syntax of Unix cron or App Engine, as the author wrote it.
    package var schedule: String
    /// The name of a time zone in the IANA database; UTC when absent.
    package var timeZone: String?
    /// The retry policy for failed runs; without a `retryCount` there are no retries.
    package var retryConfig: RetryConfig?

    package init(schedule: String, timeZone: String? = nil, retryConfig: RetryConfig? = nil) {
      self.schedule = schedule
      self.timeZone = timeZone
      self.retryConfig = retryConfig
    }
  }

  /// A marker for a function that runs the tasks of the queue with its name.
  package struct TaskQueueTrigger: Codable, Sendable, Hashable {
    package var rateLimits: RateLimits?
    package var retryConfig: RetryConfig?

    /// Creates a queue trigger; nil members have Cloud Tasks' defaults.
    package init(rateLimits: RateLimits? = nil, retryConfig: RetryConfig? = nil) {
      self.rateLimits = rateLimits
      self.retryConfig = retryConfig
    }
  }

  /// The moment of sign-up or sign-in at which Auth asks a function and awaits its response.
  package struct BlockingTrigger: Codable, Sendable, Hashable {
    /// The type in the words of Firebase's manifest, `providers/cloud.auth/eventTypes/user.…`.
    package var eventType: String

    package init(eventType: String) { self.eventType = eventType }

    package static let beforeCreate = "providers/cloud.auth/eventTypes/user.beforeCreate"
    package static let beforeSignIn = "providers/cloud.auth/eventTypes/user.beforeSignIn"
  }

  /// The limits on the rate at which a queue dispatches its tasks.
  package struct RateLimits: Codable, Sendable, Hashable {
    /// The number of tasks that run at the same time; `concurrentTasksDefault` when absent.
    package var maxConcurrentDispatches: Int?
    /// The number of tasks that start per second; `tasksPerSecondMax` when absent.
    package var maxDispatchesPerSecond: Double?

    package init(maxConcurrentDispatches: Int? = nil, maxDispatchesPerSecond: Double? = nil) {
      self.maxConcurrentDispatches = maxConcurrentDispatches
      self.maxDispatchesPerSecond = maxDispatchesPerSecond
    }
  }

  /// The retry policy for failed work, with the manifest's names and units.
  package struct RetryConfig: Codable, Sendable, Hashable {
    /// The total number of attempts, for tasks and events; -1 for no limit.
    package var maxAttempts: Int?
    /// The number of attempts after the first, for schedules.
    package var retryCount: Int?
    /// The number of seconds after the first attempt during which retries may start.
    ///
    /// 0 or absent for no limit.
    package var maxRetrySeconds: Double?
    /// The delay before the first retry.
    package var minBackoffSeconds: Double?
    /// The longest delay between attempts.
    package var maxBackoffSeconds: Double?
    /// The number of times the delay doubles before it grows linearly.
    package var maxDoublings: Int?

    package init(
      maxAttempts: Int? = nil,
      retryCount: Int? = nil,
      maxRetrySeconds: Double? = nil,
      minBackoffSeconds: Double? = nil,
      maxBackoffSeconds: Double? = nil,
      maxDoublings: Int? = nil
    ) {
      self.maxAttempts = maxAttempts
      self.retryCount = retryCount
      self.maxRetrySeconds = maxRetrySeconds
      self.minBackoffSeconds = minBackoffSeconds
      self.maxBackoffSeconds = maxBackoffSeconds
      self.maxDoublings = maxDoublings
    }
  }
}

extension FunctionEndpoint {
  /// The default number of invocations that one worker runs at once, as in Cloud Run.
  package static let concurrencyDefault = 80
  /// The default maximum number of workers of a function.
  package static let instancesDefault = 4

  /// The number of invocations that all workers of the function together run at once.
  package var capacity: Int {
    let each = max(1, concurrency ?? Self.concurrencyDefault)
    let (product, isTooLarge) = each.multipliedReportingOverflow(by: instances)
    return isTooLarge ? .max : product
  }

  /// The maximum number of workers of the function.
  package var instances: Int { max(1, minInstances ?? 0, maxInstances ?? Self.instancesDefault) }

  /// Returns the number of invocations that may run isolated at once, each in its own worker.
  ///
  /// Isolated invocations may use all `instances` workers of the function, because the pool starts
  /// one more worker for the other invocations. The sender of isolated invocations and the pool
  /// that runs them both use this number.
  package static func isolatedMax(instances: Int) -> Int {
    min(max(1, instances), isolatedInstancesMax)
  }

  /// The most workers that a crash may cause to start, so that other functions still find a place.
  private static let isolatedInstancesMax = 8
}
