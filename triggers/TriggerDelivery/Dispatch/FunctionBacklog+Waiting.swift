import DocumentModel

/// Why deliveries of a function wait.
extension FunctionBacklog {
  /// A function that the present deployment lacks.
  struct Undeployed: Sendable, Hashable {
    var since: Timestamp
    /// When the deliveries that still wait are given up.
    var until: Timestamp
    /// Whether the deliveries that waited were given up.
    var isGivenUp = false
  }

  /// Stops everything until the function is deployed again, and leaves its deliveries to storage.
  ///
  /// Deliveries that run go on, and their ends count.
  mutating func suspend(_ undeployed: Undeployed) {
    self.undeployed = undeployed
    drop(where: { _ in true }, andIfRunning: { _ in false })
  }

  /// Lets deliveries start again, now that the function is deployed.
  mutating func resume() {
    undeployed = nil
  }

  /// Notes that what waited for an undeployed function was given up.
  mutating func noteGivenUp() { undeployed?.isGivenUp = true }

  /// Whether time alone makes deliveries of an undeployed function end at `now`.
  func awaitsGivingUp(at now: Timestamp) -> Bool {
    guard let undeployed else { return false }
    return !undeployed.isGivenUp && count > 0 && undeployed.until <= now
  }

  /// What holds up all deliveries of the function at `now`; nil when nothing does.
  func holdUp(at now: Timestamp) -> WaitReason? {
    if let undeployed {
      return .notDeployed(function, since: undeployed.since, keptUntil: undeployed.until)
    }
    if isPaused { return .queuePaused(function) }
    guard let unstartableSince else { return nil }
    let next = startsNotBefore.flatMap { $0 > now ? $0 : nil }
    return .noWorker(since: unstartableSince, error: startError, nextAttempt: next)
  }

  /// Why a pending delivery does not run at `now`; nil when it runs or its outcome is being stored.
  ///
  /// `earlier` is the first delivery of its lane that has a row by lane.
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
