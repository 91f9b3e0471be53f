import FlowControl

/// The scheduler that assigns invocations to workers for one deployed version of a function.
///
/// It knows workers and invocations only by number and performs no I/O. Each event returns actions,
/// which the owner carries out in order. Times are durations since the pool was created.
///
/// An isolated invocation has a worker to itself, so that a crash concerns no other.
struct FunctionScheduler {
  /// The identity of a worker process, from the decision to start it until it has exited.
  struct WorkerID: Hashable, Sendable {
    var number: Int
  }

  /// The identity of one call of the function; later calls have higher numbers.
  struct InvocationID: Hashable, Sendable {
    var number: UInt64
  }

  /// An instruction to the owner of the scheduler.
  enum Action: Equatable {
    /// Start the worker once the fleet has a place for it; the owner then calls `workerLaunched`.
    case start(WorkerID)
    /// Probe the worker; the owner then calls `workerReady` or `workerExited`.
    case check(WorkerID)
    /// Ask the worker to finish and exit, or do not start it at all.
    case terminate(WorkerID)
    /// End the worker and all its descendants.
    case kill(WorkerID, KillReason)
    case run(InvocationID, on: WorkerID)
    /// Notify the worker that the caller has left; `ended` follows when the invocation has stopped.
    case cancel(InvocationID)
    /// Report to the caller that the invocation has ended without a response.
    case fail(InvocationID, Failure)
    /// Fail the start, because the first worker has waited too long for a place.
    case giveUpStart
  }

  /// The reason why a worker must be killed.
  enum KillReason: Equatable {
    /// The worker never answered on its socket.
    case neverReady
    /// A connection broke, and then the worker did not answer.
    case silent
    /// A crash report did not end.
    case crashing
    /// The time that its version had to finish was over, before any limit of its own.
    case drained
    /// An abandoned invocation did not stop.
    case hung
    /// The worker did not exit when asked to.
    case staying
    /// The worker used more than its function's memory.
    case tooLarge
  }

  /// The reason why an invocation has ended without a response.
  enum Failure: Equatable {
    case overloaded
    /// No worker was free within the time that the invocation may wait.
    case waitTimedOut
    /// No place was free for a first worker within the time that the invocation may wait.
    case placeless
    /// The invocation exceeded its time limit.
    case timedOut
    case drained
    /// Its worker died; `isShared` is true if the worker ran other invocations, too.
    case crashed(String, isShared: Bool)
    case cannotStart(String)
    /// The worker closed the connection in the middle of its response and lives on.
    ///
    /// A handler that throws while it streams ends this way: HTTP has no other sign for it.
    case cut
    case failed(String)
  }

  /// An invocation that has not been assigned to a worker.
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
    /// True if the connection broke while the worker streamed its response.
    var isCut = false
    /// The invocation's queue entry, in case it has to wait again.
    var entry: InvocationQueue.Entry
  }

  /// The number of failed sends after which a request is abandoned.
  static let sendsFailedMax = 3

  /// The grace after a drain for invocations and workers that have not ended by themselves.
  static let drainedGraceMax = Duration.milliseconds(250)

  /// The grace of an idle worker that gives its place to another function.
  static let yieldGraceMax = Duration.milliseconds(250)

  /// The maximum pause after the death of a worker with an isolated invocation.
  ///
  /// The clients that request isolation limit the attempts of each invocation, so this pause need
  /// not limit the number of deaths.
  static let pauseApartMax = Duration.seconds(1)

  let limits: Limits
  var workers: WorkerRoster
  var running: [InvocationID: Running] = [:]
  var queue: InvocationQueue
  /// The times at which waiting, running and lingering invocations exceed their limits.
  var deadlines = Deadlines<InvocationID>()
  var instancesWanted: Int
  /// The pause after the death of a worker at its start or with ordinary invocations.
  var pause: RestartPause
  /// The pause after the death of a worker with an isolated invocation; ordinary ones continue.
  var pauseIsolated: RestartPause
  var drainBy: Duration?

  /// The time since which no place is left for a first worker.
  ///
  /// Nil if there is a place or no worker is wanted.
  var placelessSince: Duration?

  /// True if the start has failed because the first worker has no place.
  var isStartGivenUp = false

  /// A description of the last failed start; nil once a worker has answered.
  var startFailure: String?

  /// True once the version takes no more invocations.
  var isRetired = false

  /// The latest time for the next call of `advance`; nil if nothing is due.
  var wake: Duration?

  init(limits: Limits) {
    self.limits = limits
    workers = WorkerRoster(concurrency: limits.concurrency)
    queue = InvocationQueue(countMax: limits.queueMax, bytesMax: limits.queueBytesMax)
    instancesWanted = limits.instancesMin
    pause = RestartPause(limits.backOff)
    var backOff = limits.backOff
    backOff.maximum = min(backOff.maximum, Self.pauseApartMax)
    pauseIsolated = RestartPause(backOff)
  }

  /// True if the version is retired and has no invocations or workers left.
  var isFinished: Bool {
    isRetired && running.isEmpty && queue.isEmpty && workers.all.isEmpty
  }

  /// True if the invocation waits, runs or lingers.
  func knows(_ id: InvocationID) -> Bool { running[id] != nil || queue.contains(id) }

  /// The number of running invocations whose caller is still waiting.
  var runningCount: Int { running.count { $0.value.phase == .live } }

  var waitingCount: Int { queue.count }

  /// The number of workers that take invocations now, and the number of all workers.
  var workerCounts: (ready: Int, all: Int) {
    (workers.all.count { $0.value.phase == .ready }, workers.all.count)
  }

  /// The time since which the longest-idle worker has been idle; nil if none is idle.
  var idleSince: Duration? { workers.idleLongest?.since }
}

// MARK: - Invocations

extension FunctionScheduler {
  /// Accepts an invocation, and runs, queues or refuses it.
  ///
  /// It may run for `timeout` once a worker has it. It waits until `waitsUntil`, or for as long as
  /// the limits allow. With `runsIsolated` it gets a worker to itself.
  mutating func submit(
    _ id: InvocationID,
    bytes: Int = 0,
    timeout: Duration,
    waitsUntil: Duration? = nil,
    runsIsolated: Bool = false,
    now: Duration
  ) -> [Action] {
    guard !isRetired else { return [.fail(id, .drained)] }
    instancesWanted = max(instancesWanted, limits.instancesMin)
    let entry = InvocationQueue.Entry(
      timeout: timeout,
      waitsUntil: waitsUntil ?? now + (limits.queueTimeout ?? timeout),
      bytes: bytes,
      runsIsolated: runsIsolated && limits.isolatedMax > 0
    )
    if workers.tally.all == 0 { placeFound() }
    var actions: [Action] = []
    if queue.count(isolated: entry.runsIsolated) == 0,
      let worker = place(isolated: entry.runsIsolated, now)
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

  /// Records that the worker has responded, or has stopped a cancelled invocation.
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

  /// Records that the caller has left.
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

  /// Records that the invocation's connection closed without a response.
  ///
  /// If `isStreaming` is true, a part of the response had come.
  mutating func broke(
    _ id: InvocationID,
    isStreaming: Bool = false,
    now: Duration
  ) -> [Action] {
    guard let invocation = running[id] else { return [] }
    var actions: [Action] = []
    suspect(invocation.worker, now, &actions)
    if invocation.phase == .live {
      running[id]?.phase = .broken
      running[id]?.isCut = isStreaming
    } else {
      removeRunning(id, now, &actions)
    }
    goOn(now, &actions)
    return actions
  }

  /// Records that the request never reached the worker, so that another worker may run it.
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

  /// Assigns waiting invocations to free workers, then adjusts the number of workers.
  mutating func goOn(_ now: Duration, _ actions: inout [Action]) {
    while let (id, worker) = next(now), let entry = queue.remove(id) {
      run(id, entry, on: worker, now, &actions)
    }
    adjustWorkers(now, &actions)
  }

  /// Returns the waiting invocation to run next, and the worker for it.
  ///
  /// If both an ordinary and an isolated invocation could run, the older one comes first. While
  /// ordinary invocations are paused after a crash, workers serve only isolated invocations.
  private func next(_ now: Duration) -> (InvocationID, WorkerID)? {
    guard !queue.isEmpty else { return nil }
    let lanes = [false, true].compactMap { runsIsolated -> (InvocationID, WorkerID)? in
      guard let first = queue.first(isolated: runsIsolated),
        let worker = place(isolated: runsIsolated, now)
      else { return nil }
      return (first, worker)
    }
    return now < pause.end ? lanes.last : lanes.min { $0.0.number < $1.0.number }
  }

  private func place(isolated: Bool, _ now: Duration) -> WorkerID? {
    if isolated {
      let isHeld = now < pauseIsolated.end || workers.tally.reserved >= limits.isolatedMax
      return isHeld ? nil : workers.freeForOneAlone
    }
    // A worker beyond the maximum is reserved for isolated invocations.
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
      worker.isReserved = entry.runsIsolated
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
      // In any other phase, the worker may still die because of the invocation that ended here.
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
    if invocation.entry.runsIsolated { pauseIsolated.forget() } else { pause.forget() }
  }

  mutating func setDeadline(_ id: InvocationID, _ time: Duration) {
    deadlines.set(id, time)
    setWake(time)
  }
}
