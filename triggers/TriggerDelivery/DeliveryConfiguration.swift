extension DeliveryService {
  /// Bounds and names of the service.
  package struct Configuration: Sendable {
    package var project: String
    /// The region that events name as their location.
    package var location: String
    package var policy: DeliveryPolicy
    package var loopCheck: LoopCheck
    /// Pending deliveries of one function; further events are dead for it at once.
    package var pendingMax: Int
    /// Waiting tasks of one queue; further ones are refused.
    package var tasksMax: Int
    /// The memory that the events of all functions' windows should take; each may have two
    /// megabytes.
    package var heldBytesMax: Int
    /// Succeeded deliveries kept for `events list`, and as many failed and dead ones of each
    /// function.
    package var settledKept: Int
    /// Bytes of events kept for the failed and dead deliveries of one function, which people retry.
    ///
    /// All functions together have eight times as much, and the same of their number; the default
    /// is some thirty of the largest events, or thousands of usual ones.
    package var failedBytesMax: Int
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
    /// The time between two signs of life, for several services that share one store.
    ///
    /// Nil for a service whose store nobody else can have; it then takes all deliveries at once.
    package var sharingBeat: Duration?

    /// The defaults of the suite.
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
      taskNameKept: Duration = .seconds(3600),
      sharingBeat: Duration? = nil
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
      self.sharingBeat = sharingBeat
    }
  }
}
