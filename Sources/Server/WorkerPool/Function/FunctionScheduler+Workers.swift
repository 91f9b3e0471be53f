extension FunctionScheduler {
  mutating func warmUp(now: Duration) -> [Action] {
    var actions: [Action] = []
    instancesWanted = max(1, limits.instancesMin)
    adjustWorkers(now, &actions)
    instancesWanted = limits.instancesMin
    return actions
  }

  /// Records that the worker has a place, which starts its time to answer.
  mutating func workerLaunched(_ id: WorkerID, now: Duration) {
    guard case .queued = workers[id]?.phase else { return }
    placeFound()
    let by = now + limits.startTimeout
    workers.update(id) { $0.phase = .starting(by: by) }
    setWake(by)
  }

  /// Records that the worker answers on its socket.
  mutating func workerReady(_ id: WorkerID, now: Duration) -> [Action] {
    var actions: [Action] = []
    switch workers[id]?.phase {
    case .starting: setReady(id, now)
    case .checking:
      setReady(id, now)
      let broken = running.filter { $0.value.worker == id && $0.value.phase == .broken }
      let isShared = broken.count { !$0.value.isCut } > 1
      for (invocation, state) in broken {
        let detail = "its worker closed the connection"
        let failure: Failure = state.isCut ? .cut : .crashed(detail, isShared: isShared)
        actions.append(.fail(invocation, failure))
        removeRunning(invocation, now, &actions)
      }
    default: return []
    }
    loadChanged(id, now, &actions)
    goOn(now, &actions)
    return actions
  }

  /// Records that the process has exited, could not be started, or is no longer needed.
  ///
  /// `detail` describes how it ended.
  mutating func workerExited(_ id: WorkerID, detail: String, now: Duration) -> [Action] {
    guard let worker = workers.remove(id) else { return [] }
    var actions: [Action] = []
    let isShared = max(worker.suspects, worker.load) > 1
    for (invocation, state) in running where state.worker == id {
      running[invocation] = nil
      deadlines.remove(invocation)
      if state.phase == .live || state.phase == .broken {
        actions.append(.fail(invocation, .crashed(detail, isShared: isShared)))
      }
    }
    switch worker.phase {
    case .starting: startFailed(detail, now, &actions)
    case .ready, .checking: beginPause(after: worker, now)
    case .queued, .crashing, .yielding, .condemned, .stopping, .killed: break
    }
    goOn(now, &actions)
    return actions
  }

  /// Records that the worker is writing a crash report; its invocations fail at once.
  ///
  /// The report may take many seconds, which their callers need not wait.
  mutating func workerCrashing(_ id: WorkerID, detail: String, now: Duration) -> [Action] {
    guard let worker = workers[id] else { return [] }
    switch worker.phase {
    case .ready, .checking, .yielding: break
    case .queued, .starting, .crashing, .condemned, .stopping, .killed: return []
    }
    if !worker.isLeaving { beginPause(after: worker, now) }
    let by = now + limits.startTimeout
    workers.update(id) { worker in
      worker.phase = .crashing(by: by)
      worker.suspects = max(worker.suspects, worker.load)
    }
    setWake(drainBy.map { min(by, $0) } ?? by)
    var actions: [Action] = []
    let isShared = max(worker.suspects, worker.load) > 1
    for (invocation, state) in running where state.worker == id {
      switch state.phase {
      case .live, .broken:
        actions.append(.fail(invocation, .crashed(detail, isShared: isShared)))
        removeRunning(invocation, now, &actions)
      case .lingering: deadlines.remove(invocation)
      case .hung: break
      }
    }
    goOn(now, &actions)
    return actions
  }

  /// Kills a worker that uses too much memory; its invocations fail with it.
  mutating func workerTooLarge(_ id: WorkerID, now: Duration) -> [Action] {
    guard let worker = workers[id], worker.phase != .killed else { return [] }
    if !worker.isLeaving { beginPause(after: worker, now) }
    var actions: [Action] = []
    kill(id, .tooLarge, &actions)
    return actions
  }

  /// Gives up a worker to make room for a worker of another function.
  ///
  /// Takes the worker that has been idle longest. If none is idle and `mayBeBusy` allows it, takes
  /// the least busy of several, which ends once it is done. The number of workers in `minInstances`
  /// is restored from the next invocation on.
  mutating func yieldWorker(mayBeBusy: Bool, now: Duration) -> (WorkerID?, [Action]) {
    var actions: [Action] = []
    let yielded: WorkerID
    if let idle = workers.idleLongest {
      yielded = idle.id
      terminate(yielded, within: min(limits.terminateGrace, Self.yieldGraceMax), now, &actions)
    } else if mayBeBusy, workers.tally.ready > 1, let busy = workers.leastBusy {
      yielded = busy
      workers.update(yielded) { $0.phase = .yielding }
    } else {
      return (nil, [])
    }
    instancesWanted = min(instancesWanted, workers.tally.all)
    return (yielded, actions)
  }

  /// Starts workers that are needed and allowed, and ends superfluous ones.
  mutating func adjustWorkers(_ now: Duration, _ actions: inout [Action]) {
    guard !isRetired else { return }
    let isPaused = now < pause.end
    let needed = workersNeeded(now)
    while workers.tally.all < instancesAllowed {
      let isWanted = !isPaused && workers.tally.all < instancesWanted
      guard isWanted || workers.tally.onTheWay < needed else { break }
      actions.append(.start(workers.add(.queued(isForQueue: !isWanted))))
    }
    if isPaused, !queue.isEmpty || workers.tally.all < instancesWanted { setWake(pause.end) }
    if now < pauseIsolated.end, queue.count(isolated: true) > 0 { setWake(pauseIsolated.end) }
    while workers.tally.queuedOnDemand > 0, workers.tally.onTheWay > needed,
      let id = workers.lastQueuedForQueue
    {
      terminate(id, within: limits.terminateGrace, now, &actions)
    }
    while workers.tally.all > instancesAllowed, let idle = workers.idleLongest {
      terminate(idle.id, within: limits.terminateGrace, now, &actions)
    }
  }

  /// Adds the actions that follow from a change of a worker's load.
  mutating func loadChanged(_ id: WorkerID, _ now: Duration, _ actions: inout [Action]) {
    guard let worker = workers[id] else { return }
    switch worker.phase {
    case .condemned where worker.running == 0: kill(id, .hung, &actions)
    case .ready where worker.load == 0 && isRetired, .yielding where worker.load == 0:
      terminate(id, within: limits.terminateGrace, now, &actions)
    case .ready where worker.load == 0: setWake(now + limits.idleTimeout)
    default: break
    }
  }

  /// Withholds new invocations from a worker until it answers a check.
  ///
  /// Its connection may have closed because its process ended.
  mutating func suspect(_ id: WorkerID, _ now: Duration, _ actions: inout [Action]) {
    workers.update(id) { $0.suspects = max($0.suspects, $0.load) }
    check(id, now, &actions)
  }

  mutating func check(_ id: WorkerID, _ now: Duration, _ actions: inout [Action]) {
    guard workers[id]?.phase == .ready else { return }
    let by = now + limits.startTimeout
    workers.update(id) { $0.phase = .checking(by: by) }
    setWake(drainBy.map { min(by, $0) } ?? by)
    actions.append(.check(id))
  }

  mutating func terminate(
    _ id: WorkerID,
    within grace: Duration,
    _ now: Duration,
    _ actions: inout [Action]
  ) {
    let killAt = end(of: grace, now)
    workers.update(id) { $0.phase = .stopping(killAt: killAt) }
    setWake(killAt)
    actions.append(.terminate(id))
  }

  mutating func kill(_ id: WorkerID, _ reason: KillReason, _ actions: inout [Action]) {
    workers.update(id) { worker in
      worker.phase = .killed
      worker.suspects = max(worker.suspects, worker.load)
    }
    actions.append(.kill(id, reason))
  }

  /// Records that a worker could not be started.
  ///
  /// If it was the only one, the waiting invocations fail.
  mutating func startFailed(_ detail: String, _ now: Duration, _ actions: inout [Action]) {
    startFailure = detail
    pause.begin(now)
    adjustWorkers(now, &actions)
    guard workers.tally.all == 0 else { return }
    for (id, _) in queue.removeAll() {
      deadlines.remove(id)
      actions.append(.fail(id, .cannotStart(detail)))
    }
  }

  /// Pauses after the death of a started worker.
  ///
  /// The pause delays isolated invocations if the worker ran one, and ordinary invocations
  /// otherwise.
  mutating func beginPause(after worker: WorkerRoster.Worker, _ now: Duration) {
    if worker.isReserved { pauseIsolated.begin(now) } else { pause.begin(now) }
  }

  private mutating func setReady(_ id: WorkerID, _ now: Duration) {
    startFailure = nil
    workers.update(id) { worker in
      worker.phase = .ready
      worker.suspects = 0
      if worker.load == 0 {
        worker.isReserved = false
        worker.idleSince = now
      }
    }
  }

  /// The number of additional workers needed to run every invocation that may leave the queue.
  ///
  /// A pause after crashes of ordinary invocations does not delay isolated ones, and vice versa.
  private func workersNeeded(_ now: Duration) -> Int {
    let ordinary = now < pause.end ? 0 : queue.count(isolated: false)
    let isolated = now < pauseIsolated.end ? 0 : queue.count(isolated: true)
    return (ordinary + limits.concurrency - 1) / limits.concurrency
      + min(isolated, limits.isolatedMax - min(limits.isolatedMax, workers.tally.reserved))
  }

  /// The function's maximum, plus one while an isolated invocation waits or runs.
  private var instancesAllowed: Int {
    let hasIsolated = workers.tally.reserved > 0 || queue.count(isolated: true) > 0
    return limits.instancesMax + (hasIsolated ? 1 : 0)
  }
}
