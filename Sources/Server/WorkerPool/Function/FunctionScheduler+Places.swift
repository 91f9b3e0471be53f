/// A function's wait for a place for its first worker, among all workers of the machine.
extension FunctionScheduler {
  /// Records that no place is left for the function's first worker.
  ///
  /// From then on, no invocation waits longer than `placeTimeout`, until `workerLaunched` is
  /// called.
  mutating func placeMissing(now: Duration) {
    let isQueued = workers.all.values.contains {
      if case .queued = $0.phase { true } else { false }
    }
    guard !isRetired, placelessSince == nil, isQueued else { return }
    placelessSince = now
    for (id, entry) in queue.all { setDeadline(id, end(ofWait: entry, now)) }
    if let startGivesUp { setWake(startGivesUp) }
  }

  /// Records that the first worker has a place, or that no worker is wanted anymore.
  mutating func placeFound() {
    guard placelessSince != nil else { return }
    placelessSince = nil
    isStartGivenUp = false
    for (id, entry) in queue.all { setDeadline(id, entry.waitsUntil) }
  }

  /// Returns the time at which the wait of an invocation that starts to wait now expires.
  func end(ofWait entry: InvocationQueue.Entry, _ now: Duration) -> Duration {
    placelessSince == nil ? entry.waitsUntil : min(entry.waitsUntil, now + limits.placeTimeout)
  }

  /// The time at which the start fails because the first worker has no place; nil if never.
  var startGivesUp: Duration? {
    isStartGivenUp ? nil : placelessSince.map { $0 + limits.startPlaceTimeout }
  }

  /// Fails the start for lack of a place; the first worker stays in the queue for one.
  mutating func giveUpStart(_ now: Duration, _ actions: inout [Action]) {
    guard let end = startGivesUp, end <= now else { return }
    isStartGivenUp = true
    actions.append(.giveUpStart)
  }
}
