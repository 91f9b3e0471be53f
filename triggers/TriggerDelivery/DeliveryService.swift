package import DocumentModel
package import EventLog
package import Events
package import Invocation
package import Logging
package import OutboundHTTP
import RuntimeSupport
import ServiceLifecycle
package import StorageEngine
import Synchronization

/// Gets every event, scheduled run and task to its functions, at least once.
///
/// It is made of parts over one store of deliveries: `EventExpander` turns events into deliveries,
/// `Dispatcher` starts them function by function, `DeliveryWriter` stores what becomes of them,
/// `ScheduleRunner` and `TaskDispatch` add what no document causes, `DeliveryAdministration` is for
/// people, and `ClaimKeeper` lets several such services share one store. A delivery that was running
/// when the server died or stopped is still pending in storage and runs again.
package final class DeliveryService: Service {
  /// The name of the cursor in the event log.
  package static let cursorName = "deliveries"

  /// What people ask about deliveries and do to them.
  package let administration: DeliveryAdministration
  /// The queues of tasks.
  package let tasks: TaskDispatch
  /// The runs of scheduled functions.
  package let schedules: ScheduleRunner

  private let configuration: Configuration
  private let registry = FunctionRegistry()
  private let store: DeliveryStore
  private let writer: DeliveryWriter
  private let settled: SettledRows
  private let dispatcher: Dispatcher
  private let expander: EventExpander
  private let claims: ClaimKeeper
  private let undeployed: UndeployedBacklogs
  private let beforeDeployment: EventsBeforeDeployment
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let isLoaded = Mutex(false)
  private let deployed: AsyncStream<Void>
  private let deployment: AsyncStream<Void>.Continuation

  /// A service that does nothing until it runs and knows the deployed functions.
  ///
  /// `transport` brings tasks to servers that are no functions.
  package init(
    storage: any OrderedStorage,
    tailer: EventTailer,
    invoker: any FunctionInvoker,
    transport: any HTTPTransport = OutboundClient(
      // What is sent at a time is bounded by queue.
      configuration: .init(connectionsMax: 1024)
    ),
    configuration: Configuration = Configuration(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.configuration = configuration
    self.clock = clock
    self.now = now
    store = DeliveryStore(storage: storage)
    writer = DeliveryWriter(storage: storage, logger: logger)
    settled = SettledRows(store: store, configuration: configuration, now: now, logger: logger)
    dispatcher = Dispatcher(
      registry: registry,
      store: store,
      writer: writer,
      invoker: invoker,
      taskPost: TaskPost(transport: transport),
      configuration: configuration,
      clock: clock,
      now: now,
      logger: logger
    )
    expander = EventExpander(
      registry: registry,
      store: store,
      writer: writer,
      dispatcher: dispatcher,
      tailer: tailer,
      configuration: configuration,
      now: now
    )
    claims = ClaimKeeper(
      store: store,
      writer: writer,
      dispatcher: dispatcher,
      expander: expander,
      tailer: tailer,
      clock: clock,
      now: now,
      logger: logger
    )
    schedules = ScheduleRunner(
      registry: registry,
      store: store,
      dispatcher: dispatcher,
      tailer: tailer,
      project: configuration.project,
      clock: clock,
      now: now,
      logger: logger
    )
    administration = DeliveryAdministration(
      store: store,
      writer: writer,
      dispatcher: dispatcher,
      expander: expander,
      settled: settled,
      registry: registry,
      now: now
    )
    undeployed = UndeployedBacklogs(
      storage: storage,
      dispatcher: dispatcher,
      administration: administration,
      clock: clock,
      now: now,
      logger: logger
    )
    beforeDeployment = EventsBeforeDeployment(tailer: tailer)
    tasks = TaskDispatch(
      registry: registry,
      store: store,
      dispatcher: dispatcher,
      schedules: schedules,
      administration: administration,
      configuration: configuration,
      now: now
    )
    (deployed, deployment) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    dispatcher.onSetBack = { [schedules] in schedules.clockWasSetBack() }
    dispatcher.onUndeployed = { [undeployed] in undeployed.wake() }
    dispatcher.onStored = { [settled, tasks] deliveries in
      settled.note(deliveries)
      tasks.noteEnded(deliveries)
    }
  }

  // MARK: - Deployments

  /// Makes these the deployed functions, for events expanded from now on.
  ///
  /// Nothing is expanded until the first call: earlier events wait in the event log. What waits for
  /// a function that is missing now is kept for `DeliveryPolicy.undeployedWindow` and runs if the
  /// function is deployed again until then. Returns which functions with waiting deliveries this
  /// concerns. Throws a `StatusConvertible` that names the function whose trigger makes no sense,
  /// and then changes nothing.
  @discardableResult
  package func updateFunctions(
    _ functions: [String: FunctionEndpoint]
  ) throws -> DeploymentEffects {
    let new = try FunctionRegistry.Deployment(functions)
    try ScheduleRunner.check(new, now: now())
    registry.update(new)
    let (now, keptFor) = (now(), dispatcher.keptFor)
    let effects = dispatcher.change { $0.deploy(new.limits, now: now, keptFor: keptFor) }
    schedules.functionsChanged()
    deployment.yield()
    return effects
  }

  /// Whether functions were ever deployed since the start.
  package var isDeployed: Bool { registry.current != nil }

  /// The events that wait for the first deployment since the start.
  package var eventsBeforeDeployment: Int { beforeDeployment.count }

  /// Sets whether later events reach functions; tasks and schedules always do.
  ///
  /// Events that happen while it is off are passed over for good, as by Firebase's emulators.
  /// `eventsPassedOver` counts them. Returns when all earlier events have been seen.
  package func setEnabled(_ isEnabled: Bool) async throws {
    if registry.current != nil { try await administration.waitForExpansion() }
    expander.isEnabled = isEnabled
  }

  /// The events since the start that functions wanted and that were passed over.
  package var eventsPassedOver: Int { expander.passedOver }

  /// Counts an event that another service has passed over while events do not reach functions.
  package func notePassedOver() { expander.notePassedOver() }

  /// The faults that are applied to deliveries; nil applies none.
  package var faults: FaultPlan? {
    get { dispatcher.faults }
    set { dispatcher.faults = newValue }
  }

  /// Hands an event of another service to the functions that want it; it is durable on return.
  ///
  /// This is where services with events other than documents' plug in. A service that has a commit
  /// of its own appends to the `CommitLog` in that commit instead and wakes the tailer.
  package func publish(_ events: [CloudEvent]) async throws {
    try await schedules.record(events.map { .event($0) })
  }

  // MARK: - Waiting

  /// When the next waiting delivery is due, which may be past; nil when none waits.
  package var nextDue: Timestamp? { dispatcher.read { $0.nextDue } }

  /// When the next scheduled function is due; nil when there is none.
  package var nextTick: Timestamp? { schedules.next }

  /// Looks again for due work after `now` has moved differently from `clock`.
  package func timeJumped() {
    dispatcher.timeJumped()
    schedules.timeJumped()
  }

  /// Lets time jump to `target`, stopping at each retry, task and scheduled run due until then.
  ///
  /// Each of them ends before the next one starts. Returns when nothing due by then is left;
  /// `waitUntilIdle` says what can delay this. Before the first deployment nothing is due. Throws
  /// when the calling task is cancelled, and time then stays where it has come to.
  package func passTime(to target: Timestamp, in time: VirtualTime) async throws {
    guard registry.current != nil else {
      time.advance(to: target)
      timeJumped()
      return
    }
    try await waitUntilStill()
    while let next = [nextDue, nextTick].compactMap({ $0 }).min(), next <= target {
      try Task.checkCancellation()
      time.advance(to: next)
      timeJumped()
      try await waitUntilStill()
    }
    try Task.checkCancellation()
    time.advance(to: target)
    timeJumped()
    try await waitUntilStill()
  }

  /// Returns when every event is expanded and nothing runs.
  ///
  /// Where deliveries start by themselves, nothing is then due either, or waits for a worker in
  /// place of a dead one. This is transitive: what a function writes counts too. Throws when the
  /// calling task is cancelled; waits without end before the first deployment if there are events.
  /// Paused queues are not waited for.
  package func waitUntilIdle() async throws {
    try await dispatcher.waitUntil { try await isIdle { $0.isIdle(at: $1) } }
  }

  /// Returns when nothing more happens unless time passes.
  ///
  /// Unlike `waitUntilIdle`, it does not wait for deliveries that need a worker or are held up by
  /// the rate of their function; `nextDue` tells when such a delivery can start.
  package func waitUntilStill() async throws {
    try await dispatcher.waitUntil { try await isIdle { $0.isStill(at: $1) } }
  }

  private func isIdle(
    _ suffices: @Sendable (FunctionBacklog, Timestamp) -> Bool
  ) async throws -> Bool {
    while isDispatchIdle(suffices) {
      let ended = dispatcher.endsCount
      let lastEvent = try await administration.lastEvent()
      // A function that began and ended during the read may have written after it.
      guard ended == dispatcher.endsCount else { continue }
      return lastEvent <= expander.expandedThrough && isDispatchIdle(suffices)
    }
    return false
  }

  private func isDispatchIdle(
    _ suffices: @Sendable (FunctionBacklog, Timestamp) -> Bool
  ) -> Bool {
    let now = now()
    guard registry.current == nil || isLoaded.withLock({ $0 }) && schedules.isIdle(at: now) else {
      return false
    }
    let startsByItself = configuration.startsByItself
    return dispatcher.read { dispatch in
      dispatch.allSatisfy { startsByItself ? suffices($0, now) : $0.isAtRest(at: now) }
    }
  }

  // MARK: - By hand

  /// The deliveries that `deliver(_:)` could start now, ordered by id.
  ///
  /// For a service that does not start deliveries by itself.
  package var startable: [DeliveryID] { dispatcher.read { $0.startable } }

  /// Tries a startable delivery and returns when the try has ended; false for any other id.
  package func deliver(_ id: DeliveryID) async throws -> Bool { try await dispatcher.deliver(id) }

  // MARK: - Retention

  /// Keeps, of records that the event log gives up, the events that deliveries still need.
  ///
  /// The log's retention calls it in the batch that deletes the records.
  package static func keepNeeded(
    _ records: [CommitRecord],
    in snapshot: any StorageSnapshot,
    to batch: inout StorageBatch
  ) throws {
    try DeliveryStore.keepNeeded(records, in: snapshot, to: &batch)
  }

  // MARK: - Running

  package func run() async throws {
    try await withGracefulShutdownHandler {
      do {
        // People may look at deliveries and change them before functions are deployed.
        try await cancelWhenGracefulShutdown { try await self.load() }
      } catch is CancellationError where Task.isShuttingDownGracefully {
        return
      }
      try await waitForDeployment()
      guard !Task.isShuttingDownGracefully else { return }
      try await withThrowingTaskGroup(of: Void.self) { group in
        if let beat = configuration.sharingBeat {
          group.addTask { try await self.claims.share(beat: beat) }
        }
        group.addTask { try await self.claims.expand() }
        group.addTask { try await self.schedules.run() }
        group.addTask { await self.settled.run() }
        group.addTask { await self.undeployed.run() }
        group.addTask { try await self.retryWrites() }
        group.addTask {
          await self.dispatcher.run()
          throw DispatchEnded()
        }
        defer { group.cancelAll() }
        do {
          // Only the dispatcher ends without a failure before the others.
          while try await group.next() != nil {}
        } catch is DispatchEnded {
          return
        }
      }
    } onGracefulShutdown: {
      self.deployment.finish()
      self.dispatcher.stop()
    }
  }

  private struct DispatchEnded: Error {}

  /// Returns when functions are deployed or the server stops, and counts the events until then.
  private func waitForDeployment() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        do {
          try await beforeDeployment.run(after: expander.expandedThrough)
        } catch is EventsTrimmedError {
          // Without functions to come nothing holds the log, and the count is not needed.
        }
        // The count alone ends nothing.
        try await gracefulShutdown()
      }
      group.addTask { [self] in
        for await _ in deployed { break }
      }
      try await group.next()
      group.cancelAll()
    }
  }

  /// Takes up what an earlier run left.
  private func load() async throws {
    let paused = try await TaskStore(storage: store.storage).pausedQueues()
    dispatcher.change { dispatch in
      for queue in paused { dispatch.change(queue) { $0.isPaused = true } }
    }
    try await undeployed.load()
    try await expander.readCursor()
    if configuration.sharingBeat == nil { try await claims.takeAll() }
    isLoaded.withLock { $0 = true }
    dispatcher.wake()
  }

  /// Writes again, a moment later, what the full disk has refused.
  private func retryWrites() async throws {
    for await _ in writer.stalls {
      try await clock.sleep(for: FullDisk.wait)
      writer.retry()
    }
  }
}
