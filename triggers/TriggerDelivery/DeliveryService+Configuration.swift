extension DeliveryService {
  /// Bounds and names of the service.
  package struct Configuration: Sendable {
    package var project: String
    /// The region that events name as their location.
    package var location: String
    package var policy: DeliveryPolicy
    package var loopCheck: LoopCheck
    /// The pending events beyond which the event log is not expanded further.
    ///
    /// The cursor then holds, and the log's own cap makes writers wait for the functions.
    package var pendingMax: Int
    /// Waiting tasks of all queues together; further ones are refused.
    package var tasksMax: Int
    /// The most memory that deliveries may take; each may have two megabytes.
    package var heldBytesMax: Int
    /// Settled deliveries kept for `events list`.
    package var settledKept: Int
    /// How long running handlers may go on when the server stops.
    package var stopGrace: Duration
    /// Whether due deliveries start by themselves; otherwise each waits for `deliver(_:)`.
    package var startsByItself: Bool
    /// Whether a function gets the events of one document one after the other.
    ///
    /// Production does not promise this order.
    package var isOrdered: Bool
    /// How long the name of an ended task stays taken.
    package var taskNameKept: Duration

    /// The defaults of the suite.
    package init(
      project: String = "demo-project",
      location: String = "us-central1",
      policy: DeliveryPolicy = DeliveryPolicy(),
      loopCheck: LoopCheck = LoopCheck(),
      pendingMax: Int = 100_000,
      tasksMax: Int = 100_000,
      heldBytesMax: Int = 64 << 20,
      settledKept: Int = 10_000,
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
      self.stopGrace = stopGrace
      self.startsByItself = startsByItself
      self.isOrdered = isOrdered
      self.taskNameKept = taskNameKept
    }
  }
}
