import DocumentModel
import Synchronization
import TriggerDelivery

extension SuiteCore {
  private enum End {
    case settled
    case failed
    case timedOut(pending: String)
  }

  /// Runs all pending work, or all work that is due until `target`.
  ///
  /// A `target` becomes the current time of the suite.
  ///
  /// Throws `notSettled` if no function has begun for `timeout`, or if more than `runsMax` have
  /// begun.
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
        // The pending deliveries are read here, while they still run.
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

  /// Waits until no function has begun for `timeout`, or until more than `runsMax` have begun.
  ///
  /// A limit on the total time would not be reliable, because on a busy machine many tests share
  /// few threads.
  private func standstill(of timeout: Duration, after runsMax: Int) async throws {
    var seen: Int
    repeat {
      seen = recorder.count
      try await Task.sleep(for: timeout)
    } while recorder.count != seen && recorder.count <= runsMax
  }

  /// Runs all work that is due, then advances the time to the next due work, and repeats.
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

  /// Returns the time to which to advance next; nil if no work is left.
  ///
  /// Without a target only deliveries advance the time, because schedules never end. A scheduled
  /// run that is due before the next delivery still runs at its time.
  private func nextStop(before target: Timestamp?) async -> Timestamp? {
    let due = deliveries.nextDue
    let next = [due, deliveries.nextTick].compactMap(\.self).min()
    guard let target else { return due == nil ? nil : next }
    if let next, next <= target { return next }
    return time.now < target ? target : nil
  }

  /// Delivers the event that the seed chooses next; returns false if nothing can be delivered now.
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

  /// The number of pending deliveries that are read for an error message; no test has as many.
  private static let deliveriesMax = 100_000
}
