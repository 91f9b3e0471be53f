import DocumentModel
import Events
import FlowControl
import HTTPMessages
import HTTPTypes
import Identifiers
import Invocation
import Logging
import NIOCore
import NIOPosix
import StorageEngine
import Synchronization

/// The run loop that starts due deliveries and stores their outcomes.
///
/// A single task runs the loop. Each pass handles everything that has happened since the last pass,
/// starts what may start, and hands all outcomes to the writer at once. Invocations and writes
/// report by callback, so a delivery needs no task of its own.
final class Dispatcher: Sendable {
  /// The result of an attempt.
  private enum Result: Sendable {
    case outcome(DeliveryPolicy.Outcome)
    /// A response whose body is still arriving.
    case streaming(Response)
    /// The function is no longer deployed.
    case undeployed
    /// The worker crashed while it also ran other invocations.
    case suspect(String)
    /// No worker accepted the delivery.
    case notStarted(InvocationError)
    /// The server stops, and the attempt does not count.
    case unfinished
  }

  /// The callbacks of the dispatcher.
  ///
  /// They are wrapped in a structure because a mutex would wrap a bare closure again at each
  /// access.
  private struct Observer {
    var onStored: @Sendable ([Delivery]) -> Void = { _ in }
    var onSetBack: @Sendable () -> Void = {}
    var onUndeployed: @Sendable () -> Void = {}
  }

  /// An attempt that has ended or has received the head of a streamed response.
  private struct Return: Sendable {
    var delivery: Delivery
    var began: Timestamp
    var result: Result
  }

  private struct State {
    var dispatch: DispatchState
    var returns: [Return] = []
    /// The running invocations and the closures that cancel them.
    var begun: Set<DeliveryID> = []
    var cancels: [DeliveryID: @Sendable () -> Void] = [:]
    /// Running deliveries that must not be retried.
    var discarding: Set<DeliveryID> = []
    var faults: FaultPlan?
    /// Deliveries that the fault mode has dropped or repeated once.
    var dropped: Set<DeliveryID> = []
    var repeated: Set<DeliveryID> = []
    /// True while passes follow changes.
    var isRunning = false
    var isStopping = false
    var isGraceOver = false
    /// The number of ended attempts; a change shows that an attempt has ended in between.
    var endsCount: UInt64 = 0
    /// The number of ended attempts by function and by the state of the delivery.
    var ends: [String: [Delivery.State: Int]] = [:]
    /// The number of deliveries stopped as part of a loop, by function.
    var stopped: [String: Int] = [:]
    var lastLook: Timestamp?
    var waiters: [CheckedContinuation<Void, Never>] = []
    var passes: UInt64 = 0
    var random = SystemRandomNumberGenerator()
  }

  private let registry: FunctionRegistry
  private let store: DeliveryStore
  private let writer: DeliveryWriter
  private let invoker: any FunctionInvoker
  private let taskPost: TaskSender
  private let configuration: DeliveryService.Configuration
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let request: DeliveryRequest
  private let state: Mutex<State>
  private let wakeups: AsyncStream<Void>
  private let wakeup: AsyncStream<Void>.Continuation
  private let observer = Mutex(Observer())
  private let alarm: Alarm<Timestamp>

  init(
    registry: FunctionRegistry,
    store: DeliveryStore,
    writer: DeliveryWriter,
    invoker: any FunctionInvoker,
    taskPost: TaskSender,
    configuration: DeliveryService.Configuration,
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.registry = registry
    self.store = store
    self.writer = writer
    self.invoker = invoker
    self.taskPost = taskPost
    self.configuration = configuration
    self.clock = clock
    self.now = now
    self.logger = logger
    request = DeliveryRequest(project: configuration.project, location: configuration.location)
    state = Mutex(
      State(
        dispatch: DispatchState(
          heldBytesMax: configuration.heldBytesMax,
          startsByItself: configuration.startsByItself
        )
      )
    )
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    alarm = Alarm(clock: clock, now: now)
  }

  // MARK: - Access from other parts

  /// Changes the dispatch state and starts another pass.
  @discardableResult
  func change<Answer>(_ change: (inout DispatchState) -> sending Answer) -> sending Answer {
    let answer = state.withLock { change(&$0.dispatch) }
    wake()
    return answer
  }

  /// Changes the dispatch state without another pass; for changes that let nothing start.
  func quietly<Answer>(_ change: (inout DispatchState) -> sending Answer) -> sending Answer {
    state.withLock { change(&$0.dispatch) }
  }

  /// Applies the summaries of the deliveries that an earlier run left, by function.
  ///
  /// Administrative changes wait for it.
  func resume(_ summaries: [String: DeliveryStore.Summary]) {
    let now = now()
    change { $0.resume(summaries, now: now) }
  }

  /// Reads the dispatch state.
  func read<Answer>(_ read: (DispatchState) -> sending Answer) -> sending Answer {
    state.withLock { read($0.dispatch) }
  }

  /// Starts another pass of the run loop; without the loop only waiters check their conditions.
  func wake() {
    wakeup.yield()
    if !state.withLock({ $0.isRunning }) { resumeWaiters() }
  }

  /// Checks for due work again after `now` has moved differently from the clock.
  func timeJumped() {
    alarm.reset()
    change { $0.lookAtAll() }
  }

  /// A callback that receives deliveries after each attempt, once the result is stored.
  ///
  /// It must not block.
  var onStored: @Sendable ([Delivery]) -> Void {
    get { observer.withLock { $0.onStored } }
    set { observer.withLock { $0.onStored = newValue } }
  }

  /// A callback for a system clock that was set back; it must not block.
  var onSetBack: @Sendable () -> Void {
    get { observer.withLock { $0.onSetBack } }
    set { observer.withLock { $0.onSetBack = newValue } }
  }

  /// A callback for changes to deliveries of an undeployed function; it must not block.
  var onUndeployed: @Sendable () -> Void {
    get { observer.withLock { $0.onUndeployed } }
    set { observer.withLock { $0.onUndeployed = newValue } }
  }

  /// The time for which deliveries of an undeployed function are kept.
  var keptFor: Duration { configuration.policy.undeployedWindow }

  /// The faults that are injected on purpose; nil for none.
  var faults: FaultPlan? {
    get { state.withLock { $0.faults } }
    set { state.withLock { $0.faults = newValue } }
  }

  /// Makes the current attempt of a running delivery its last; false if it does not run.
  func discardRunning(_ id: DeliveryID) -> Bool {
    state.withLock { state in
      guard case .running? = state.dispatch.phase(id) else { return false }
      state.discarding.insert(id)
      return true
    }
  }

  /// The number of attempts that have ended so far.
  var endsCount: UInt64 { state.withLock { $0.endsCount } }

  /// Returns once a condition holds; the condition is checked again after each pass.
  ///
  /// Throws if the calling task is cancelled.
  func waitUntil(_ condition: () async throws -> Bool) async throws {
    while true {
      let passes = state.withLock { $0.passes }
      if try await condition() { return }
      try Task.checkCancellation()
      await waitForPass(after: passes)
    }
  }

  private func waitForPass(after passes: UInt64) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          guard state.passes == passes, !Task.isCancelled else { return true }
          state.waiters.append(continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      resumeWaiters()
    }
  }

  private func resumeWaiters() {
    let waiters = state.withLock { state in
      state.passes &+= 1
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// The state of each function's deliveries, by the function's name.
  var figures: [String: DeliveryFigures] {
    let now = now()
    let isDeployed = registry.current != nil
    return state.withLock { state in
      var figures = state.ends.mapValues { DeliveryFigures(ends: $0) }
      for (function, backlog) in state.dispatch.backlogs {
        figures[function, default: DeliveryFigures()].pending = backlog.count
        figures[function]?.running = backlog.runningCount
        figures[function]?.holdUp = isDeployed ? backlog.holdUp(at: now) : .nothingDeployed
        figures[function]?.oldest = backlog.entries.values.lazy.map(\.delivery.commitTime).min()
      }
      for (function, count) in state.stopped {
        figures[function, default: DeliveryFigures()].stopped = count
      }
      return figures
    }
  }

  // MARK: - Run loop

  /// Runs the loop until `stop` or cancellation.
  ///
  /// After `stop`, running deliveries may finish within the grace period.
  func run() async {
    state.withLock { $0.isRunning = true }
    await withDiscardingTaskGroup { group in
      group.addTask { await self.alarm.run { self.wake() } }
      for await _ in wakeups {
        pass(in: &group)
        if state.withLock({ $0.isStopping }) { break }
      }
      if !Task.isCancelled { await finishRunning(in: &group) }
      for cancel in state.withLock({ Array($0.cancels.values) }) { cancel() }
      state.withLock { $0.isRunning = false }
      resumeWaiters()
      group.cancelAll()
    }
  }

  /// Stops starting deliveries and lets `run` end.
  func stop() {
    state.withLock { $0.isStopping = true }
    wake()
  }

  private func pass(in group: inout DiscardingTaskGroup) {
    let now = now()
    noteTime(now)
    let returns = state.withLock { state in
      defer { state.returns = [] }
      return state.returns
    }
    var ends: [FunctionBacklog.End] = []
    for item in returns {
      if case .streaming(let reply) = item.result {
        group.addTask { await self.collect(reply, item) }
      } else if let end = end(of: item, now: now) {
        ends.append(end)
      }
    }
    write(ends)
    let work = state.withLock { state -> DispatchState.Work in
      state.isStopping ? DispatchState.Work() : state.dispatch.look(now: now)
    }
    for start in work.starts { begin(start) }
    for load in work.loads {
      group.addTask { await self.load(load) }
    }
    if work.concernsUndeployed { onUndeployed() }
    if let next = work.nextTime { alarm.set(next) }
    resumeWaiters()
  }

  /// Ends waits that began before the system clock was set back.
  private func noteTime(_ now: Timestamp) {
    let back = state.withLock { state -> Int64? in
      defer { state.lastLook = now }
      guard let last = state.lastLook, now.advanced(by: Self.clockJumpMin) < last else {
        return nil
      }
      state.dispatch.clockWasSetBack(to: now)
      return last.duration(since: now).components.seconds
    }
    guard let back else { return }
    alarm.reset()
    observer.withLock { $0.onSetBack }()
    logger.warning(
      "The machine's clock was set back; what waited for a retry is tried now",
      metadata: ["seconds": "\(back)"]
    )
  }

  private func load(_ request: DeliveryStore.LoadRequest) async {
    do {
      let loaded = try await store.load(request)
      let parked = change { $0.loaded(request, loaded) }
      if !parked.isEmpty { park(parked, of: request.function) }
    } catch {
      logger.error(
        "Pending deliveries cannot be read",
        metadata: ["function.name": "\(request.function)", "error": "\(error)"]
      )
      // A cancelled sleep ends the wait, and the run loop ends as well.
      try? await clock.sleep(for: Self.readWait)
      change { _ = $0.loaded(request, nil) }
    }
  }

  /// Stores rows for deliveries that wait for an earlier delivery of their lane.
  private func park(_ deliveries: [Delivery], of function: String) {
    var batch = StorageBatch()
    for delivery in deliveries { DeliveryStore.park(delivery, in: &batch) }
    writer.write(batch) { [self] _ in
      change { $0.change(function) { $0.endParking(deliveries) } }
    }
  }

  /// Waits until running deliveries have ended and are stored, or until the grace period is over.
  private func finishRunning(in group: inout DiscardingTaskGroup) async {
    let clock = self.clock
    let grace = configuration.stopGrace
    group.addTask {
      // A cancelled sleep ends the grace period early, as the cancellation intends.
      try? await clock.sleep(for: grace)
      self.state.withLock { $0.isGraceOver = true }
      self.wake()
    }
    wake()
    for await _ in wakeups {
      pass(in: &group)
      let isOver = state.withLock { state in
        state.isGraceOver
          || state.returns.isEmpty && state.dispatch.allSatisfy { !$0.isRunningOrSaving }
      }
      if isOver { return }
    }
  }

  // MARK: - Attempts

  /// Attempts a startable delivery; false for any other id.
  ///
  /// Returns when the outcome is stored. Cancelling the calling task ends the attempt, which then
  /// does not count.
  func deliver(_ id: DeliveryID) async throws -> Bool {
    guard let start = state.withLock({ $0.dispatch.start(id) }) else { return false }
    let ends = endsCount
    begin(start)
    do {
      try await waitUntil {
        endsCount != ends && read { [nil, .ready].contains($0.phase(id)) }
      }
    } catch {
      state.withLock { $0.cancels[id] }?()
      throw error
    }
    return true
  }

  private func begin(_ start: DispatchState.Start) {
    let delivery = start.delivery
    let began = now()
    state.withLock { _ = $0.begun.insert(delivery.id) }
    @Sendable func end(_ result: Result) {
      state.withLock { state in
        state.begun.remove(delivery.id)
        state.cancels[delivery.id] = nil
        state.returns.append(Return(delivery: delivery, began: began, result: result))
      }
      wake()
    }
    guard registry.current?.endpoints[delivery.id.function] != nil else {
      return end(.undeployed)
    }
    guard let event = start.event else {
      let text = "Its event is kept no longer."
      return end(.outcome(.handlerFailed(text, status: nil, advice: .never)))
    }
    let isDropped = state.withLock { state in
      state.faults?.drops(delivery) == true && state.dropped.insert(delivery.id).inserted
    }
    if isDropped { return end(.outcome(.putOff("Dropped on purpose: it is delivered again."))) }
    do {
      var invocation = try request.invocation(
        for: delivery,
        bringing: event,
        id: RandomID.make()
      )
      invocation.runsIsolated = start.runsIsolated
      let cancel: @Sendable () -> Void
      switch event.task?.target?.place {
      case .url(let url):
        let queue = delivery.id.function
        cancel = taskPost.begin(invocation, of: queue, to: url) { end(Self.result(of: $0)) }
      case .function(let name, _) where !registry.takesRequests(name):
        let text = "No deployed function \(name) takes the task's request."
        return end(.outcome(.handlerFailed(text, status: 404, advice: nil)))
      case .function, nil:
        cancel = invoker.begin(
          invocation,
          near: MultiThreadedEventLoopGroup.singleton.any()
        ) { end(Self.result(of: $0)) }
      }
      state.withLock { state in
        if state.begun.contains(delivery.id) { state.cancels[delivery.id] = cancel }
      }
    } catch {
      end(.outcome(.handlerFailed("\(error)", status: nil, advice: .never)))
    }
  }

  private static func result(of reply: Swift.Result<Response, any Error>) -> Result {
    switch reply {
    case .success(let reply):
      if case .whole(let body) = reply.body { return result(of: reply, body) }
      return .streaming(reply)
    case .failure(let error as InvocationError):
      switch error.kind {
      case .timedOut: return .outcome(.timedOut(error.message))
      case .crashed where error.isShared: return .suspect(error.message)
      case .crashed: return .outcome(.crashed(error.message))
      // A function that is not found is just being deployed or removed.
      case .overloaded, .cannotStart, .placesTaken, .drained, .unserved, .notFound:
        return .notStarted(error)
      case .failed: return .outcome(.handlerFailed(error.message, status: nil, advice: nil))
      }
    case .failure(is CancellationError): return .unfinished
    case .failure(let error):
      return .outcome(.handlerFailed("\(error)", status: nil, advice: .never))
    }
  }

  private static func result(of reply: Response, _ body: ByteBuffer) -> Result {
    let status = reply.head.status.code
    guard reply.head.status.kind != .successful else {
      return .outcome(.succeeded(status: status))
    }
    let advice = reply.head.headerFields[RetryAdvice.header].flatMap(RetryAdvice.init)
    if let reason = FailureReason(of: reply.head) {
      return .outcome(
        .handlerFailed("The handler threw: \(reason)", status: status, advice: advice)
      )
    }
    // Plain text usually ends with a line feed.
    let text = String(String(buffer: body).prefix(errorCharactersMax)).trimmingLineEnd
    return .outcome(
      .handlerFailed(
        "The handler returned \(status)\(text.isEmpty ? "." : ": \(text)")",
        status: status,
        advice: advice
      )
    )
  }

  private func collect(_ reply: Response, _ item: Return) async {
    var item = item
    do {
      let body = try await reply.body.beginning(
        upTo: Self.replyBytesMax,
        restFor: Self.replyRestTimeMax,
        clock
      )
      item.result = Self.result(of: reply, body)
    } catch {
      item.result = Self.result(of: .failure(error))
    }
    state.withLock { $0.returns.append(item) }
    wake()
  }

  // MARK: - Outcomes

  /// Processes the result of an attempt; nil if there is nothing to store.
  private func end(of item: Return, now: Timestamp) -> FunctionBacklog.End? {
    let id = item.delivery.id
    state.withLock { $0.endsCount &+= 1 }
    switch item.result {
    case .outcome(let outcome): return settle(item, outcome, now)
    case .suspect(let error):
      if isDiscarding(id) { return settle(item, .putOff(error), now) }
      logger.info(
        "A delivery shared a worker that crashed, and runs isolated next",
        metadata: ["delivery.id": "\(id)", "error": "\(error)"]
      )
      state.withLock {
        $0.dispatch.change(id.function) { $0.release(id.place, asCrashCandidate: true) }
      }
    case .notStarted(let error):
      if isDiscarding(id) { return settle(item, .putOff(error.message), now) }
      return notStarted(item, error, now)
    case .undeployed:
      if isDiscarding(id) { return settle(item, .putOff("The function is not deployed."), now) }
      state.withLock {
        $0.dispatch.change(id.function) { $0.release(id.place, asCrashCandidate: false) }
      }
    case .unfinished, .streaming:
      state.withLock {
        $0.dispatch.change(id.function) { $0.release(id.place, asCrashCandidate: false) }
      }
    }
    return nil
  }

  private func isDiscarding(_ id: DeliveryID) -> Bool {
    state.withLock { $0.discarding.contains(id) }
  }

  private func notStarted(
    _ item: Return,
    _ error: InvocationError,
    _ now: Timestamp
  ) -> FunctionBacklog.End? {
    let id = item.delivery.id
    let policy = configuration.policy
    let (isNews, isGivenUp) = state.withLock { state in
      let since = state.dispatch.backlogs[id.function]?.unstartableSince
      let window = policy.startWindow
      if let since, now.duration(since: since) >= window,
        now.duration(since: item.delivery.dueTime) >= window
      {
        return (false, true)
      }
      let random = Double.random(in: 0..<1, using: &state.random)
      // Drained workers belong to a server that stops, or to a deployment that is being replaced. A
      // function may be missing for a moment during a deployment.
      let isReportable = error.kind != .drained && error.kind != .notFound
      let isNews = state.dispatch.change(id.function) { backlog in
        backlog.notStarted(
          id.place,
          error: error.message,
          isReportable: isReportable,
          now: now
        ) {
          policy.startBackOff.delay(afterFailures: $0, random: random)
        }
      }
      return (isNews, false)
    }
    if isGivenUp { return settle(item, .neverStarted(error.message), now) }
    if isNews {
      logger.warning(
        "The events of a function wait, because no worker takes them",
        metadata: ["function.name": "\(id.function)", "error": "\(error.message)"]
      )
    }
    return nil
  }

  private func settle(
    _ item: Return,
    _ outcome: DeliveryPolicy.Outcome,
    _ now: Timestamp
  ) -> FunctionBacklog.End? {
    let id = item.delivery.id
    let retry = registry.retries(of: id.function)
    let (new, end) = state.withLock { state in
      var outcome = outcome
      if case .succeeded = outcome, state.faults?.repeats(item.delivery) == true,
        state.repeated.insert(id).inserted
      {
        outcome = .putOff("Succeeded, and is delivered once more by the fault mode.")
      }
      var new = configuration.policy.settle(
        item.delivery,
        outcome,
        retry: retry,
        start: item.began,
        now: now,
        random: Double.random(in: 0..<1, using: &state.random)
      )
      if state.discarding.remove(id) != nil, !new.state.isSettled {
        new.end(.dead, Self.discardedText, now)
      }
      state.ends[id.function, default: [:]][new.state, default: 0] += 1
      if new.state.isSettled {
        state.dropped.remove(id)
        state.repeated.remove(id)
      }
      let end = state.dispatch.change(id.function) { backlog in
        switch outcome {
        case .succeeded, .handlerFailed, .timedOut: backlog.workerResponded()
        case .crashed, .putOff, .neverStarted: break
        }
        return backlog.finish(new)
      }
      return (new, end)
    }
    log(new)
    return end
  }

  /// Stores the outcomes of deliveries, which leave their windows when the write has ended.
  func write(_ ends: [FunctionBacklog.End]) {
    guard !ends.isEmpty else { return }
    var batch = StorageBatch()
    for end in ends {
      let hasLaneRows = read { $0.backlogs[end.old.id.function]?.hasLaneRows ?? true }
      DeliveryStore.update(from: end.old, to: end.new, hasLaneRows: hasLaneRows, in: &batch)
      for other in end.parked { DeliveryStore.park(other, in: &batch) }
      if end.new.isTask, end.new.state.isSettled, let time = end.new.settledTime {
        TaskStore.end(
          queue: end.new.id.function,
          id: end.new.subject,
          at: time,
          in: &batch
        )
      }
    }
    writer.write(batch) { [self] result in stored(ends, result) }
  }

  private func stored(_ ends: [FunctionBacklog.End], _ result: Swift.Result<Void, any Error>) {
    let isStored = if case .success = result { true } else { false }
    change { dispatch in
      for end in ends {
        dispatch.change(end.old.id.function) { isStored ? $0.saved(end) : $0.refused(end) }
      }
    }
    switch result {
    case .success: onStored(ends.map(\.new))
    case .failure(let error):
      // The rows are still pending, so the deliveries run again.
      logger.error(
        "What became of deliveries could not be stored",
        metadata: ["delivery.count": "\(ends.count)", "error": "\(error)"]
      )
    }
  }

  /// Counts a delivery that was stopped as part of a loop.
  func noteStopped(_ delivery: Delivery) {
    state.withLock { $0.stopped[delivery.id.function, default: 0] += 1 }
  }

  /// Logs the state of a delivery after an attempt.
  func log(_ delivery: Delivery) {
    var metadata: Logger.Metadata {
      var metadata: Logger.Metadata = [
        "delivery.id": "\(delivery.id)", "function.name": "\(delivery.id.function)",
        "subject": "\(delivery.subject)", "attempt": "\(delivery.attempts)",
      ]
      if let error = delivery.lastError { metadata["error"] = "\(error)" }
      return metadata
    }
    switch delivery.state {
    case .succeeded: logger.debug("Delivery succeeded", metadata: metadata)
    case .pending: logger.warning("Delivery will be tried again", metadata: metadata)
    case .failed: logger.error("Delivery failed", metadata: metadata)
    case .dead: logger.error("Delivery is dead", metadata: metadata)
    }
  }

  static let discardedText = "Discarded by request."

  /// The number of bytes read of an event handler's response, which is only used for error texts.
  private static let replyBytesMax = 1 << 20
  /// The time for which the rest of a longer response is read, so that its function can finish.
  private static let replyRestTimeMax = Duration.seconds(10)
  private static let errorCharactersMax = 500
  private static let readWait = Duration.seconds(1)
  /// The smallest backward step of the clock that is logged; smaller steps are clock corrections.
  private static let clockJumpMin = Duration.seconds(2)
}

extension String {
  fileprivate var trimmingLineEnd: String {
    String(self[..<(lastIndex { !$0.isNewline }.map { index(after: $0) } ?? startIndex)])
  }
}
