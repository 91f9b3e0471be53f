extension FunctionScheduler {
  /// Performs all work that is due; must be called at `wake` at the latest.
  mutating func advance(to now: Duration) -> [Action] {
    guard let due = wake, due <= now else { return [] }
    var actions: [Action] = []
    while let id = deadlines.popDue(now) { endOverdue(id, now, &actions) }
    giveUpStart(now, &actions)
    endDrained(now, &actions)
    endOverdueWorkers(now, &actions)
    goOn(now, &actions)
    findWake(now)
    return actions
  }

  /// Ends the invocations that a retired version still runs.
  mutating func drain(now: Duration) -> [Action] {
    guard isRetired, drainBy.map({ $0 > now }) ?? true else { return [] }
    drainBy = now
    shortenGraces(to: now)
    return advance(to: now)
  }

  /// Stops accepting invocations, and ends the workers once they are done.
  ///
  /// Returns the waiting invocations, oldest first, so that the next version can take them over.
  /// With `drainBy`, invocations still running at that time are ended.
  mutating func retire(drainBy: Duration? = nil, now: Duration) -> ([Waiting], [Action]) {
    isRetired = true
    self.drainBy = drainBy
    let left = queue.removeAll().map { Waiting(id: $0.id, waitsUntil: $0.entry.waitsUntil) }
    for waiting in left { deadlines.remove(waiting.id) }
    if let drainBy { shortenGraces(to: drainBy) }
    var actions: [Action] = []
    for (id, worker) in workers.all {
      switch worker.phase {
      case .ready: loadChanged(id, now, &actions)
      case .queued, .starting: terminate(id, within: limits.terminateGrace, now, &actions)
      case .checking, .crashing, .yielding, .condemned, .stopping, .killed: break
      }
    }
    return (left, actions)
  }

  /// Limits the graces already in progress to `drainedGraceMax` after the drain.
  private mutating func shortenGraces(to drainBy: Duration) {
    setWake(drainBy)
    let last = drainBy + Self.drainedGraceMax
    for (id, invocation) in running where invocation.phase == .lingering {
      if let until = deadlines[id], until > last { setDeadline(id, last) }
    }
    for (id, worker) in workers.all {
      guard case .stopping(let killAt) = worker.phase, killAt > last else { continue }
      workers.update(id) { $0.phase = .stopping(killAt: last) }
      setWake(last)
    }
  }

  /// Returns the time at which a grace that begins now ends.
  func end(of grace: Duration, _ now: Duration) -> Duration {
    let end = now + grace
    return drainBy.map { min(end, max(now, $0) + Self.drainedGraceMax) } ?? end
  }

  private mutating func endOverdue(
    _ id: InvocationID,
    _ now: Duration,
    _ actions: inout [Action]
  ) {
    if queue.remove(id) != nil {
      actions.append(.fail(id, placelessSince == nil ? .waitTimedOut : .placeless))
      return
    }
    guard let invocation = running[id] else { return }
    switch invocation.phase {
    case .live, .broken: abandon(id, .timedOut, now, &actions)
    case .lingering:
      running[id]?.phase = .hung
      workers.update(invocation.worker) { worker in
        switch worker.phase {
        case .ready, .checking, .yielding: worker.phase = .condemned
        default: break
        }
      }
      loadChanged(invocation.worker, now, &actions)
    case .hung: return
    }
  }

  /// Ends the invocations that still run when the time of the drain is up.
  private mutating func endDrained(_ now: Duration, _ actions: inout [Action]) {
    guard let drainBy, drainBy <= now else { return }
    for (id, invocation) in running where invocation.phase == .live || invocation.phase == .broken {
      abandon(id, .drained, now, &actions)
    }
  }

  private mutating func abandon(
    _ id: InvocationID,
    _ failure: Failure,
    _ now: Duration,
    _ actions: inout [Action]
  ) {
    actions.append(.fail(id, failure))
    if running[id]?.phase == .live {
      linger(id, now, &actions)
    } else {
      removeRunning(id, now, &actions)
    }
  }

  private mutating func endOverdueWorkers(_ now: Duration, _ actions: inout [Action]) {
    for (id, worker) in workers.all {
      switch worker.phase {
      case .starting(let by) where by <= now:
        kill(id, .neverReady, &actions)
        startFailed("it did not answer within \(limits.startTimeout)", now, &actions)
      case .checking(let by) where min(by, drainBy ?? by) <= now:
        beginPause(after: worker, now)
        kill(id, by <= now ? .silent : .drained, &actions)
      case .crashing(let by) where min(by, drainBy ?? by) <= now:
        kill(id, by <= now ? .crashing : .drained, &actions)
      case .stopping(let killAt) where killAt <= now: kill(id, .staying, &actions)
      default: continue
      }
    }
    while let idle = workers.idleLongest, workers.tally.all > limits.instancesMin,
      idle.since + limits.idleTimeout <= now
    {
      terminate(idle.id, within: limits.terminateGrace, now, &actions)
    }
  }

  mutating func setWake(_ time: Duration) {
    wake = min(wake ?? time, time)
  }

  /// Recomputes the next time at which work is due, after all due work has been performed.
  private mutating func findWake(_ now: Duration) {
    wake = deadlines.first
    if let drainBy, now < drainBy { setWake(drainBy) }
    if !isRetired, let startGivesUp { setWake(startGivesUp) }
    for worker in workers.all.values {
      switch worker.phase {
      case .starting(let by): setWake(by)
      case .checking(let by), .crashing(let by): setWake(min(by, drainBy ?? by))
      case .stopping(let killAt): setWake(killAt)
      case .queued, .ready, .yielding, .condemned, .killed: continue
      }
    }
    if let idle = workers.idleLongest, workers.tally.all > limits.instancesMin {
      setWake(idle.since + limits.idleTimeout)
    }
    if !isRetired, !queue.isEmpty || workers.tally.all < instancesWanted {
      for end in [pause.end, pauseIsolated.end] where now < end { setWake(end) }
    }
  }
}
