package import DocumentModel
package import EventLog
package import Events
package import Invocation
package import Logging
package import Manifests
package import OutboundHTTP
import ServiceLifecycle
package import StorageEngine

/// The delivery of every event, scheduled run and task to its functions, at least once.
///
/// Several parts share one store of deliveries. `EventExpander` turns events into deliveries,
/// `Dispatcher` starts them function by function, and `DeliveryWriter` stores their outcomes.
/// `ScheduleRunner` and `TaskDispatch` add scheduled runs and tasks. `DeliveryAdministration`
/// serves developers' requests. A delivery that was running when the server crashed or stopped is
/// still pending in storage and runs again. No other service may open the store.
package final class DeliveryService: Service {
  /// The name of the cursor in the event log.
  package static let cursorName = "deliveries"

  /// The operations that inspect and change deliveries.
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
  private let undeployed: UndeployedBacklogs
  private let beforeDeployment: EventsBeforeDeployment
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let deployed: AsyncStream<Void>
  private let deployment: AsyncStream<Void>.Continuation

  /// Creates a service that does nothing until it runs and has received the deployed functions.
  ///
  /// `transport` sends tasks to servers that are not functions.
  package init(
    storage: any OrderedStorage,
    tailer: EventTailer,
    invoker: any FunctionInvoker,
    transport: any HTTPTransport = OutboundClient(
      // Each queue limits its own concurrent requests.
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
    self.logger = logger
    store = DeliveryStore(storage: storage)
    writer = DeliveryWriter(storage: storage, logger: logger)
    settled = SettledRows(store: store, configuration: configuration, now: now, logger: logger)
    dispatcher = Dispatcher(
      registry: registry,
      store: store,
      writer: writer,
      invoker: invoker,
      taskPost: TaskSender(transport: transport),
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

  /// Sets the deployed functions for events that are expanded from now on.
  ///
  /// No event is expanded until the first call; earlier events wait in the event log. Deliveries of
  /// a function that is now missing are kept for `DeliveryPolicy.undeployedWindow`. They run if the
  /// function is deployed again within that time. Returns the affected functions that have waiting
  /// deliveries. Throws a `StatusConvertible` that names a function with an invalid trigger or
  /// schedule, and then changes nothing.
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

  /// True if functions have been deployed since the start.
  package var isDeployed: Bool { registry.current != nil }

  /// The nodes of the Realtime Database that functions watch; nil before the first deployment.
  package var databasePatterns: DatabaseTriggerPatterns? {
    registry.current?.table.databasePatterns
  }

  /// The number of events that wait for the first deployment since the start.
  package var eventsBeforeDeployment: Int { beforeDeployment.count }

  /// Sets whether later events reach functions; tasks and schedules always do.
  ///
  /// Events that happen while delivery is disabled are skipped permanently, as in Firebase's
  /// emulators. `eventsSkipped` counts them. Returns once all earlier events have been expanded.
  package func setEnabled(_ isEnabled: Bool) async throws {
    if registry.current != nil { try await administration.waitForExpansion() }
    expander.isEnabled = isEnabled
  }

  /// The number of events since the start that functions wanted but that were skipped.
  package var eventsSkipped: Int { expander.skipped }

  /// Counts an event that another service has skipped while event delivery is disabled.
  package func noteSkipped() { expander.noteSkipped() }

  /// The faults that are injected into deliveries; nil for none.
  package var faults: FaultPlan? {
    get { dispatcher.faults }
    set { dispatcher.faults = newValue }
  }

  /// Publishes events of another service to the functions that want them; durable on return.
  ///
  /// Services whose events are not document events publish them here. A service that makes its own
  /// commit appends to the `CommitLog` in that commit instead, and then wakes the tailer.
  package func publish(_ events: [CloudEvent]) async throws {
    try await schedules.record(events.map { .event($0) })
  }

  // MARK: - Waiting

  /// The earliest due time of a waiting delivery, which may be past; nil if none waits.
  package var nextDue: Timestamp? { dispatcher.read { $0.nextDue } }

  /// The earliest due time of a scheduled function; nil if there is none.
  package var nextTick: Timestamp? { schedules.next }

  /// Checks for due work again after `now` has moved differently from `clock`.
  package func timeJumped() {
    dispatcher.timeJumped()
    schedules.timeJumped()
  }

  /// Advances time to `target`, stopping at each retry, task and scheduled run due by then.
  ///
  /// Each of them ends before the following one starts. Returns when no work that is due by then is
  /// left; `waitUntilIdle` describes possible delays. Before the first deployment nothing is due.
  /// If the calling task is cancelled, the function throws and leaves time at the point it has
  /// reached.
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
  /// If deliveries start automatically, it also waits until nothing is due or needs a replacement
  /// for a crashed worker. Events caused by functions' writes count too. Throws if the calling task
  /// is cancelled. Before the first deployment it waits without end if there are events. It does
  /// not wait for paused queues.
  package func waitUntilIdle() async throws {
    try await dispatcher.waitUntil { try await isIdle { $0.isIdle(at: $1) } }
  }

  /// Returns when nothing more happens until time passes.
  ///
  /// Unlike `waitUntilIdle`, it does not wait for deliveries that need a worker or are delayed by
  /// their function's rate limit. `nextDue` is the time at which such a delivery can start.
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
    let isDeployed = registry.current != nil
    guard !isDeployed || schedules.isIdle(at: now) else { return false }
    let startsByItself = configuration.startsByItself
    return dispatcher.read { dispatch in
      (!isDeployed || dispatch.isLoaded)
        && dispatch.allSatisfy { startsByItself ? suffices($0, now) : $0.isAtRest(at: now) }
    }
  }

  // MARK: - Manual delivery

  /// The deliveries that `deliver(_:)` could start now, ordered by id.
  ///
  /// For a service that does not start deliveries automatically.
  package var startable: [DeliveryID] { dispatcher.read { $0.startable } }

  /// Attempts a startable delivery and returns when the attempt has ended; false for any other id.
  package func deliver(_ id: DeliveryID) async throws -> Bool { try await dispatcher.deliver(id) }

  // MARK: - Retention

  /// Keeps the events that deliveries still need from records that the event log deletes.
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
        // Developers may inspect and change deliveries before functions are deployed.
        try await cancelWhenGracefulShutdown { try await self.load() }
      } catch is CancellationError where Task.isShuttingDownGracefully {
        return
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        // A developer's change may find the disk full before functions are deployed, too.
        group.addTask { try await self.retryWrites() }
        try await waitForDeployment()
        guard !Task.isShuttingDownGracefully else { return }
        group.addTask { try await self.expander.run() }
        group.addTask { try await self.schedules.run() }
        group.addTask { await self.settled.run() }
        group.addTask { await self.undeployed.run() }
        group.addTask {
          await self.dispatcher.run()
          throw DispatchEndedError()
        }
        do {
          // Only the dispatcher ends without a failure before the others.
          while try await group.next() != nil {}
        } catch is DispatchEndedError {
          return
        }
      }
    } onGracefulShutdown: {
      self.deployment.finish()
      self.dispatcher.stop()
    }
  }

  private struct DispatchEndedError: Error {}

  /// Returns when functions are deployed or the server stops; counts the events until then.
  private func waitForDeployment() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        do {
          try await beforeDeployment.run(after: expander.expandedThrough)
        } catch is EventsTrimmedError {
          // Without a deployment nothing keeps the log from trimming, and the count is not needed.
        }
        // The end of the count must not end the wait.
        try await gracefulShutdown()
      }
      group.addTask { [self] in
        for await _ in deployed { break }
      }
      try await group.next()
      group.cancelAll()
    }
  }

  /// Loads the state that an earlier run left in storage.
  private func load() async throws {
    let paused = try await TaskStore(storage: store.storage).pausedQueues()
    dispatcher.change { dispatch in
      for queue in paused { dispatch.change(queue) { $0.isPaused = true } }
    }
    try await undeployed.load()
    try await expander.readCursor()
    let summaries = try await store.summaries()
    dispatcher.resume(summaries)
    let count = summaries.values.reduce(0) { $0 + $1.count }
    guard count > 0 else { return }
    logger.notice(
      "Resuming deliveries of an earlier run",
      metadata: ["delivery.count": "\(count)"]
    )
  }

  /// Retries, after a pause, the writes that failed because the disk was full.
  private func retryWrites() async throws {
    defer { writer.stop() }
    for await _ in writer.stalls {
      try await clock.sleep(for: FullDisk.wait)
      writer.retry()
    }
  }
}
