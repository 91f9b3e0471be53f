import DocumentModel
import Synchronization
import TriggerDelivery

extension SuiteCore {
  private enum End {
    case settled
    case failed
    case timedOut(pending: String)
  }

  /// Runs everything that is left, or everything due until `target`, which then is the time.
  ///
  /// Throws `notSettled` when no function has begun for `timeout`, or more than `runsMax` have.
  func settle(until target: Timestamp? = nil, timeout: Duration, runsMax: Int) async throws {
    let runsBefore = recorder.count
    let end = try await withThrowingTaskGroup(of: End.self) { group in
      group.addTask {
        try await self.runAll(until: target)
        return .settled
      }
      group.addTask {
        await self.failed.fired(after: 0)
        return .failed
      }
      group.addTask {
        try await self.standstill(of: timeout, after: runsBefore + runsMax)
        // This is asked here, while the pending deliveries still run.
        return .timedOut(pending: try await self.pending())
      }
      defer { group.cancelAll() }
      return try await group.next() ?? .settled
    }
    try Task.checkCancellation()
    try checkServices()
    if case .timedOut(let pending) = end {
      let runs = recorder.count - runsBefore
      throw FunctionsTestingError(
        .notSettled,
        "Not settled: functions ran \(runs) times, and for \(timeout) none began or they never "
          + "came to an end. Pending: \(pending)."
      )
    }
    try checkRequests()
  }

  /// Returns when no function has begun for `timeout`, or more than `runsMax` have.
  ///
  /// The time alone would say little: on a busy machine many tests share few threads.
  private func standstill(of timeout: Duration, after runsMax: Int) async throws {
    var seen: Int
    repeat {
      seen = recorder.count
      try await Task.sleep(for: timeout)
    } while recorder.count != seen && recorder.count <= runsMax
  }

  /// Runs everything that is due, then jumps to what is due next, and so on.
  private func runAll(until target: Timestamp?) async throws {
    while true {
      try await deliveries.waitUntilStill()
      try Task.checkCancellation()
      if isFaulty, try await deliverNext() { continue }
      guard let next = await nextStop(before: target) else { return }
      time.advance(to: next)
      deliveries.timeJumped()
    }
  }

  /// When to look again; nil when nothing is left to do.
  ///
  /// Without a target only deliveries make time pass, because schedules go on for ever. But a
  /// scheduled run on the way to a delivery runs at its time.
  private func nextStop(before target: Timestamp?) async -> Timestamp? {
    let due = deliveries.nextDue
    let next = [due, deliveries.nextTick].compactMap(\.self).min()
    guard let target else { return due == nil ? nil : next }
    if let next, next <= target { return next }
    return time.now < target ? target : nil
  }

  /// Delivers what the seed chooses next; false when nothing can be delivered now.
  private func deliverNext() async throws -> Bool {
    let startable = deliveries.startable
    guard let next = order.withLock({ $0?.next(of: startable) }) else { return false }
    guard try await deliveries.deliver(next) else { return true }
    let state = try await deliveries.administration.show(next).state
    if state == .succeeded, order.withLock({ $0?.repeats(next) }) == true {
      _ = try await deliveries.administration.redeliver(next)
    }
    return true
  }

  private func pending() async throws -> String {
    var described: [String] = []
    let pending = try await deliveries.administration.list(
      state: .pending,
      limit: Self.deliveriesMax
    )
    for delivery in pending.reversed().prefix(Self.namedMax) {
      let isRunning = deliveries.administration.isRunning(delivery.id)
      let reason = delivery.lastError.map { " after \"\($0)\"" } ?? ""
      described.append(
        "\(delivery.id.function) for \(delivery.kind) \(delivery.subject) "
          + "(\(isRunning ? "running" : "waiting"), attempt \(delivery.attempts + 1)\(reason))"
      )
    }
    if pending.count > Self.namedMax { described.append("\(pending.count - Self.namedMax) more") }
    return described.isEmpty
      ? "events that have not reached the triggers yet" : described.joined(separator: "; ")
  }

  /// The deliveries listed for a message, which needs all pending ones; no test has as many.
  private static let deliveriesMax = 100_000
}
