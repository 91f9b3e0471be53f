extension DeliveryService {
  /// The limits and names of the service.
  package struct Configuration: Sendable {
    package var project: String
    /// The region that events name as their location.
    package var location: String
    package var policy: DeliveryPolicy
    package var loopCheck: LoopCheck
    /// The maximum number of pending deliveries of one function; further events are dead at once.
    package var pendingMax: Int
    /// The maximum number of waiting tasks in one queue; further tasks are refused.
    package var tasksMax: Int
    /// The target memory size of the events in all functions' windows, in bytes.
    ///
    /// It may be exceeded, because a single event may have two megabytes.
    package var heldBytesMax: Int
    /// The number of succeeded deliveries that are kept for `events list`.
    ///
    /// It is also the number of failed and dead deliveries kept for each function.
    package var settledKept: Int
    /// The maximum size of the events kept for one function's failed and dead deliveries, in bytes.
    ///
    /// They are kept for retries. All functions together have eight times this size, and eight
    /// times the number in `settledKept`. The default holds about thirty of the largest events, or
    /// thousands of typical events.
    package var failedBytesMax: Int
    /// The time that running handlers have to finish when the server stops.
    package var stopGrace: Duration
    /// True if due deliveries start automatically; otherwise each waits for `deliver(_:)`.
    package var startsByItself: Bool
    /// True if a function receives the events of one document one after the other.
    ///
    /// Production does not guarantee this order.
    package var isOrdered: Bool
    /// The time for which the name of an ended task stays reserved.
    package var taskNameKept: Duration

    /// Creates a configuration with the suite's defaults.
    package init(
      project: String = "demo-project",
      location: String = "us-central1",
      policy: DeliveryPolicy = DeliveryPolicy(),
      loopCheck: LoopCheck = LoopCheck(),
      pendingMax: Int = 2_000_000,
      tasksMax: Int = 1_000_000,
      heldBytesMax: Int = 64 << 20,
      settledKept: Int = 10_000,
      failedBytesMax: Int = 64 << 20,
      stopGrace: Duration = .milliseconds(1500),
      startsByItself: Bool = true,
      isOrdered: Bool = true,
      taskNameKept: Duration = .seconds(3600)
    ) {
      self.project = project
      self.location = location
      self.policy = policy
      self.loopCheck = loopCheck
      self.pendingMax = pendingMax
      self.tasksMax = tasksMax
      self.heldBytesMax = heldBytesMax
      self.settledKept = settledKept
      self.failedBytesMax = failedBytesMax
      self.stopGrace = stopGrace
      self.startsByItself = startsByItself
      self.isOrdered = isOrdered
      self.taskNameKept = taskNameKept
    }
  }
}
