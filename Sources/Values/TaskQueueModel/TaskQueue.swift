package import Manifests

/// A queue of tasks for one function.
package struct TaskQueue: Sendable, Hashable {
  /// The function's name.
  package var id: String
  /// The regions of the function; never empty.
  package var locations: [String]
  package var isPaused: Bool
  /// The limits that the function declares; nil members have Cloud Tasks' defaults.
  package var rateLimits: FunctionEndpoint.RateLimits
  package var retryConfig: FunctionEndpoint.RetryConfig

  /// Creates a queue from its function's declaration.
  package init(
    id: String,
    locations: [String],
    isPaused: Bool = false,
    rateLimits: FunctionEndpoint.RateLimits = .init(),
    retryConfig: FunctionEndpoint.RetryConfig = .init()
  ) {
    self.id = id
    self.locations = locations
    self.isPaused = isPaused
    self.rateLimits = rateLimits
    self.retryConfig = retryConfig
  }
}

/// The load of a queue.
package struct TaskQueueStatistics: Sendable, Hashable, Codable {
  /// The number of pending tasks, including those in progress.
  package var tasksCount: Int
  /// The number of attempts in progress.
  package var concurrentDispatchesCount: Int
  /// The number of attempts that ended in the last minute.
  package var executedLastMinuteCount: Int

  package init(tasksCount: Int, concurrentDispatchesCount: Int, executedLastMinuteCount: Int) {
    self.tasksCount = tasksCount
    self.concurrentDispatchesCount = concurrentDispatchesCount
    self.executedLastMinuteCount = executedLastMinuteCount
  }
}
