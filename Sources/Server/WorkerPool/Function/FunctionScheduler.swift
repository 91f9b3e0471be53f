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

  /// One call of the function; later calls have higher numbers.
  struct InvocationID: Hashable, Sendable {
    var number: UInt64
  }

  /// What the owner does next.
  enum Action: Equatable {
    /// Start the worker once the fleet has a place for it; `workerLaunched` says when.
    case start(WorkerID)
    /// Ask the worker whether it is well; `workerReady` or `workerExited` answers.
    case check(WorkerID)
    /// Ask the worker to finish and exit, or never start it.
    case terminate(WorkerID)
    /// End the worker and all it has started.
    case kill(WorkerID, KillReason)
    case run(InvocationID, on: WorkerID)
    /// Tell the worker that nobody waits for this invocation; `ended` follows when it has stopped.
    case cancel(InvocationID)
    /// The invocation has ended without a reply.
    case fail(InvocationID, Failure)
    /// The first worker has waited for a place for as long as a start may.
    case giveUpStart
  }

  /// Why a worker must be ended.
  enum KillReason: Equatable {
    /// The worker never answered on its socket.
    case neverReady
    /// A connection broke, and then the worker did not answer.
    case silent
    /// A crash report did not end.
    case crashing
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
    /// No worker was free for it in the time that it may wait.
    case waitedInVain
    /// No place was left for a first worker in the time that it may wait.
    case placeless
    /// It ran for longer than it may.
    case timedOut
    case drained
    /// Its worker died; `isShared` when others ran there, too.
    case crashed(String, isShared: Bool)
    case cannotStart(String)
    case failed(String)
  }

  /// An invocation that has not been given to a worker.
  struct Waiting: Equatable {
    var id: InvocationID
    var waitsUntil: Duration
  }

  struct Running {
    enum Phase: Equatable {
      case live
      /// The connection broke; the error depends on whether the worker answers or exits.
      case broken
      case lingering
      case hung
    }

    var worker: WorkerID
    var phase = Phase.live
    /// What the invocation was while it waited, should it have to wait again.
    var entry: InvocationQueue.Entry
  }

  /// The failed sends after which a request is given up.
  static let sendsFailedMax = 3

  /// The grace after the drain for what has not ended by itself while the server stops.
  static let drainedGraceMax = Duration.milliseconds(250)

  /// The grace of an idle worker whose place is another function's.
  static let yieldGraceMax = Duration.milliseconds(250)

  /// The longest pause after the death of a worker with one invocation that ran apart.
  ///
  /// Whoever asks for that bounds the tries of each, so that this pause need not bound the deaths.
  static let pauseApartMax = Duration.seconds(1)

  let limits: Limits
  var workers: WorkerRoster
  var running: [InvocationID: Running] = [:]
  var queue: InvocationQueue
  /// When what waits, runs or lingers has done so for long enough.
  var deadlines = Deadlines<InvocationID>()
  var instancesWanted: Int
  /// After the death of a worker at its start, or with ordinary invocations.
  var pause: RestartPause
  /// After the death of a worker with one invocation that ran apart; the ordinary ones go on.
  var pauseApart: RestartPause
  var drainBy: Duration?

  /// Since when no place is left for a first worker; nil when there is one, or no worker is wanted.
  var placelessSince: Duration?

  /// Whether the invocations that waited for the first worker have failed for lack of a place.
  var isStartGivenUp = false

  /// How the last start failed, until a worker has answered.
  var startFailure: String?

  /// Set once the version takes no more invocations.
  var isRetired = false

  /// The latest time for the next call of `advance`, or nil when nothing is due.
  var wake: Duration?

  /// A scheduler without workers.
  init(limits: Limits) {
    self.limits = limits
    workers = WorkerRoster(concurrency: limits.concurrency)
    queue = InvocationQueue(countMax: limits.queueMax, bytesMax: limits.queueBytesMax)
    instancesWanted = limits.instancesMin
    pause = RestartPause(limits.backOff)
    var backOff = limits.backOff
    backOff.maximum = min(backOff.maximum, Self.pauseApartMax)
    pauseApart = RestartPause(backOff)
  }

  /// Whether a retired version has nothing left to do.
  var isFinished: Bool {
    isRetired && running.isEmpty && queue.isEmpty && workers.all.isEmpty
  }

  /// Whether the invocation waits, runs or lingers.
  func knows(_ id: InvocationID) -> Bool { running[id] != nil || queue.contains(id) }

  /// How many running invocations have a waiting caller.
  var runningCount: Int { running.count { $0.value.phase == .live } }

  /// How many invocations wait for a worker.
  var waitingCount: Int { queue.count }

  /// How many workers take invocations now, and how many exist.
  var workerCounts: (ready: Int, all: Int) {
    (workers.all.count { $0.value.phase == .ready }, workers.all.count)
  }

  /// Since when an idle worker could have been given up, or nil if there is none.
  var idleSince: Duration? { workers.idleLongest?.since }
}

// MARK: - Invocations

extension FunctionScheduler {
  /// Takes an invocation, which then runs, waits, or is refused.
  ///
  /// It may run for `timeout` once a worker has it, and wait until `waitsUntil` or for as long as
  /// the limits say. With `runsApart` it gets a worker that runs nothing else meanwhile.
  mutating func submit(
    _ id: InvocationID,
    bytes: Int = 0,
    timeout: Duration,
    waitsUntil: Duration? = nil,
    runsApart: Bool = false,
    now: Duration
  ) -> [Action] {
    guard !isRetired else { return [.fail(id, .drained)] }
    instancesWanted = max(instancesWanted, limits.instancesMin)
    let entry = InvocationQueue.Entry(
      timeout: timeout,
      waitsUntil: waitsUntil ?? now + (limits.queueTimeout ?? timeout),
      bytes: bytes,
      runsApart: runsApart && limits.apartMax > 0
    )
    if workers.tally.all == 0 { placeFound() }
    var actions: [Action] = []
    if queue.count(runningApart: entry.runsApart) == 0,
      let worker = place(runningApart: entry.runsApart, now)
    {
      run(id, entry, on: worker, now, &actions)
    } else if queue.takes(bytes: bytes) {
      queue.append(id, entry)
      setDeadline(id, end(ofWait: entry, now))
    } else {
      return [.fail(id, .overloaded)]
    }
    adjustWorkers(now, &actions)
    return actions
  }

  /// Notes that the worker has answered, or has stopped a cancelled invocation.
  mutating func ended(_ id: InvocationID, now: Duration) -> [Action] {
    guard let invocation = running[id] else { return [] }
    var actions: [Action] = []
    if invocation.phase == .live {
      pauseForgotten(by: invocation)
    } else if !isRetired {
      suspect(invocation.worker, now, &actions)
    }
    removeRunning(id, now, &actions)
    goOn(now, &actions)
    return actions
  }

  /// Notes that the caller has gone.
  mutating func cancelled(_ id: InvocationID, now: Duration) -> [Action] {
    var actions: [Action] = []
    if queue.remove(id) != nil {
      deadlines.remove(id)
    } else if let invocation = running[id] {
      switch invocation.phase {
      case .live: linger(id, now, &actions)
      case .broken: removeRunning(id, now, &actions)
      case .lingering, .hung: return []
      }
    }
    goOn(now, &actions)
    return actions
  }

  /// Notes that the invocation's connection ended without an answer.
  mutating func broke(_ id: InvocationID, now: Duration) -> [Action] {
    guard let invocation = running[id] else { return [] }
    var actions: [Action] = []
    suspect(invocation.worker, now, &actions)
    if invocation.phase == .live {
      running[id]?.phase = .broken
    } else {
      removeRunning(id, now, &actions)
    }
    goOn(now, &actions)
    return actions
  }

  /// Notes that the request never reached the worker, so another worker may have it.
  mutating func notSent(_ id: InvocationID, now: Duration) -> [Action] {
    guard let invocation = running[id] else { return [] }
    var actions: [Action] = []
    check(invocation.worker, now, &actions)
    removeRunning(id, now, &actions)
    if invocation.phase == .live {
      var entry = invocation.entry
      entry.sendsFailed += 1
      if entry.sendsFailed < Self.sendsFailedMax, !isRetired {
        queue.prepend(id, entry)
        setDeadline(id, entry.waitsUntil)
      } else {
        actions.append(.fail(id, .failed("its worker cannot be reached")))
      }
    }
    goOn(now, &actions)
    return actions
  }

  /// Gives waiting invocations to free workers, then starts and ends workers as the rest needs it.
  mutating func goOn(_ now: Duration, _ actions: inout [Action]) {
    while let (id, worker) = next(now), let entry = queue.remove(id) {
      run(id, entry, on: worker, now, &actions)
    }
    adjustWorkers(now, &actions)
  }

  /// The waiting invocation that runs next, and where.
  ///
  /// Of an ordinary one and one that runs apart, the older comes first where both could run. While
  /// ordinary ones have to wait for new workers, a worker that starts is for those that run apart.
  private func next(_ now: Duration) -> (InvocationID, WorkerID)? {
    guard !queue.isEmpty else { return nil }
    let lanes = [false, true].compactMap { runsApart -> (InvocationID, WorkerID)? in
      guard let first = queue.first(runningApart: runsApart),
        let worker = place(runningApart: runsApart, now)
      else { return nil }
      return (first, worker)
    }
    return now < pause.end ? lanes.last : lanes.min { $0.0.number < $1.0.number }
  }

  private func place(runningApart: Bool, _ now: Duration) -> WorkerID? {
    if runningApart {
      let isHeld = now < pauseApart.end || workers.tally.reserved >= limits.apartMax
      return isHeld ? nil : workers.freeForOneAlone
    }
    // A worker beyond the maximum is there for those that run apart.
    return workers.free(mayBeIdle: workers.tally.occupied < limits.instancesMax)
  }

  private mutating func run(
    _ id: InvocationID,
    _ entry: InvocationQueue.Entry,
    on worker: WorkerID,
    _ now: Duration,
    _ actions: inout [Action]
  ) {
    running[id] = Running(worker: worker, entry: entry)
    workers.update(worker) { worker in
      worker.running += 1
      worker.isReserved = entry.runsApart
    }
    setDeadline(id, now + entry.timeout)
    actions.append(.run(id, on: worker))
  }

  mutating func removeRunning(_ id: InvocationID, _ now: Duration, _ actions: inout [Action]) {
    guard let invocation = running.removeValue(forKey: id) else { return }
    deadlines.remove(id)
    workers.update(invocation.worker) { worker in
      switch invocation.phase {
      case .live, .broken: worker.running -= 1
      case .lingering, .hung: worker.lingering -= 1
      }
      guard worker.load == 0 else { return }
      worker.idleSince = now
      // Otherwise the worker may still die of what ran here.
      if worker.phase == .ready { worker.isReserved = false }
    }
    loadChanged(invocation.worker, now, &actions)
  }

  mutating func linger(_ id: InvocationID, _ now: Duration, _ actions: inout [Action]) {
    guard let worker = running[id]?.worker else { return }
    running[id]?.phase = .lingering
    workers.update(worker) { worker in
      worker.running -= 1
      worker.lingering += 1
    }
    setDeadline(id, end(of: limits.cancelGrace, now))
    actions.append(.cancel(id))
    loadChanged(worker, now, &actions)
  }

  private mutating func pauseForgotten(by invocation: Running) {
    if invocation.entry.runsApart { pauseApart.forget() } else { pause.forget() }
  }

  mutating func setDeadline(_ id: InvocationID, _ time: Duration) {
    deadlines.set(id, time)
    setWake(time)
  }
}
