/// What a functions binary offers, as the JSON of Firebase's `functions.yaml` (`v1alpha1`).
///
/// A worker prints it on request (`FUNCTIONS_MANIFEST_OUTPUT_PATH`, `GET /__/functions.yaml`); the
/// deployment validates it, the gateway and the triggers read it.
package struct FunctionManifest: Codable, Sendable, Hashable {
  package var specVersion: String
  /// Endpoints by the function's name.
  package var endpoints: [String: FunctionEndpoint]

  /// A manifest of the current version.
  package init(endpoints: [String: FunctionEndpoint]) {
    self.specVersion = "v1alpha1"
    self.endpoints = endpoints
  }
}

extension FunctionEndpoint {
  /// Invocations that one worker runs at once unless the function says otherwise, as in Cloud Run.
  package static let concurrencyDefault = 80
  /// Workers of a function that does not set their number.
  package static let instancesDefault = 4

  /// Invocations that all workers of the function together run at once.
  package var capacity: Int {
    let each = max(1, concurrency ?? Self.concurrencyDefault)
    let (product, isTooLarge) = each.multipliedReportingOverflow(by: instances)
    return isTooLarge ? .max : product
  }

  /// Workers that the function may have.
  package var instances: Int { max(1, minInstances ?? 0, maxInstances ?? Self.instancesDefault) }

  /// Invocations that run apart at one time, each in a worker for itself, of a function with so
  /// many workers.
  ///
  /// They may have all of its workers, because the pool starts one more for the others meanwhile.
  /// The sender of such invocations and the pool that runs them both go by this number.
  package static func apartMax(instances: Int) -> Int { min(max(1, instances), apartInstancesMax) }

  /// Workers that may have to start for one crash, so that other functions' still find a place.
  private static let apartInstancesMax = 8
}

/// One function: its options and exactly one trigger.
package struct FunctionEndpoint: Codable, Sendable, Hashable {
  package var entryPoint: String
  package var region: [String]
  package var platform: String
  /// Total time of one invocation; 60 when absent.
  package var timeoutSeconds: Int?
  package var availableMemoryMb: Int?
  /// Invocations that one worker runs at once; 80 when absent.
  package var concurrency: Int?
  package var minInstances: Int?
  package var maxInstances: Int?
  package var secretEnvironmentVariables: [SecretVariable]?
  package var callableTrigger: CallableTrigger?
  package var httpsTrigger: HTTPSTrigger?
  package var eventTrigger: EventTrigger?
  package var scheduleTrigger: ScheduleTrigger?
  package var taskQueueTrigger: TaskQueueTrigger?

  /// The region of a function that does not set one; Firebase's own default.
  package static let defaultRegion = "us-central1"

  /// The regions in which the function is called, at least one.
  package var regions: [String] { region.isEmpty ? [Self.defaultRegion] : region }

  /// The longest `timeoutSeconds` that Cloud Functions allows for the trigger.
  package var timeoutSecondsMax: Int {
    if eventTrigger != nil { return InvocationLimits.eventSecondsMax }
    return scheduleTrigger == nil && taskQueueTrigger == nil
      ? InvocationLimits.requestSecondsMax : InvocationLimits.backgroundSecondsMax
  }

  /// An endpoint on `gcfv2`; the caller sets one trigger.
  package init(entryPoint: String, region: [String] = [Self.defaultRegion]) {
    self.entryPoint = entryPoint
    self.region = region
    self.platform = "gcfv2"
  }

  /// A secret by the name of its environment variable.
  package struct SecretVariable: Codable, Sendable, Hashable {
    package var key: String

    /// A secret that the function may read.
    package init(key: String) { self.key = key }
  }

  /// Marks a callable.
  package struct CallableTrigger: Codable, Sendable, Hashable {
    /// A callable without options.
    package init() {}
  }

  /// Marks a plain HTTP function.
  package struct HTTPSTrigger: Codable, Sendable, Hashable {
    /// An HTTP function without options.
    package init() {}
  }

  /// Which events a function receives.
  package struct EventTrigger: Codable, Sendable, Hashable {
    /// A CloudEvents type.
    package var eventType: String
    /// Attributes that must be equal, such as `database` and `namespace`.
    package var eventFilters: [String: String]
    /// Attributes that must match a pattern, such as `document`: `chats/{chatId}`.
    package var eventFilterPathPatterns: [String: String]?
    /// Whether a failing handler is tried again.
    package var retry: Bool
    /// How a failing handler is tried again; Hearth's own key, which other readers ignore.
    package var retryConfig: RetryConfig?

    /// A trigger for one event type.
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

  /// When a function runs by the clock.
  package struct ScheduleTrigger: Codable, Sendable, Hashable {
    /// The schedule in unix cron's or App Engine's syntax, as the author wrote it.
    package var schedule: String
    /// A time zone's name in the IANA database; UTC when absent.
    package var timeZone: String?
    /// How failed runs are tried again; `retryCount` counts the retries, none when absent.
    package var retryConfig: RetryConfig?

    /// A schedule.
    package init(schedule: String, timeZone: String? = nil, retryConfig: RetryConfig? = nil) {
      self.schedule = schedule
      self.timeZone = timeZone
      self.retryConfig = retryConfig
    }
  }

  /// Marks a function that runs the tasks of the queue of its name.
  package struct TaskQueueTrigger: Codable, Sendable, Hashable {
    package var rateLimits: RateLimits?
    package var retryConfig: RetryConfig?

    /// A queue; nil members have Cloud Tasks' defaults.
    package init(rateLimits: RateLimits? = nil, retryConfig: RetryConfig? = nil) {
      self.rateLimits = rateLimits
      self.retryConfig = retryConfig
    }
  }

  /// How fast a queue hands out its tasks.
  package struct RateLimits: Codable, Sendable, Hashable {
    /// Tasks that run at the same time; 1000 when absent.
    package var maxConcurrentDispatches: Int?
    /// Tasks that start in a second; 500 when absent.
    package var maxDispatchesPerSecond: Double?

    /// Limits, each optional.
    package init(maxConcurrentDispatches: Int? = nil, maxDispatchesPerSecond: Double? = nil) {
      self.maxConcurrentDispatches = maxConcurrentDispatches
      self.maxDispatchesPerSecond = maxDispatchesPerSecond
    }
  }

  /// When failed work is tried again; the names and units are the manifest's.
  package struct RetryConfig: Codable, Sendable, Hashable {
    /// Tries in all, for tasks and events; -1 for no bound.
    package var maxAttempts: Int?
    /// Tries after the first, for schedules.
    package var retryCount: Int?
    /// The seconds since the first try after which there is no further try; 0 or absent for no
    /// bound.
    package var maxRetrySeconds: Double?
    /// The first wait.
    package var minBackoffSeconds: Double?
    /// The longest wait.
    package var maxBackoffSeconds: Double?
    /// How often the wait doubles before it grows linearly.
    package var maxDoublings: Int?

    /// A configuration whose members are all optional.
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
