/// A function's wait for the first of its places among all workers of the machine.
extension FunctionScheduler {
  /// Notes that no place is left for the function's first worker.
  ///
  /// From then on nothing waits for longer than `placeTimeout`, until `workerLaunched` follows.
  mutating func placeMissing(now: Duration) {
    let isQueued = workers.all.values.contains {
      if case .queued = $0.phase { true } else { false }
    }
    guard !isRetired, placelessSince == nil, isQueued else { return }
    placelessSince = now
    for (id, entry) in queue.all { setDeadline(id, end(ofWait: entry, now)) }
    if let startGivesUp { setWake(startGivesUp) }
  }

  /// Notes that the first worker has a place, or that none is wanted any more.
  mutating func placeFound() {
    guard placelessSince != nil else { return }
    placelessSince = nil
    isStartGivenUp = false
    for (id, entry) in queue.all { setDeadline(id, entry.waitsUntil) }
  }

  /// When an invocation that begins to wait now has waited for long enough.
  func end(ofWait entry: InvocationQueue.Entry, _ now: Duration) -> Duration {
    placelessSince == nil ? entry.waitsUntil : min(entry.waitsUntil, now + limits.placeTimeout)
  }

  /// When the invocations that wait for the first worker fail, because it has no place; nil for never.
  var startGivesUp: Duration? {
    isStartGivenUp ? nil : placelessSince.map { $0 + limits.startPlaceTimeout }
  }

  /// Fails the invocations that wait for the first worker, which stays in the queue for a place.
  mutating func giveUpStart(_ now: Duration, _ actions: inout [Action]) {
    guard let end = startGivesUp, end <= now else { return }
    isStartGivenUp = true
    actions.append(.giveUpStart)
  }
}
