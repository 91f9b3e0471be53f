import FlowControl
import Invocation
import Logging
import Manifests
import NIOCore
import StatusCodes
import Synchronization

/// A deployed version of a function: its scheduler, workers and invocations.
final class FunctionVersion: Sendable {
  private struct State {
    var scheduler: FunctionScheduler
    var workers: [FunctionScheduler.WorkerID: WorkerProcess] = [:]
    var invocations: [FunctionScheduler.InvocationID: WorkerInvocation] = [:]
    var invocationsMade: UInt64 = 0
    var start: StartOutcome = .pending([])
    var isRemoved = false
    /// The time at which a worker last began or finished a crash report.
    var reportTime: Duration?
    /// The worker whose crash report is being written.
    var reporter: FunctionScheduler.WorkerID?
    /// The latest time at which the fleet will call `advance`; nil if none is scheduled.
    var advancesAt: Duration?
    /// The version that takes over invocations that arrive too late for this one.
    var successor: FunctionVersion?
  }

  /// The outcome of the first start of a worker.
  private enum StartOutcome {
    case pending([CheckedContinuation<Void, any Error>])
    case known(Result<Void, any Error>)
  }

  let function: DeployedFunction
  let context: FleetContext
  let meter: FunctionMeter
  /// The identity under which the version holds worker places.
  let owner: PlaceOwner
  /// The debugger process that runs the function in place of workers; nil if there is none.
  let debugger: DebuggerWorker?
  private let timeout: Duration
  private let state: Mutex<State>

  /// Creates a version without workers and adds it to `context`.
  init(
    _ function: DeployedFunction,
    in context: FleetContext,
    debugger: DebuggerWorker? = nil
  ) {
    self.function = function
    self.context = context
    self.meter = context.meter(of: function.name)
    self.owner = context.makeOwner(of: function.name)
    self.debugger = debugger
    var limits = FunctionScheduler.Limits(function.endpoint, context.configuration)
    if debugger == nil {
      timeout = .seconds(function.endpoint.timeoutSeconds ?? FunctionLimits.secondsDefault)
    } else {
      timeout = WorkerFleet.debuggerPatience
      limits.suspend(for: timeout)
    }
    state = Mutex(State(scheduler: FunctionScheduler(limits: limits)))
    context.add(self)
  }

  // MARK: Invocations

  /// Accepts an invocation, whose caller is notified of the outcome.
  ///
  /// If it already waited for the previous version, `waitsUntil` is the end of that wait.
  func submit(_ invocation: WorkerInvocation, waitsUntil: Duration? = nil) {
    var next: FunctionVersion?
    act { state, now in
      // The caller looked up this version just before its successor took over.
      if state.scheduler.isRetired, let successor = state.successor {
        next = successor
        return []
      }
      state.invocationsMade += 1
      let id = FunctionScheduler.InvocationID(number: state.invocationsMade)
      guard invocation.assign(self, id) else { return [] }
      state.invocations[id] = invocation
      return state.scheduler.submit(
        id,
        bytes: invocation.request.wholeBody.readableBytes,
        timeout: timeout(of: invocation.request),
        waitsUntil: waitsUntil,
        runsIsolated: invocation.request.runsIsolated,
        now: now
      )
    }
    next?.submit(invocation, waitsUntil: waitsUntil)
  }

  /// Returns the time limit of an invocation once it runs.
  private func timeout(of request: InvocationRequest) -> Duration {
    debugger == nil ? min(request.timeout ?? timeout, timeout) : timeout
  }

  func ended(_ id: FunctionScheduler.InvocationID) {
    act { state, now in
      state.invocations[id] = nil
      return state.scheduler.ended(id, now: now)
    }
  }

  func cancelled(_ id: FunctionScheduler.InvocationID) {
    act { state, now in
      let actions = state.scheduler.cancelled(id, now: now)
      if !state.scheduler.knows(id) { state.invocations[id] = nil }
      return actions
    }
  }

  func broke(_ id: FunctionScheduler.InvocationID, isStreaming: Bool) {
    act { state, now in
      let actions = state.scheduler.broke(id, isStreaming: isStreaming, now: now)
      if !state.scheduler.knows(id) { state.invocations[id] = nil }
      return actions
    }
  }

  func notSent(_ id: FunctionScheduler.InvocationID) {
    act { state, now in
      let actions = state.scheduler.notSent(id, now: now)
      let fails = actions.contains { if case .fail(id, _) = $0 { true } else { false } }
      if !state.scheduler.knows(id), !fails { state.invocations[id] = nil }
      return actions
    }
  }

  // MARK: Workers

  /// Starts the workers that must exist before the first invocation, at least one.
  func warmUp() {
    act { $0.scheduler.warmUp(now: $1) }
  }

  /// Returns once a worker has answered, or throws the reason why the first one did not.
  func firstWorkerReady() async throws {
    try await withCheckedThrowingContinuation { continuation in
      let known = state.withLock { state -> Result<Void, any Error>? in
        switch state.start {
        case .known(let result): return result
        case .pending(let waiters):
          state.start = .pending(waiters + [continuation])
          return nil
        }
      }
      if let known { continuation.resume(with: known) }
    }
  }

  /// Records that no place is left for the first worker.
  func placeMissing() {
    act(makesRoom: false) { state, now in
      state.scheduler.placeMissing(now: now)
      return []
    }
  }

  /// Records that the fleet has a place for the worker, which is about to be started.
  func workerLaunched(_ worker: WorkerProcess) {
    act { state, now in
      state.scheduler.workerLaunched(worker.id, now: now)
      return []
    }
  }

  func workerReady(_ worker: WorkerProcess) {
    context.ready(worker)
    act { $0.scheduler.workerReady(worker.id, now: $1) }
    startEnded(.success(()))
  }

  /// Counts an ended invocation and reports it in the log.
  func invocationEnded(
    _ request: InvocationRequest,
    _ outcome: FunctionFigures.Outcome,
    status: Int?,
    after time: Duration
  ) {
    meter.invocationEnded(outcome, after: time)
    let now = context.time.now()
    guard
      let wake = context.journal?.invocationEnded(
        request,
        outcome,
        status: status,
        after: time,
        now: now
      )
    else { return }
    context.alarm.set(wake)
  }

  func workerExited(_ worker: WorkerProcess, detail: String) {
    if worker.hasCrashed, !worker.hasBegunReport { meter.workerCrashed() }
    context.exited(worker)
    act { state, now in
      state.workers[worker.id] = nil
      if state.reporter == worker.id {
        // On a busy machine, a report may take longer than the interval.
        state.reportTime = now
        state.reporter = nil
      }
      let actions = state.scheduler.workerExited(worker.id, detail: detail, now: now)
      let failed = Set(actions.compactMap { if case .fail(let id, _) = $0 { id } else { nil } })
      state.invocations = state.invocations.filter { id, _ in
        state.scheduler.knows(id) || failed.contains(id)
      }
      return actions
    }
    startEnded(
      .failure(
        StatusError(
          .failedPrecondition,
          "The worker of \(function.name) did not start: \(detail)\(worker.lastOutput)"
        )
      )
    )
  }

  /// Records that a worker has begun a crash report; returns nil if it may finish it.
  ///
  /// A report takes about a second of processor time and mostly repeats the previous one. Therefore
  /// a function that crashes repeatedly writes only one from time to time. For another one, this
  /// returns the reason for ending the worker. `detail` is the reason of the crash.
  func workerCrashing(_ worker: WorkerProcess, detail: String) -> String? {
    if worker.hasCrashed { meter.workerCrashed() }
    var refusal: String?
    act { state, now in
      if state.reportTime.map({ now - $0 >= Self.reportInterval }) ?? true {
        state.reportTime = now
        state.reporter = worker.id
      } else {
        refusal = "it crashed again; the last crash's report is in the log"
      }
      return state.scheduler.workerCrashing(worker.id, detail: refusal ?? detail, now: now)
    }
    return refusal
  }

  /// The minimum time between two crash reports of the function.
  private static let reportInterval = Duration.seconds(10)

  /// Records that the worker exceeds its memory limit.
  func workerTooLarge(_ worker: WorkerProcess) {
    act { $0.scheduler.workerTooLarge(worker.id, now: $1) }
  }

  /// Gives up the worker that has been idle longest, or a busy one once it is done.
  ///
  /// Returns nil if no worker can be given up.
  func yieldWorker(mayBeBusy: Bool) -> WorkerProcess? {
    var yielded: WorkerProcess?
    act(makesRoom: false) { state, now in
      let (id, actions) = state.scheduler.yieldWorker(mayBeBusy: mayBeBusy, now: now)
      yielded = id.flatMap { state.workers[$0] }
      return actions
    }
    return yielded
  }

  /// The time since which the longest-idle worker has been idle; nil if none is idle.
  var idleSince: Duration? {
    debugger == nil ? state.withLock { $0.scheduler.idleSince } : nil
  }

  /// The current numbers of workers and invocations.
  var status: FunctionStatus {
    var shortage: WorkerShortage?
    if context.lacksPlace(owner) {
      shortage = .init(cause: .placesTaken, message: context.placesText(for: function.name))
    }
    return state.withLock { state in
      if shortage == nil, let detail = state.scheduler.startFailure {
        shortage = .init(cause: .cannotStart, message: startText(detail))
      }
      let workers = state.scheduler.workerCounts
      return FunctionStatus(
        name: function.name,
        deploymentID: function.deploymentID,
        workersReady: workers.ready,
        workers: workers.all,
        running: state.scheduler.runningCount,
        waiting: state.scheduler.waitingCount,
        processes: state.workers.values.compactMap(\.status).sorted { $0.pid < $1.pid },
        shortage: shortage
      )
    }
  }

  private func startText(_ detail: String) -> String {
    "No worker of \(function.name) could be started: \(detail)."
  }

  // MARK: Time and shutdown

  /// Performs all work that is due.
  func advance() {
    act { state, now in
      state.advancesAt = nil
      return state.scheduler.advance(to: now)
    }
  }

  /// Ends the invocations that a replaced version still runs.
  func drain() {
    act { $0.scheduler.drain(now: $1) }
  }

  /// Stops accepting invocations, moves waiting ones to `successor`, and ends idle workers.
  ///
  /// Busy workers end when they are done, or `drainAfter` from now. Without a successor, waiting
  /// invocations fail.
  func retire(successor: FunctionVersion?, drainAfter: Duration? = nil) {
    var left: [(WorkerInvocation, Duration)] = []
    act { state, now in
      state.successor = successor
      let (waiting, actions) = state.scheduler.retire(
        drainBy: drainAfter.map { now + $0 },
        now: now
      )
      for entry in waiting {
        guard let invocation = state.invocations.removeValue(forKey: entry.id) else { continue }
        left.append((invocation, entry.waitsUntil))
      }
      return actions
    }
    context.replace(self)
    for (invocation, waitsUntil) in left {
      if let successor {
        // The time that an invocation may wait for a debugger process is practically unlimited.
        successor.submit(invocation, waitsUntil: debugger == nil ? waitsUntil : nil)
      } else {
        invocation.fail(error(.drained, invocation))
      }
    }
  }

  /// Ends all workers; their callers receive `detail` as the reason.
  func endWorkers(saying detail: String) {
    for worker in state.withLock({ Array($0.workers.values) }) { worker.end(saying: detail) }
  }

  /// Fails all remaining invocations, when the fleet no longer runs workers.
  func abort() {
    let invocations = state.withLock { state in
      defer { state.invocations = [:] }
      return state.invocations.values
    }
    for invocation in invocations { invocation.fail(error(.drained, invocation)) }
    context.remove(self)
  }
}

extension FunctionVersion {
  /// Changes the state under the lock, then performs the scheduler's actions outside it.
  ///
  /// With `makesRoom`, an idle worker is offered to the functions that wait for a place.
  private func act(
    makesRoom: Bool = true,
    _ change: (inout State, Duration) -> [FunctionScheduler.Action]
  ) {
    let now = context.time.now()
    var steps: [Step] = []
    let after = state.withLock { state -> (wake: Duration?, hasIdle: Bool, isFinished: Bool) in
      let actions = change(&state, now)
      if !actions.isEmpty {
        steps.reserveCapacity(actions.count)
        for action in actions { resolve(action, &state, &steps) }
      }
      if state.scheduler.isFinished, !state.isRemoved {
        state.isRemoved = true
        return (nil, false, true)
      }
      var newWake: Duration?
      if let wake = state.scheduler.wake, state.advancesAt.map({ wake < $0 }) ?? true {
        state.advancesAt = wake
        newWake = wake
      }
      return (newWake, state.scheduler.idleSince != nil, false)
    }
    for step in steps { perform(step) }
    if let wake = after.wake { context.advance(self, by: wake) }
    if after.isFinished { context.remove(self) }
    if makesRoom, after.hasIdle, debugger == nil { context.offerRoom() }
  }

  /// An action of the scheduler together with the objects that it concerns.
  private enum Step {
    case start(WorkerProcess)
    case command(WorkerProcess, WorkerProcess.Command)
    case kill(WorkerProcess, FunctionScheduler.KillReason)
    case run(WorkerInvocation, WorkerProcess)
    case cancel(WorkerInvocation)
    case fail(WorkerInvocation, FunctionScheduler.Failure)
    case giveUpStart
  }

  private func resolve(
    _ action: FunctionScheduler.Action,
    _ state: inout State,
    _ steps: inout [Step]
  ) {
    switch action {
    case .start(let id):
      let worker = WorkerProcess(id: id, of: self)
      state.workers[id] = worker
      steps.append(.start(worker))
    case .check(let id):
      if let worker = state.workers[id] { steps.append(.command(worker, .probe)) }
    case .terminate(let id):
      if let worker = state.workers[id] { steps.append(.command(worker, .terminate)) }
    case .kill(let id, let reason):
      if let worker = state.workers[id] { steps.append(.kill(worker, reason)) }
    case .run(let id, on: let worker):
      if let invocation = state.invocations[id], let worker = state.workers[worker] {
        steps.append(.run(invocation, worker))
      }
    case .cancel(let id):
      if let invocation = state.invocations[id] { steps.append(.cancel(invocation)) }
    case .fail(let id, let failure):
      if let invocation = state.invocations[id] { steps.append(.fail(invocation, failure)) }
      if !state.scheduler.knows(id) { state.invocations[id] = nil }
    case .giveUpStart: steps.append(.giveUpStart)
    }
  }

  private func perform(_ step: Step) {
    switch step {
    case .start(let worker):
      meter.workerStarted()
      context.requestStart(worker)
    case .command(let worker, .terminate) where context.leaves(worker):
      workerExited(worker, detail: "it is not needed any more")
    case .command(let worker, let command): worker.send(command)
    case .kill(let worker, let reason):
      let end = worker.end(for: reason)
      context.log.append(function: function.name, level: end.level, message: end.message)
      _ = context.leaves(worker)
      worker.end(saying: end.detail)
    case .run(let invocation, let worker): worker.run(invocation)
    case .cancel(let invocation): invocation.cancelOnConnection()
    case .fail(let invocation, let failure):
      let error = error(failure, invocation)
      guard case .crashed = failure else { return invocation.fail(error) }
      invocation.workerCrashed(error) { [context, name = function.name] in
        context.log.append(
          function: name,
          level: "critical",
          message: error.message,
          invocation: invocation.request.id
        )
      }
    case .giveUpStart: startEnded(.failure(placesTaken))
    }
  }

  private var placesTaken: InvocationError {
    let text = context.placesText(for: function.name)
    return InvocationError(
      .placesTaken,
      "\(text) Try again later, or lower the maxInstances of functions that need fewer."
    )
  }

  private func startEnded(_ result: Result<Void, any Error>) {
    let waiters = state.withLock { state -> [CheckedContinuation<Void, any Error>] in
      guard case .pending(let waiters) = state.start else { return [] }
      state.start = .known(result)
      return waiters
    }
    for waiter in waiters { waiter.resume(with: result) }
  }

  private func error(
    _ failure: FunctionScheduler.Failure,
    _ invocation: WorkerInvocation
  ) -> InvocationError {
    let id = invocation.request.id
    let name = function.name
    switch failure {
    case .overloaded:
      let waiting = state.withLock { $0.scheduler.waitingCount }
      return InvocationError(
        .overloaded,
        "\(name) has \(waiting) invocations waiting already; try again later, or raise its "
          + "concurrency or maxInstances."
      )
    case .placeless: return placesTaken
    case .waitTimedOut where context.lacksPlace(owner): return placesTaken
    case .waitTimedOut:
      return InvocationError(
        function.endpoint.isFedByTheServer ? .overloaded : .timedOut,
        "\(name) had no worker free for \(id) in time; raise its concurrency or maxInstances."
      )
    case .timedOut:
      let limit = timeout(of: invocation.request)
      return InvocationError(.timedOut, "\(name) did not finish within \(limit) (\(id)).")
    case .drained:
      return InvocationError(.drained, "\(name) was stopped before it finished (\(id)).")
    case .crashed(let detail, _) where debugger != nil && function.endpoint.isFedByTheServer:
      // An event is not at fault if the developer stops the debugger.
      return InvocationError(.drained, "\(name) did not finish \(id): \(detail).")
    case .crashed(let detail, let isShared):
      return InvocationError(
        .crashed,
        "\(name) crashed while it ran \(id): \(detail).",
        isShared: isShared
      )
    case .cannotStart(let detail):
      return InvocationError(.cannotStart, startText(detail))
    case .cut:
      return InvocationError(.failed, "\(name) did not complete its response to \(id).")
    case .failed(let detail):
      return InvocationError(.failed, "\(name) has no reply to \(id): \(detail).")
    }
  }
}
