import DequeModule
import RuntimeSupport

/// Decides which worker runs which invocation for one deployed version of one function.
///
/// It knows workers and invocations by number only and touches neither: each event returns the
/// actions that its owner carries out in order. Time is a `Duration` since the pool was made.
struct FunctionScheduler {
  /// One worker process, from the decision to start it until it has exited.
  struct WorkerID: Hashable, Sendable {
    var number: Int
  }

  /// One call of the function.
  struct InvocationID: Hashable, Sendable {
    var number: UInt64
  }

  /// What the owner does next.
  enum Action: Equatable {
    case start(WorkerID)
    /// Ask the worker whether it is well; `workerReady` or `workerExited` answers.
    case check(WorkerID)
    /// Ask the worker to finish and exit.
    case terminate(WorkerID)
    /// End the worker and all it has started.
    case kill(WorkerID, KillReason)
    case run(InvocationID, on: WorkerID)
    /// Tell the worker that nobody waits for this invocation; `ended` follows when it has stopped.
    case cancel(InvocationID)
    /// The invocation has ended without a reply.
    case fail(InvocationID, Failure)
  }

  /// Why a worker must be ended.
  enum KillReason: Equatable {
    /// The worker never answered on its socket.
    case neverReady
    /// A connection broke, and then the worker did not answer.
    case silent
    /// An abandoned invocation did not stop.
    case hung
    /// The worker did not exit when asked to.
    case staying
    /// The worker used more than its function's memory.
    case tooLarge
  }

  /// Why an invocation has ended without a reply.
  enum Failure: Equatable {
    case overloaded
    case timedOut
    case drained
    case crashed(String)
    case cannotStart(String)
    case failed(String)
  }

  /// An invocation that has not been given to a worker.
  struct Waiting: Equatable {
    var id: InvocationID
    var deadline: Duration
  }

  private struct Worker {
    enum Phase: Equatable {
      case starting(by: Duration)
      case ready
      /// A connection broke; new invocations wait until the worker has answered.
      case checking(by: Duration)
      /// Another function needs the place: the worker takes nothing new and goes once it is done.
      case yielding
      /// An abandoned invocation did not stop: the worker takes nothing new and is ended last.
      case condemned
      case stopping(killAt: Duration)
      case killed
    }

    var phase: Phase
    /// Invocations whose callers wait.
    var running = 0
    /// Invocations whose callers have gone but which have not stopped yet.
    var lingering = 0
    var idleSince: Duration

    var load: Int { running + lingering }
    var isLeaving: Bool {
      switch phase {
      case .starting, .ready, .checking: false
      case .yielding, .condemned, .stopping, .killed: true
      }
    }
  }

  private struct Running {
    enum Phase: Equatable {
      case live
      /// The connection broke; the error depends on whether the worker answers or exits.
      case broken
      case lingering(until: Duration)
      case hung
    }

    var worker: WorkerID
    var deadline: Duration
    var bytes: Int
    var phase = Phase.live
    var sendsFailed: Int
  }

  private struct QueueEntry {
    var deadline: Duration
    /// The bytes kept in memory for the invocation.
    var bytes: Int
    var sendsFailed = 0
  }

  /// The failed sends after which a request is given up.
  static let sendsFailedMax = 3

  /// The grace after the drain for what has not ended by itself while the server stops.
  static let drainedGraceMax = Duration.milliseconds(250)

  let limits: Limits
  private var workers: [WorkerID: Worker] = [:]
  private var running: [InvocationID: Running] = [:]
  private var waiting: [InvocationID: QueueEntry] = [:]
  /// The waiting invocations in order of arrival; ids no longer in `waiting` are skipped.
  private var queue = Deque<InvocationID>()
  private var waitingBytes = 0
  private var workersMade = 0
  private var instancesWanted: Int
  private var failures = 0
  private var startNotBefore = Duration.zero
  private var drainBy: Duration?

  /// Set once the version takes no more invocations.
  private(set) var isRetired = false

  /// The latest time for the next call of `advance`, or nil when nothing is due.
  private(set) var wake: Duration?

  /// A scheduler without workers.
  init(limits: Limits) {
    self.limits = limits
    self.instancesWanted = limits.instancesMin
  }

  /// Whether a retired version has nothing left to do.
  var isFinished: Bool { isRetired && workers.isEmpty && running.isEmpty && waiting.isEmpty }

  /// Whether the invocation waits, runs or lingers.
  func knows(_ id: InvocationID) -> Bool { running[id] != nil || waiting[id] != nil }

  /// How many running invocations have a waiting caller.
  var runningCount: Int { running.count { $0.value.phase == .live } }

  /// How many invocations wait for a worker.
  var waitingCount: Int { waiting.count }

  /// How many workers take invocations now, and how many exist.
  var workerCounts: (ready: Int, all: Int) {
    (workers.count { $0.value.phase == .ready }, workers.count)
  }

  /// Since when an idle worker could have been given up, or nil if there is none.
  var idleSince: Duration? {
    workers.values.filter { $0.phase == .ready && $0.load == 0 }.map(\.idleSince).min()
  }
}

// MARK: - Invocations

extension FunctionScheduler {
  /// Takes an invocation, which then runs, waits, or is refused.
  mutating func submit(
    _ id: InvocationID,
    bytes: Int = 0,
    deadline: Duration,
    now: Duration
  ) -> [Action] {
    guard !isRetired else { return [.fail(id, .drained)] }
    setWake(deadline)
    instancesWanted = max(instancesWanted, limits.instancesMin)
    let entry = QueueEntry(deadline: deadline, bytes: bytes)
    if waiting.isEmpty, let worker = freeWorker() { return [run(id, entry, on: worker)] }
    guard waiting.count < limits.queueMax, waitingBytes + bytes <= limits.queueBytesMax else {
      return [.fail(id, .overloaded)]
    }
    enqueue(id, entry)
    queue.append(id)
    return startIfNeeded(now)
  }

  /// Notes that the worker has answered, or has stopped a cancelled invocation.
  mutating func ended(_ id: InvocationID, now: Duration) -> [Action] {
    guard let invocation = running[id] else { return [] }
    if invocation.phase == .live { failures = 0 }
    return removeRunning(id, now)
  }

  /// Notes that the caller has gone.
  mutating func cancelled(_ id: InvocationID, now: Duration) -> [Action] {
    if dequeue(id) != nil {
      compactQueue()
      return []
    }
    guard let invocation = running[id] else { return [] }
    switch invocation.phase {
    case .live: return linger(id, now)
    case .broken: return removeRunning(id, now)
    case .lingering, .hung: return []
    }
  }

  /// Notes that the invocation's connection ended without an answer.
  mutating func broke(_ id: InvocationID, now: Duration) -> [Action] {
    guard let invocation = running[id] else { return [] }
    guard invocation.phase == .live else { return removeRunning(id, now) }
    running[id]?.phase = .broken
    return check(invocation.worker, now)
  }

  /// Notes that the request never reached the worker, so another worker may have it.
  mutating func notSent(_ id: InvocationID, now: Duration) -> [Action] {
    guard let invocation = running[id] else { return [] }
    var actions = check(invocation.worker, now)
    if invocation.phase == .live {
      if invocation.sendsFailed + 1 < Self.sendsFailedMax, !isRetired {
        enqueue(
          id,
          QueueEntry(
            deadline: invocation.deadline,
            bytes: invocation.bytes,
            sendsFailed: invocation.sendsFailed + 1
          )
        )
        queue.prepend(id)
      } else {
        actions.append(.fail(id, .failed("its worker cannot be reached")))
      }
    }
    actions += removeRunning(id, now)
    actions += dispatch()
    actions += startIfNeeded(now)
    return actions
  }

  private mutating func run(
    _ id: InvocationID,
    _ entry: QueueEntry,
    on worker: WorkerID
  ) -> Action {
    running[id] = Running(
      worker: worker,
      deadline: entry.deadline,
      bytes: entry.bytes,
      sendsFailed: entry.sendsFailed
    )
    workers[worker]?.running += 1
    return .run(id, on: worker)
  }

  private mutating func removeRunning(_ id: InvocationID, _ now: Duration) -> [Action] {
    guard let invocation = running.removeValue(forKey: id) else { return [] }
    switch invocation.phase {
    case .live, .broken: workers[invocation.worker]?.running -= 1
    case .lingering, .hung: workers[invocation.worker]?.lingering -= 1
    }
    return loadChanged(invocation.worker, now)
  }

  private mutating func linger(_ id: InvocationID, _ now: Duration) -> [Action] {
    guard let worker = running[id]?.worker else { return [] }
    let until = end(of: limits.cancelGrace, now)
    running[id]?.phase = .lingering(until: until)
    workers[worker]?.running -= 1
    workers[worker]?.lingering += 1
    setWake(until)
    return [.cancel(id)] + loadChanged(worker, now)
  }

  /// When a grace that begins now ends.
  private func end(of grace: Duration, _ now: Duration) -> Duration {
    let end = now + grace
    return drainBy.map { min(end, max(now, $0) + Self.drainedGraceMax) } ?? end
  }

  /// The least loaded worker that can take another invocation.
  private func freeWorker() -> WorkerID? {
    var best: (id: WorkerID, load: Int)?
    for (id, worker) in workers where worker.phase == .ready && worker.load < limits.concurrency {
      if let best, best.load < worker.load || best.load == worker.load && best.id.number < id.number
      {
        continue
      }
      best = (id, worker.load)
    }
    return best?.id
  }

  private mutating func dispatch() -> [Action] {
    guard !waiting.isEmpty else { return [] }
    var actions: [Action] = []
    while !waiting.isEmpty, let worker = freeWorker(), let id = queue.popFirst() {
      guard let entry = dequeue(id) else { continue }
      actions.append(run(id, entry, on: worker))
    }
    return actions
  }

  private mutating func enqueue(_ id: InvocationID, _ entry: QueueEntry) {
    waiting[id] = entry
    waitingBytes += entry.bytes
  }

  private mutating func dequeue(_ id: InvocationID) -> QueueEntry? {
    guard let entry = waiting.removeValue(forKey: id) else { return nil }
    waitingBytes -= entry.bytes
    return entry
  }

  private mutating func emptyQueue() {
    waiting = [:]
    waitingBytes = 0
    queue = []
  }

  /// Drops ids of departed invocations, so that waiting ones bound the queue.
  private mutating func compactQueue() {
    if queue.count > 2 * waiting.count + 16 {
      queue.removeAll { waiting[$0] == nil }
    }
  }
}

// MARK: - Workers

extension FunctionScheduler {
  /// Starts workers ahead of the first invocation.
  mutating func warmUp(now: Duration) -> [Action] {
    instancesWanted = max(1, limits.instancesMin)
    defer { instancesWanted = limits.instancesMin }
    return startIfNeeded(now)
  }

  /// Notes that the worker answers on its socket.
  mutating func workerReady(_ id: WorkerID, now: Duration) -> [Action] {
    switch workers[id]?.phase {
    case .starting, .checking: break
    default: return []
    }
    workers[id]?.phase = .ready
    var actions: [Action] = []
    for (invocation, state) in running where state.worker == id && state.phase == .broken {
      actions.append(.fail(invocation, .crashed("its worker closed the connection")))
      actions += removeRunning(invocation, now)
    }
    actions += loadChanged(id, now)
    return actions
  }

  /// Notes that the process has ended or could not be started; `detail` says how.
  mutating func workerExited(_ id: WorkerID, detail: String, now: Duration) -> [Action] {
    guard let worker = workers.removeValue(forKey: id) else { return [] }
    var actions: [Action] = []
    for (invocation, state) in running where state.worker == id {
      running[invocation] = nil
      if state.phase == .live || state.phase == .broken {
        actions.append(.fail(invocation, .crashed(detail)))
      }
    }
    switch worker.phase {
    case .starting:
      noteFailure(now)
      actions += failWaiting(detail)
    case .ready, .checking: noteFailure(now)
    case .yielding, .condemned, .stopping, .killed: break
    }
    return actions + startIfNeeded(now)
  }

  /// Ends a worker that uses too much memory; its invocations fail with it.
  mutating func workerTooLarge(_ id: WorkerID, now: Duration) -> [Action] {
    guard let worker = workers[id], worker.phase != .killed else { return [] }
    if !worker.isLeaving { noteFailure(now) }
    return kill(id, .tooLarge)
  }

  /// Gives up a worker to make room for another function's.
  ///
  /// Takes the worker idle longest. When none is idle and `mayBeBusy` allows it, takes the least
  /// busy of several, once it is done. The number in `minInstances` is restored from the next
  /// invocation on.
  mutating func yieldWorker(mayBeBusy: Bool, now: Duration) -> (WorkerID?, [Action]) {
    let ready = workers.filter { $0.value.phase == .ready }
    let idle = ready.filter { $0.value.load == 0 }
    if let id = idle.min(by: { $0.value.idleSince < $1.value.idleSince })?.key {
      let actions = terminate(id, now)
      instancesWanted = min(instancesWanted, workers.values.count { !$0.isLeaving })
      return (id, actions)
    }
    guard mayBeBusy, ready.count > 1,
      let id = ready.min(by: { $0.value.load < $1.value.load })?.key
    else { return (nil, []) }
    workers[id]?.phase = .yielding
    instancesWanted = min(instancesWanted, workers.values.count { !$0.isLeaving })
    return (id, [])
  }

  /// Fails the waiting invocations, because no worker can be had.
  private mutating func failWaiting(_ detail: String) -> [Action] {
    guard workers.values.allSatisfy(\.isLeaving) else { return [] }
    defer { emptyQueue() }
    return queue.compactMap { waiting[$0] == nil ? nil : .fail($0, .cannotStart(detail)) }
  }

  private mutating func noteFailure(_ now: Duration) {
    failures += 1
    startNotBefore = now + limits.backOff.delay(afterFailures: failures)
  }

  private mutating func startIfNeeded(_ now: Duration) -> [Action] {
    guard !isRetired else { return [] }
    var live = 0
    var starting = 0
    for worker in workers.values where !worker.isLeaving {
      live += 1
      if worker.phase != .ready { starting += 1 }
    }
    var actions: [Action] = []
    while live < limits.instancesMax,
      live < instancesWanted || waiting.count > starting * limits.concurrency
    {
      guard now >= startNotBefore else {
        setWake(startNotBefore)
        break
      }
      workersMade += 1
      let id = WorkerID(number: workersMade)
      let by = now + limits.startTimeout
      workers[id] = Worker(phase: .starting(by: by), idleSince: now)
      setWake(by)
      live += 1
      starting += 1
      actions.append(.start(id))
    }
    return actions
  }

  private mutating func check(_ id: WorkerID, _ now: Duration) -> [Action] {
    guard workers[id]?.phase == .ready else { return [] }
    let by = now + limits.startTimeout
    workers[id]?.phase = .checking(by: by)
    setWake(by)
    return [.check(id)]
  }

  /// The actions that follow from a change of a worker's load.
  private mutating func loadChanged(_ id: WorkerID, _ now: Duration) -> [Action] {
    guard let worker = workers[id] else { return [] }
    switch worker.phase {
    case .condemned where worker.running == 0: return kill(id, .hung)
    case .ready where worker.load == 0 && isRetired: return terminate(id, now)
    case .yielding where worker.load == 0: return terminate(id, now)
    case .ready:
      if worker.load == 0 {
        workers[id]?.idleSince = now
        setWake(now + limits.idleTimeout)
      }
      return dispatch()
    default: return []
    }
  }

  private mutating func terminate(_ id: WorkerID, _ now: Duration) -> [Action] {
    let killAt = end(of: limits.terminateGrace, now)
    workers[id]?.phase = .stopping(killAt: killAt)
    setWake(killAt)
    return [.terminate(id)]
  }

  private mutating func kill(_ id: WorkerID, _ reason: KillReason) -> [Action] {
    workers[id]?.phase = .killed
    return [.kill(id, reason)]
  }
}

// MARK: - Time and the end

extension FunctionScheduler {
  /// Does what is due; call it at `wake` at the latest.
  mutating func advance(to now: Duration) -> [Action] {
    guard let due = wake, due <= now else { return [] }
    var actions = endOverdueInvocations(now)
    actions += endOverdueWorkers(now)
    actions += startIfNeeded(now)
    findWake(now)
    return actions
  }

  /// Takes no more invocations and lets the workers go once they are done.
  ///
  /// Returns the waiting invocations, oldest first, so that the next version can have them. With
  /// `drainBy`, whatever still runs at that time is ended.
  mutating func retire(drainBy: Duration? = nil, now: Duration) -> ([Waiting], [Action]) {
    isRetired = true
    self.drainBy = drainBy
    if let drainBy {
      setWake(drainBy)
      let last = drainBy + Self.drainedGraceMax
      for (id, invocation) in running {
        guard case .lingering(let until) = invocation.phase, until > last else { continue }
        running[id]?.phase = .lingering(until: last)
        setWake(last)
      }
      for (id, worker) in workers {
        guard case .stopping(let killAt) = worker.phase, killAt > last else { continue }
        workers[id]?.phase = .stopping(killAt: last)
        setWake(last)
      }
    }
    let left = queue.compactMap { id in
      waiting[id].map { Waiting(id: id, deadline: $0.deadline) }
    }
    emptyQueue()
    var actions: [Action] = []
    for (id, worker) in workers {
      switch worker.phase {
      case .ready: actions += loadChanged(id, now)
      case .starting: actions += terminate(id, now)
      case .checking, .yielding, .condemned, .stopping, .killed: break
      }
    }
    return (left, actions)
  }

  private mutating func endOverdueInvocations(_ now: Duration) -> [Action] {
    var actions: [Action] = []
    for (id, entry) in waiting where entry.deadline <= now {
      _ = dequeue(id)
      // A handler that never began has not taken too long.
      actions.append(.fail(id, limits.isFedByTheServer ? .overloaded : .timedOut))
    }
    compactQueue()
    for (id, invocation) in running {
      switch invocation.phase {
      case .live, .broken:
        let isDrained = drainBy.map { $0 <= now } ?? false
        guard isDrained || invocation.deadline <= now else { continue }
        actions.append(.fail(id, invocation.deadline <= now ? .timedOut : .drained))
        actions += invocation.phase == .live ? linger(id, now) : removeRunning(id, now)
      case .lingering(let until) where until <= now:
        running[id]?.phase = .hung
        switch workers[invocation.worker]?.phase {
        case .ready, .checking, .yielding: workers[invocation.worker]?.phase = .condemned
        default: break
        }
        actions += loadChanged(invocation.worker, now)
      case .lingering, .hung: continue
      }
    }
    return actions
  }

  private mutating func endOverdueWorkers(_ now: Duration) -> [Action] {
    var actions: [Action] = []
    var live = workers.values.count { !$0.isLeaving }
    for (id, worker) in workers {
      switch worker.phase {
      case .starting(let by) where by <= now:
        actions += kill(id, .neverReady)
        noteFailure(now)
        actions += failWaiting("it did not answer within \(limits.startTimeout)")
      case .checking(let by) where min(by, drainBy ?? by) <= now: actions += kill(id, .silent)
      case .stopping(let killAt) where killAt <= now: actions += kill(id, .staying)
      case .ready
      where worker.load == 0 && live > limits.instancesMin
        && worker.idleSince + limits.idleTimeout <= now:
        live -= 1
        actions += terminate(id, now)
      default: continue
      }
    }
    return actions
  }

  private mutating func setWake(_ time: Duration) {
    wake = min(wake ?? time, time)
  }

  private mutating func findWake(_ now: Duration) {
    wake = nil
    for entry in waiting.values { setWake(entry.deadline) }
    for invocation in running.values {
      switch invocation.phase {
      case .live, .broken: setWake(min(invocation.deadline, drainBy ?? invocation.deadline))
      case .lingering(let until): setWake(until)
      case .hung: continue
      }
    }
    let live = workers.values.count { !$0.isLeaving }
    for worker in workers.values {
      switch worker.phase {
      case .starting(let by): setWake(by)
      case .checking(let by): setWake(min(by, drainBy ?? by))
      case .stopping(let killAt): setWake(killAt)
      case .ready where worker.load == 0 && live > limits.instancesMin:
        setWake(worker.idleSince + limits.idleTimeout)
      case .ready, .yielding, .condemned, .killed: continue
      }
    }
    if now < startNotBefore, !isRetired, !waiting.isEmpty || live < instancesWanted {
      setWake(startNotBefore)
    }
  }
}
