package import DocumentModel
package import EventLog
import Events
import FirestoreWire
import HTTPTypes
package import Invocation
package import Logging
import NIOCore
import RuntimeSupport
import ServiceLifecycle
package import StorageEngine
import TriggerMatching

/// Gets every event to every function that wants it, at least once.
///
/// Follows the event log from its own durable cursor. Expansion turns a commit into deliveries:
/// their rows and the advanced cursor are one batch, so it happens once. Each delivery is then
/// tried until it settles; its outcome is stored. A delivery that was running when the server
/// died or stopped is still pending in storage and runs again.
package actor DeliveryService: Service {
  /// Bounds and names of the service.
  package struct Configuration: Sendable {
    /// The region that events name as theirs.
    package var location: String
    package var policy: DeliveryPolicy
    /// Pending deliveries in storage beyond which the event log is not expanded further; the
    /// cursor then holds, and the log's own cap makes writers wait for the functions.
    package var pendingMax: Int
    /// Deliveries in memory; the other pending ones stay in storage until there is room.
    package var heldMax: Int
    /// What those in memory may take; each may have two megabytes.
    package var heldBytesMax: Int
    /// Settled deliveries kept for `events list`.
    package var settledKept: Int
    /// How long running handlers may go on when the server stops.
    package var stopGrace: Duration
    /// Whether due deliveries start by themselves; else each waits for `deliver(_:)`.
    package var startsByItself: Bool

    /// The defaults of the suite.
    package init(
      location: String = "us-central1",
      policy: DeliveryPolicy = DeliveryPolicy(),
      pendingMax: Int = 100_000,
      heldMax: Int = 4096,
      heldBytesMax: Int = 64 << 20,
      settledKept: Int = 10_000,
      stopGrace: Duration = .milliseconds(1500),
      startsByItself: Bool = true
    ) {
      self.location = location
      self.policy = policy
      self.pendingMax = pendingMax
      self.heldMax = heldMax
      self.heldBytesMax = heldBytesMax
      self.settledKept = settledKept
      self.stopGrace = stopGrace
      self.startsByItself = startsByItself
    }
  }

  /// The name of the cursor in the event log.
  package static let cursorName = "deliveries"

  private let storage: any StorageEngine
  private let store: DeliveryStore
  private let tailer: EventTailer
  private let invoker: any FunctionInvoker
  private let configuration: Configuration
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let request: DeliveryRequest

  private var functions: [String: FunctionEndpoint]?
  private var table: TriggerTable?
  private var schedule: DeliverySchedule
  /// Those that somebody is making pending again.
  private var renewing: Set<DeliveryID> = []
  private var expandedThrough: UInt64 = 0
  /// The rows of pending deliveries; after a start a few off until all of them are held.
  private var pendingCount = 0
  private var settledSinceTrim = 0
  /// Counts tries that ended, so that one can tell whether any did meanwhile.
  private var triesEnded: UInt64 = 0
  /// The times that a sleeper of the run will look again at.
  private var armed: Set<Timestamp> = []
  private var isStopping = false
  private var idleWaiters: [CheckedContinuation<Void, Never>] = []
  private let wakeups: AsyncStream<Void>
  private let wakeup: AsyncStream<Void>.Continuation
  private let deployed: AsyncStream<Void>
  private let deployment: AsyncStream<Void>.Continuation

  /// A service that does nothing until it runs and knows the deployed functions.
  package init(
    storage: any StorageEngine,
    tailer: EventTailer,
    invoker: any FunctionInvoker,
    configuration: Configuration = Configuration(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.storage = storage
    self.store = DeliveryStore(storage: storage)
    self.tailer = tailer
    self.invoker = invoker
    self.configuration = configuration
    self.clock = clock
    self.now = now
    self.logger = logger
    self.request = DeliveryRequest(location: configuration.location)
    self.schedule = DeliverySchedule(
      heldMax: configuration.heldMax,
      heldBytesMax: configuration.heldBytesMax
    )
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    (deployed, deployment) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  // MARK: - Deployments

  /// Makes these the deployed functions, for events expanded from now on.
  ///
  /// Until the first call nothing is expanded: what was written before waits in the event log.
  /// Throws a `StatusConvertible` naming the function whose trigger makes no sense, and then
  /// changes nothing.
  package func updateFunctions(_ functions: [String: FunctionEndpoint]) throws {
    table = try TriggerTable(functions: functions)
    self.functions = functions
    deployment.yield()
    wakeup.yield()
  }

  // MARK: - What people ask for

  /// The newest deliveries first; nil for any state or function.
  package func list(
    state: Delivery.State? = nil,
    isRunning: Bool? = nil,
    function: String? = nil,
    limit: Int = 50
  ) async throws -> [Delivery] {
    let running = schedule.runningIDs
    return try await store.list(limit: limit, scanMax: Self.listScanMax) { delivery in
      (state == nil || delivery.state == state)
        && (isRunning == nil || running.contains(delivery.id) == isRunning)
        && (function == nil || delivery.id.function == function)
    }
  }

  /// One delivery; `NOT_FOUND` when there is none of this id.
  package func show(_ id: DeliveryID) async throws -> Delivery {
    guard let delivery = try await store.delivery(id) else {
      throw StatusError(
        .notFound,
        "No event \(id) is known; `hearth events list` shows those that are."
      )
    }
    return delivery
  }

  /// Whether the delivery runs at this moment.
  package func isRunning(_ id: DeliveryID) -> Bool { schedule.isRunning(id) }

  /// Makes a failed or dead delivery pending again, with its attempts counted anew.
  ///
  /// Throws `FAILED_PRECONDITION` for a delivery in another state, and for one that somebody else
  /// makes pending at this moment.
  package func retry(_ id: DeliveryID) async throws -> Delivery {
    try await renew(id) { old in
      guard old.state == .failed || old.state == .dead else {
        throw StatusError(
          .failedPrecondition,
          "Event \(id) is \(old.state.rawValue); only failed and dead events "
            + "can be retried."
        )
      }
    }
  }

  /// Makes a delivery that has settled, however it did, pending again, with its attempts counted
  /// anew: what happens when the word of its end is lost.
  ///
  /// Throws `FAILED_PRECONDITION` for a delivery that is pending, and for one that somebody else
  /// makes pending at this moment.
  package func redeliver(_ id: DeliveryID) async throws -> Delivery {
    try await renew(id) { old in
      guard old.state.isSettled else {
        throw StatusError(
          .failedPrecondition,
          "Event \(id) is still pending; only one that has settled can be delivered again."
        )
      }
    }
  }

  private func renew(
    _ id: DeliveryID,
    checking check: (Delivery) throws -> Void
  ) async throws -> Delivery {
    guard renewing.insert(id).inserted else {
      throw StatusError(.failedPrecondition, "Event \(id) is being retried already.")
    }
    defer { renewing.remove(id) }
    let old = try await show(id)
    try check(old)
    // Its end is stored, but the try is not over before the schedule knows of it.
    while schedule.isRunning(id) {
      try Task.checkCancellation()
      await waitForProgress()
    }
    var new = old
    new.state = .pending
    new.attempts = 0
    new.crashes = 0
    new.settledTime = nil
    new.dueTime = now()
    let stored = try await store.update(from: old, to: new)
    schedule.add(new, bytes: stored.bytes, now: now())
    notePending(1)
    wakeup.yield()
    return new
  }

  /// When the next delivery that waits for its time is due, which may be past; nil when none waits.
  package var nextDue: Timestamp? { schedule.nextDue }

  /// Looks again for what is due: `now` has moved in another way than `clock` passes.
  package func timeJumped() {
    armed = []
    wakeup.yield()
  }

  /// The deliveries that `deliver(_:)` could start now, in the order of their ids; for a service
  /// that does not start them by itself.
  package func startable() -> [Delivery] { schedule.startable(now: now()) }

  /// Tries one of the startable deliveries and returns when the try has ended; false when there is
  /// none of that id.
  package func deliver(_ id: DeliveryID) async -> Bool {
    guard let delivery = schedule.start(id, now: now()) else { return false }
    await attempt(delivery)
    return true
  }

  /// Returns when every event is expanded and nothing runs or, where deliveries start by
  /// themselves, is due now.
  ///
  /// Transitive: what a function writes counts too. Returns early when the calling task is
  /// cancelled; waits without end before the first deployment if there are events.
  package func waitUntilIdle() async throws {
    while try await !isIdle() {
      try Task.checkCancellation()
      await waitForProgress()
    }
  }

  // MARK: - Running

  package func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      try await withGracefulShutdownHandler {
        for await _ in deployed { break }
        guard !isStopping else { return }
        try await load()
        group.addTask {
          do {
            try await self.expand()
          } catch is CancellationError {
            // The run ends, and with it the expansion.
          } catch {
            // Without expansion no event goes anywhere: the run ends and throws.
            self.wakeup.finish()
            throw error
          }
        }
        for await _ in wakeups {
          if isStopping { break }
          // One time for all, so that what becomes due meanwhile is neither started nor forgotten.
          let now = now()
          try await refill(now: now)
          if configuration.startsByItself {
            for delivery in schedule.start(now: now) {
              group.addTask { await self.attempt(delivery) }
            }
          }
          armTimer(after: now, in: &group)
          resumeIdleWaiters()
        }
        try await finishRunning()
      } onGracefulShutdown: {
        // Owned by the service's run; ends after one hop to the actor.
        Task { await self.stop() }
      }
      group.cancelAll()
    }
  }

  private func stop() {
    isStopping = true
    deployment.finish()
    wakeup.yield()
    resumeIdleWaiters()
  }

  /// Lets running handlers finish within the grace; the caller then cancels what is left.
  private func finishRunning() async throws {
    let clock = self.clock
    let grace = configuration.stopGrace
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        // A cancelled sleep ends the grace early, which is all that cancellation asks for.
        try? await clock.sleep(for: grace)
      }
      group.addTask { await self.waitUntilNothingRuns() }
      await group.next()
      group.cancelAll()
      resumeIdleWaiters()
    }
  }

  private func waitUntilNothingRuns() async {
    while !schedule.runningIDs.isEmpty, !Task.isCancelled {
      await withCheckedContinuation { idleWaiters.append($0) }
    }
  }

  private func load() async throws {
    expandedThrough =
      try await storage.read { try EventCursor.get(Self.cursorName, in: $0) } ?? 0
    // What an earlier run left is in storage, and some of it may be due.
    schedule.leftInStorage(due: now())
    wakeup.yield()
  }

  private func refill(now: Timestamp) async throws {
    guard schedule.wantsRefill(at: now) else { return }
    schedule.beginRefill(now: now)
    let (read, nextDue) = try await store.pending(
      limit: schedule.heldMax,
      bytesMax: schedule.heldBytesMax
    )
    // What is being expanded or renewed now is added by those who do.
    let known = read.filter { delivery, _ in
      delivery.id.sequence <= expandedThrough && !renewing.contains(delivery.id)
    }
    schedule.endRefill(known, nextDue: nextDue, now: self.now())
    notePending(0)
  }

  /// Keeps the count of pending deliveries after the schedule has changed.
  private func notePending(_ change: Int) {
    pendingCount = schedule.holdsAll ? schedule.heldCount : max(0, pendingCount + change)
  }

  /// Counts what an earlier run left, while it is being delivered: only expansion asks.
  private func countPending() async throws {
    pendingCount = try await store.pendingCount()
    if pendingCount > 0 {
      logger.notice(
        "Resuming deliveries of an earlier run",
        metadata: ["delivery.count": "\(pendingCount)"]
      )
    }
    notePending(0)
  }

  private func expand() async throws {
    try await countPending()
    var unsaved = 0
    for try await records in tailer.records(after: expandedThrough) {
      while pendingCount >= configuration.pendingMax {
        try Task.checkCancellation()
        if isStopping { return }
        await waitForProgress()
      }
      guard let table, let last = records.last else { continue }
      let deliveries = records.flatMap { expand($0, with: table) }
      unsaved += records.count
      var stored: [DeliveryStore.Stored] = []
      if !deliveries.isEmpty || unsaved >= Self.cursorLagMax {
        var batch = WriteBatch()
        stored = DeliveryStore.insert(deliveries, into: &batch)
        EventCursor.put(Self.cursorName, sequence: last.sequence, in: &batch)
        try await storage.commit(batch, durability: .relaxed)
        unsaved = 0
      }
      for (delivery, bytes) in stored { schedule.add(delivery, bytes: bytes, now: now()) }
      notePending(stored.count)
      expandedThrough = last.sequence
      wakeup.yield()
    }
  }

  private func expand(_ record: CommitRecord, with table: TriggerTable) -> [Delivery] {
    record.changes.enumerated().flatMap { index, change in
      table.matches(change).map { trigger in
        Delivery(
          id: DeliveryID(
            sequence: record.sequence,
            changeIndex: UInt32(index),
            function: trigger.function
          ),
          change: change,
          kind: trigger.kind,
          commitTime: record.commitTime,
          auth: record.auth,
          retries: trigger.retries
        )
      }
    }
  }

  private func armTimer(
    after now: Timestamp,
    in group: inout ThrowingDiscardingTaskGroup<any Error>
  ) {
    guard let due = schedule.nextLook(after: now), armed.allSatisfy({ due < $0 }) else { return }
    armed.insert(due)
    let wait = due.duration(since: self.now())
    let clock = self.clock
    group.addTask {
      do {
        try await clock.sleep(for: max(wait, .milliseconds(1)))
        await self.timerFired(due)
      } catch {
        // Cancelled: the run ends.
      }
    }
  }

  private func timerFired(_ due: Timestamp) {
    armed.remove(due)
    wakeup.yield()
  }

  private func attempt(_ delivery: Delivery) async {
    let outcome = await invoke(delivery)
    let settled =
      outcome.map { configuration.policy.settle(delivery, $0, now: now()) } ?? delivery
    if outcome != nil {
      do {
        try await store.update(from: delivery, to: settled)
      } catch {
        // The row still says pending: once it is read again the delivery runs again.
        logger.error(
          "A delivery's outcome could not be stored",
          metadata: ["delivery.id": "\(delivery.id)", "error": "\(error)"]
        )
      }
    }
    log(settled, outcome)
    schedule.finish(settled, now: now())
    triesEnded &+= 1
    if settled.state.isSettled {
      notePending(-1)
      settledSinceTrim += 1
    }
    wakeup.yield()
    resumeIdleWaiters()
    await trimIfDue()
  }

  /// Runs the handler once; nil when the server stops meanwhile and nothing is to be counted.
  private func invoke(_ delivery: Delivery) async -> DeliveryPolicy.Outcome? {
    guard functions?[delivery.id.function] != nil else { return .functionGone }
    do {
      let invocation = try request.invocation(for: delivery, id: RandomID.make())
      let reply = try await invoker.invoke(invocation)
      let body = try await reply.body.collect(upTo: Self.replyBytesMax)
      guard reply.head.status.kind != .successful else { return .succeeded }
      let advice = reply.head.headerFields[RetryAdvice.header].flatMap(RetryAdvice.init)
      let text = String(buffer: body).prefix(Self.errorCharactersMax)
      return .handlerFailed(
        "The handler answered \(reply.head.status.code)\(text.isEmpty ? "." : ": \(text)")",
        advice: advice
      )
    } catch let error as InvocationError {
      switch error.kind {
      case .notFound: return .functionGone
      case .timedOut: return .handlerFailed(error.message, advice: nil)
      case .crashed: return .crashed(error.message)
      case .overloaded, .cannotStart: return .deferred(error.message)
      case .drained: return isStopping ? nil : .deferred(error.message)
      case .failed: return .handlerFailed(error.message, advice: nil)
      }
    } catch is CancellationError {
      return nil
    } catch {
      return .handlerFailed("\(error)", advice: .never)
    }
  }

  private func log(_ delivery: Delivery, _ outcome: DeliveryPolicy.Outcome?) {
    var metadata: Logger.Metadata = [
      "delivery.id": "\(delivery.id)", "function.name": "\(delivery.id.function)",
      "document": "\(delivery.change.name.path)", "attempt": "\(delivery.attempts)",
    ]
    if let error = delivery.lastError { metadata["error"] = "\(error)" }
    switch (outcome, delivery.state) {
    case (nil, _): logger.info("Delivery returned unfinished", metadata: metadata)
    case (_, .succeeded): logger.debug("Delivery succeeded", metadata: metadata)
    case (_, .pending): logger.warning("Delivery will be tried again", metadata: metadata)
    case (_, .failed): logger.error("Delivery failed", metadata: metadata)
    case (_, .dead): logger.error("Delivery is dead", metadata: metadata)
    }
  }

  private func trimIfDue() async {
    guard settledSinceTrim >= Self.trimEvery else { return }
    settledSinceTrim = 0
    do {
      try await store.trim(keep: configuration.settledKept, batchMax: Self.trimEvery * 2)
    } catch {
      logger.warning("Settled deliveries could not be trimmed", metadata: ["error": "\(error)"])
    }
  }

  private func isIdle() async throws -> Bool {
    while isScheduleIdle {
      let ended = triesEnded
      let lastEvent = try await storage.read { try EventLog.lastSequence(in: $0) }
      // A function that began and ended during the read may have written after it.
      guard ended == triesEnded else { continue }
      return lastEvent <= expandedThrough && isScheduleIdle
    }
    return false
  }

  private var isScheduleIdle: Bool {
    configuration.startsByItself ? schedule.isIdle(at: now()) : schedule.isAtRest(at: now())
  }

  /// Returns at the next progress of any kind, and when the task is cancelled.
  private func waitForProgress() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        idleWaiters.append(continuation)
      }
    } onCancel: {
      // Owned by the waiter that is being cancelled; ends after one hop to the actor.
      Task { await self.resumeIdleWaiters() }
    }
  }

  private func resumeIdleWaiters() {
    let waiters = idleWaiters
    idleWaiters = []
    for waiter in waiters { waiter.resume() }
  }

  /// A list looks at no more rows than this.
  private static let listScanMax = 100_000
  /// Event records that may be expanded again after a crash because none of them mattered.
  private static let cursorLagMax = 256
  /// The reply of an event handler is only read for its error text.
  private static let replyBytesMax = 1 << 20
  private static let errorCharactersMax = 500
  private static let trimEvery = 1000
}
