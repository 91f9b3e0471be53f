import DocumentModel

/// The reasons why deliveries of a function wait.
extension FunctionBacklog {
  /// The state of a function that the current deployment does not contain.
  struct Undeployed: Sendable, Hashable {
    var since: Timestamp
    /// The time at which the deliveries that still wait are given up.
    var until: Timestamp
    /// True if the waiting deliveries were given up.
    var isGivenUp = false
  }

  /// Suspends the function until it is deployed again.
  ///
  /// Its waiting deliveries leave the window and stay in storage. Running deliveries continue, and
  /// their outcomes count.
  mutating func suspend(_ undeployed: Undeployed) {
    self.undeployed = undeployed
    dropWaiting()
  }

  /// Lets deliveries start again after the function was deployed again.
  mutating func resume() {
    undeployed = nil
  }

  /// Records that the deliveries that waited for the undeployed function were given up.
  mutating func noteGivenUp() { undeployed?.isGivenUp = true }

  /// Indicates whether deliveries of the undeployed function are to be given up at `now`.
  func awaitsGivingUp(at now: Timestamp) -> Bool {
    guard let undeployed else { return false }
    return !undeployed.isGivenUp && count > 0 && undeployed.until <= now
  }

  /// Returns the reason that blocks all deliveries of the function at `now`; nil if there is none.
  func holdUp(at now: Timestamp) -> WaitReason? {
    if let undeployed {
      return .notDeployed(function, since: undeployed.since, keptUntil: undeployed.until)
    }
    if isPaused { return .queuePaused(function) }
    guard let unstartableSince else { return nil }
    let next = startsNotBefore.flatMap { $0 > now ? $0 : nil }
    return .noWorker(since: unstartableSince, error: startError, nextAttempt: next)
  }

  /// Returns the reason why a pending delivery does not run at `now`.
  ///
  /// Returns nil if the delivery runs or its outcome is being stored. `earlier` is the first
  /// delivery of its lane that has a row by lane.
  func waitReason(of delivery: Delivery, behind earlier: EventPlace?, at now: Timestamp)
    -> WaitReason?
  {
    let place = delivery.id.place
    let phase: Phase? = self.phase(place)
    guard phase != .running, phase != .saving else { return nil }
    if let reason = holdUp(at: now) { return reason }
    if phase == nil, !delivery.isDue(at: now) {
      return delivery.attempts + delivery.crashes > 0
        ? .nextAttempt(delivery.dueTime) : .notDue(delivery.dueTime)
    }
    let inWindow = delivery.lane.flatMap { first(of: $0) }
    let ahead = [inWindow, phase == nil ? earlier : nil].compactMap(\.self).min()
    if phase != .ready, let ahead, ahead < place {
      let id = DeliveryID(ahead, function)
      return .earlierEvent(id, isRunning: self.phase(ahead) == .running)
    }
    if runningCount >= concurrentMax { return .concurrency(concurrentMax) }
    if let time = rateTime, time > now { return .rateLimit(until: time) }
    return .turn
  }
}
