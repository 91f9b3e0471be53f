import DequeModule
package import DocumentModel
package import EventLog
import Events
import HTTPTypes
package import Invocation
package import Logging
import NIOCore
import RuntimeSupport
import ServiceLifecycle
package import StorageEngine

/// Gets every event, scheduled run and task to its functions, at least once.
///
/// Follows the event log from its own durable cursor. Expansion turns a commit into deliveries:
/// their rows and the advanced cursor are one batch, so it happens once. Each delivery is then
/// tried until it settles; its outcome is stored. A delivery that was running when the server
/// died or stopped is still pending in storage and runs again.
package actor DeliveryService: Service {
  /// The name of the cursor in the event log.
  package static let cursorName = "deliveries"

  let storage: any OrderedStorage
  let store: DeliveryStore
  let tasks: TaskStore
  let tailer: EventTailer
  let configuration: Configuration
  let now: @Sendable () -> Timestamp
  let logger: Logger
  private let invoker: any FunctionInvoker
  private let clock: any Clock<Duration>
  private let request: DeliveryRequest

  var functions: [String: FunctionEndpoint]?
  var schedule: DeliverySchedule
  var book = ScheduleBook()
  /// Set when the book must be made anew for the deployed functions.
  var isBookOld = false
  var table: TriggerTable?
  /// The deliveries that somebody is making pending again.
  var renewing: Set<DeliveryID> = []
  /// The deliveries that somebody wants to run whatever holds them up.
  var forced: Set<DeliveryID> = []
  /// When the tries of each queue's tasks ended, for the last minute.
  var tasksEnded: [String: Deque<Timestamp>] = [:]
  /// The deliveries not to be tried again once their present try has ended.
  var discarding: Set<DeliveryID> = []
  /// Whether events become deliveries; see `setEnabled`.
  var isEnabled = true
  /// The faults applied on purpose; nil applies none.
  var faults: FaultPlan?
  /// The deliveries that the fault mode has dropped once or has sent once more.
  private var dropped: Set<DeliveryID> = []
  private var repeated: Set<DeliveryID> = []
  var expandedThrough: UInt64 = 0
  private var settledSinceTrim = 0
  /// How many settled rows are kept; nil before they were counted.
  var settledCount: Int?
  /// Counts the tries that ended, which shows whether any ended in between.
  private var triesEnded: UInt64 = 0
  /// The times for which a sleeping task is going to look again.
  private var armed: Set<Timestamp> = []
  private var lastLook: Timestamp?
  private var isLoaded = false
  var isStopping = false
  private var idleWaiters: [CheckedContinuation<Void, Never>] = []
  private let wakeups: AsyncStream<Void>
  let wakeup: AsyncStream<Void>.Continuation
  private let deployed: AsyncStream<Void>
  private let deployment: AsyncStream<Void>.Continuation

  /// A service that does nothing until it runs and knows the deployed functions.
  package init(
    storage: any OrderedStorage,
    tailer: EventTailer,
    invoker: any FunctionInvoker,
    configuration: Configuration = Configuration(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.storage = storage
    self.store = DeliveryStore(storage: storage)
    self.tasks = TaskStore(storage: storage)
    self.tailer = tailer
    self.invoker = invoker
    self.configuration = configuration
    self.clock = clock
    self.now = now
    self.logger = logger
    self.request = DeliveryRequest(
      project: configuration.project,
      location: configuration.location
    )
    self.schedule = DeliverySchedule(heldBytesMax: configuration.heldBytesMax)
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    (deployed, deployment) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  // MARK: - Deployments

  /// Makes these the deployed functions, for events expanded from now on.
  ///
  /// Nothing is expanded until the first call: earlier events wait in the event log. Throws a
  /// `StatusConvertible` that names the function whose trigger makes no sense, and then changes
  /// nothing.
  package func updateFunctions(_ functions: [String: FunctionEndpoint]) throws {
    let table = try TriggerTable(functions: functions)
    _ = try ScheduleBook(functions: functions, stored: [:], now: now())
    self.table = table
    self.functions = functions
    let limits = functions.mapValues { DispatchLimits($0) }
    schedule.updateLimits { limits[$0] ?? DispatchLimits() }
    isBookOld = true
    deployment.yield()
    wakeup.yield()
  }

  // MARK: - Waiting

  /// When the next waiting delivery is due, which may be past; nil when none waits.
  package var nextDue: Timestamp? { schedule.nextDue }

  /// When the next scheduled function is due; nil when there is none.
  package var nextTick: Timestamp? { book.next }

  /// Looks again for due work after `now` has moved differently from `clock`.
  package func timeJumped() {
    armed = []
    wakeup.yield()
  }

  /// Lets time jump to `target`, stopping at each retry, task and scheduled run due until then.
  ///
  /// Each of them ends before the next one starts. Returns when nothing due by then is left;
  /// `waitUntilIdle` says what can delay this.
  package func passTime(to target: Timestamp, in time: VirtualTime) async throws {
    try await waitUntilStill()
    while let next = [nextDue, nextTick].compactMap({ $0 }).min(), next <= target {
      time.advance(to: next)
      timeJumped()
      try await waitUntilStill()
    }
    time.advance(to: target)
    timeJumped()
    try await waitUntilStill()
  }

  /// Returns when every event is expanded and nothing runs.
  ///
  /// Where deliveries start by themselves, nothing is then due either, or waits for a worker in
  /// place of a dead one. This is transitive: what a function writes counts too. Returns early when
  /// the calling task is cancelled; waits without end before the first deployment if there are
  /// events. Paused queues are not waited for.
  package func waitUntilIdle() async throws {
    while try await !isIdle(stillSuffices: false) {
      try Task.checkCancellation()
      await waitForProgress()
    }
  }

  /// Returns when nothing more happens unless time passes.
  ///
  /// Unlike `waitUntilIdle`, it does not wait for deliveries that need a worker or are held up by
  /// the rate of their function; `nextDue` tells when such a delivery can start.
  package func waitUntilStill() async throws {
    while try await !isIdle(stillSuffices: true) {
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
            // The run ends, and the expansion ends with it.
          } catch {
            // Without expansion no event goes anywhere: the run ends and throws.
            self.wakeup.finish()
            throw error
          }
        }
        for await _ in wakeups {
          if isStopping { break }
          try await look(in: &group)
        }
        try await finishRunning()
      } onGracefulShutdown: {
        // Owned by the service's run; ends after one hop to the actor.
        Task { await self.stop() }
      }
      group.cancelAll()
    }
  }

  private func look(in group: inout ThrowingDiscardingTaskGroup<any Error>) async throws {
    if isBookOld { try await renewBook() }
    // One time serves all steps, so that nothing that becomes due meanwhile is started or
    // forgotten.
    let now = now()
    noteTime(now)
    if let tick = book.next, tick <= now { try await recordTicks(now) }
    if configuration.startsByItself {
      let urgent = forced.compactMap { schedule.start($0, now: now) }
      forced = []
      for start in urgent + schedule.start(now: now) {
        group.addTask { await self.attempt(start) }
      }
    }
    armTimer(after: now, in: &group)
    resumeIdleWaiters()
  }

  /// Logs that the machine's clock was set back, which makes everything that waits wait longer.
  private func noteTime(_ now: Timestamp) {
    if let lastLook, now.advanced(by: Self.clockJumpMin) < lastLook {
      let seconds = lastLook.duration(since: now).components.seconds
      logger.warning(
        "The machine's clock was set back; retries and schedules wait until it is as late again",
        metadata: ["seconds": "\(seconds)"]
      )
      armed = []
    }
    lastLook = now
  }

  private func stop() {
    isStopping = true
    deployment.finish()
    wakeup.yield()
    resumeIdleWaiters()
  }

  /// Lets running handlers finish within the grace; the caller then cancels the rest.
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
    while schedule.runningCount > 0, !Task.isCancelled {
      await withCheckedContinuation { idleWaiters.append($0) }
    }
  }

  /// Takes up what an earlier run left.
  private func load() async throws {
    expandedThrough =
      try await storage.read { try EventCursor.get(Self.cursorName, in: $0) } ?? 0
    for queue in try await tasks.pausedQueues() { schedule.setPaused(true, function: queue) }
    var key: [UInt8]? = []
    while let start = key {
      let (page, next) = try await store.pending(from: start)
      for var pending in page {
        if !configuration.isOrdered, !pending.isOfSchedule { pending.lane = nil }
        schedule.add(pending, now: now())
      }
      key = next
    }
    isLoaded = true
    if schedule.count > 0 {
      logger.notice(
        "Resuming deliveries of an earlier run",
        metadata: ["delivery.count": "\(schedule.count)"]
      )
    }
    wakeup.yield()
  }

  private func armTimer(
    after now: Timestamp,
    in group: inout ThrowingDiscardingTaskGroup<any Error>
  ) {
    let look = configuration.startsByItself ? schedule.nextLook(after: now) : nil
    let times = [look, book.next].compactMap { $0 }
    guard let due = times.min(), armed.allSatisfy({ due < $0 }) else { return }
    armed.insert(due)
    let wait = due.duration(since: self.now())
    let clock = self.clock
    group.addTask {
      do {
        // The machine's clock may be put forward during this sleep.
        try await clock.sleep(for: min(max(wait, .milliseconds(1)), Self.sleepMax))
        await self.timerFired(due)
      } catch {
        // Cancellation means that the run ends.
      }
    }
  }

  private func timerFired(_ due: Timestamp) {
    armed.remove(due)
    wakeup.yield()
  }

  // MARK: - Trying

  private func attempt(_ start: DeliverySchedule.Start) async {
    let began = now()
    guard let delivery = await held(start) else { return }
    let outcome = await outcome(of: delivery)
    guard var settled = settle(delivery, outcome, began) else {
      schedule.release(delivery.id, due: now(), now: now())
      return ended()
    }
    if discarding.remove(delivery.id) != nil, !settled.state.isSettled {
      settled.end(.dead, Self.discardedText, now())
    }
    let bytes = await storeOutcome(from: delivery, to: settled)
    log(settled, outcome)
    schedule.finish(settled, bytes: bytes, now: now())
    if settled.task != nil { noteTaskEnded(settled.id.function) }
    if settled.state.isSettled {
      settledSinceTrim += 1
      settledCount? += 1
      dropped.remove(settled.id)
      repeated.remove(settled.id)
    }
    ended()
    await trimIfDue()
  }

  private func ended() {
    triesEnded &+= 1
    wakeup.yield()
    resumeIdleWaiters()
  }

  /// The delivery to try; nil when its row cannot be read, in which case it goes back.
  private func held(_ start: DeliverySchedule.Start) async -> Delivery? {
    if let held = start.held { return held }
    do {
      if let stored = try await store.delivery(start.id), !stored.state.isSettled { return stored }
      schedule.release(start.id, due: nil, now: now())
    } catch {
      logger.error(
        "A delivery cannot be read",
        metadata: ["delivery.id": "\(start.id)", "error": "\(error)"]
      )
      let due = now().advanced(by: configuration.policy.deferral)
      schedule.release(start.id, due: due, now: now())
    }
    ended()
    return nil
  }

  private func settle(
    _ delivery: Delivery,
    _ outcome: DeliveryPolicy.Outcome?,
    _ began: Timestamp
  ) -> Delivery? {
    guard let outcome else { return nil }
    return configuration.policy.settle(
      delivery,
      outcome,
      retry: functions?[delivery.id.function].map { DeliveryRetries($0) } ?? DeliveryRetries(),
      start: began,
      now: now()
    )
  }

  /// Stores how a try ended; returns the size of the row.
  private func storeOutcome(from old: Delivery, to new: Delivery) async -> Int {
    var batch = StorageBatch()
    let stored = DeliveryStore.update(from: old, to: new, in: &batch)
    if let task = new.task, new.state.isSettled {
      TaskStore.end(queue: task.queue, id: task.id, at: now(), in: &batch)
    }
    do {
      // If this write is lost, the delivery is made again.
      try await untilThereIsRoom("What became of events waits") {
        _ = try await storage.commit(batch, durability: .relaxed)
      }
    } catch {
      // The row still says pending: when it is read again, the delivery runs again.
      logger.error(
        "A delivery's outcome could not be stored",
        metadata: ["delivery.id": "\(new.id)", "error": "\(error)"]
      )
    }
    return stored.bytes
  }

  /// Runs the handler once; nil when the server stops meanwhile and the run does not count.
  private func outcome(of delivery: Delivery) async -> DeliveryPolicy.Outcome? {
    guard functions?[delivery.id.function] != nil else { return .functionGone }
    if faults?.drops(delivery) == true, dropped.insert(delivery.id).inserted {
      return .deferred("Dropped on purpose: the fault mode delivers it again.")
    }
    let outcome = await invoke(delivery)
    if case .succeeded? = outcome, faults?.repeats(delivery) == true,
      repeated.insert(delivery.id).inserted
    {
      return .deferred("Succeeded, and is delivered once more by the fault mode.")
    }
    return outcome
  }

  private func invoke(_ delivery: Delivery) async -> DeliveryPolicy.Outcome? {
    do {
      let invocation = try request.invocation(for: delivery, id: RandomID.make())
      let reply = try await invoker.invoke(invocation)
      let body = try await reply.body.collect(upTo: Self.replyBytesMax)
      let status = reply.head.status.code
      guard reply.head.status.kind != .successful else { return .succeeded(status: status) }
      let advice = reply.head.headerFields[RetryAdvice.header].flatMap(RetryAdvice.init)
      let text = String(buffer: body).prefix(Self.errorCharactersMax)
      return .handlerFailed(
        "The handler answered \(status)\(text.isEmpty ? "." : ": \(text)")",
        status: status,
        advice: advice
      )
    } catch let error as InvocationError {
      switch error.kind {
      case .notFound: return .functionGone
      case .timedOut: return .handlerFailed(error.message, status: 504, advice: nil)
      case .crashed: return .crashed(error.message)
      case .overloaded, .cannotStart: return .deferred(error.message)
      case .drained: return isStopping ? nil : .deferred(error.message)
      case .failed: return .handlerFailed(error.message, status: nil, advice: nil)
      }
    } catch is CancellationError {
      return nil
    } catch {
      return .handlerFailed("\(error)", status: nil, advice: .never)
    }
  }

  func log(_ delivery: Delivery, _ outcome: DeliveryPolicy.Outcome?) {
    var metadata: Logger.Metadata = [
      "delivery.id": "\(delivery.id)", "function.name": "\(delivery.id.function)",
      "subject": "\(delivery.subject)", "attempt": "\(delivery.attempts)",
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
      try await trim()
      try await tasks.free(before: now().advanced(by: .zero - configuration.taskNameKept))
    } catch {
      logger.warning("Settled deliveries could not be trimmed", metadata: ["error": "\(error)"])
    }
  }

  private func trim() async throws {
    var count = settledCount ?? 0
    if settledCount == nil {
      count = try await store.count() - schedule.count
      settledCount = count
    }
    let surplus = min(count - configuration.settledKept, Self.trimEvery * 2)
    guard surplus > 0 else { return }
    let busy = renewing
    let pending = schedule.ids
    let trimmed = try await store.trim(surplus) { busy.contains($0) || pending.contains($0) }
    // Fewer rows were there than counted: the count is wrong and is made anew.
    settledCount = trimmed < surplus ? nil : settledCount.map { $0 - trimmed }
  }

  // MARK: - Idleness

  private func isIdle(stillSuffices: Bool) async throws -> Bool {
    while isScheduleIdle(stillSuffices) {
      let ended = triesEnded
      let lastEvent = try await lastEvent()
      // A function that began and ended during the read may have written after it.
      guard ended == triesEnded else { continue }
      return lastEvent <= expandedThrough && isScheduleIdle(stillSuffices)
    }
    return false
  }

  /// The last record of the event log.
  func lastEvent() async throws -> UInt64 {
    try await storage.read { try CommitLog.lastSequence(in: $0) }
  }

  private func isScheduleIdle(_ stillSuffices: Bool) -> Bool {
    let now = now()
    guard functions == nil || isLoaded && !isBookOld, book.next.map({ $0 > now }) ?? true else {
      return false
    }
    guard configuration.startsByItself else { return schedule.isAtRest }
    return stillSuffices ? schedule.isStill(at: now) : schedule.isIdle(at: now)
  }

  /// Returns when every event up to a sequence has become deliveries.
  func waitForExpansion(through sequence: UInt64) async throws {
    while expandedThrough < sequence {
      try Task.checkCancellation()
      await waitForProgress()
    }
  }

  /// Repeats a write while the disk is full; `complaint` says what waits for it.
  func untilThereIsRoom<Result>(
    _ complaint: String,
    _ write: () async throws -> Result
  ) async throws -> Result {
    var isTold = false
    while true {
      do {
        return try await write()
      } catch let error as StorageError where error.kind == .full {
        if !isTold { logger.error("\(complaint): the disk is full") }
        isTold = true
        try await clock.sleep(for: Self.fullDiskWait)
      }
    }
  }

  /// Returns at the next progress of any kind, and when the task is cancelled.
  func waitForProgress() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        idleWaiters.append(continuation)
      }
    } onCancel: {
      // Owned by the waiter that is being cancelled; ends after one hop to the actor.
      Task { await self.resumeIdleWaiters() }
    }
  }

  func resumeIdleWaiters() {
    let waiters = idleWaiters
    idleWaiters = []
    for waiter in waiters { waiter.resume() }
  }

  /// Tries a startable delivery and returns when the try has ended; false for any other id.
  package func deliver(_ id: DeliveryID) async -> Bool {
    guard let start = schedule.start(id, now: now()) else { return false }
    await attempt(start)
    return true
  }

  static let discardedText = "Discarded by request."

  /// The bytes read of an event handler's reply, which only serves for its error text.
  private static let replyBytesMax = 1 << 20
  private static let errorCharactersMax = 500
  private static let trimEvery = 1000
  private static let sleepMax = Duration.seconds(30)
  private static let fullDiskWait = Duration.seconds(1)
  /// The smallest step back that is logged; smaller ones are the clock's own corrections.
  private static let clockJumpMin = Duration.seconds(2)
}
