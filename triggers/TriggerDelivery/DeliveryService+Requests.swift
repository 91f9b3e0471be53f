import DocumentModel
import Events
import RuntimeSupport
import StorageEngine

/// Requests that people make about deliveries.
extension DeliveryService {
  /// Lists the newest deliveries first; nil stands for any state or function.
  package func list(
    state: Delivery.State? = nil,
    isRunning: Bool? = nil,
    function: String? = nil,
    limit: Int = 50
  ) async throws -> [Delivery] {
    let running = schedule.runningIDs
    return try await store.list(limit: limit, scanMax: listScanMax) { delivery in
      (state == nil || delivery.state == state)
        && (isRunning == nil || running.contains(delivery.id) == isRunning)
        && (function == nil || delivery.id.function == function)
    }
  }

  /// One delivery; throws `NOT_FOUND` when there is none of this id.
  package func show(_ id: DeliveryID) async throws -> Delivery {
    guard let delivery = try await store.delivery(id) else {
      throw StatusError(
        .notFound,
        "No event \(id) is known; `hearth events list` shows those that are."
      )
    }
    return delivery
  }

  /// The deliveries that led to this one, nearest first, as far as they are kept; at most `limit`.
  package func causes(of delivery: Delivery, limit: Int = 100) async throws -> [Delivery] {
    guard let cause = delivery.cause else { return [] }
    return try await store.chain(from: cause, limit: limit)
  }

  /// Whether the delivery runs at this moment.
  package func isRunning(_ id: DeliveryID) -> Bool { schedule.isRunning(id) }

  /// How many deliveries are pending, tasks included.
  package var pendingCount: Int { schedule.count }

  /// Makes a failed or dead delivery pending again, with its attempts counted anew.
  ///
  /// Throws `FAILED_PRECONDITION` for a delivery in another state, and for a delivery that somebody
  /// else is making pending at this moment.
  package func retry(_ id: DeliveryID) async throws -> Delivery {
    try await renew(id) { old in
      guard old.state == .failed || old.state == .dead else {
        throw StatusError(
          .failedPrecondition,
          "Event \(id) is \(old.state.rawValue); only failed and dead events "
            + "can be retried."
        )
      }
    }
  }

  /// Makes any settled delivery pending again, with its attempts counted anew.
  ///
  /// This is what happens when the word of a delivery's end is lost. Throws `FAILED_PRECONDITION`
  /// for a pending delivery, and for a delivery that somebody else is making pending at this
  /// moment.
  package func redeliver(_ id: DeliveryID) async throws -> Delivery {
    try await renew(id) { old in
      guard old.state.isSettled else {
        throw StatusError(
          .failedPrecondition,
          "Event \(id) is still pending; only one that has settled can be delivered again."
        )
      }
    }
  }

  private func renew(
    _ id: DeliveryID,
    checking check: (Delivery) throws -> Void
  ) async throws -> Delivery {
    guard renewing.insert(id).inserted else {
      throw StatusError(.failedPrecondition, "Event \(id) is being retried already.")
    }
    defer { renewing.remove(id) }
    let old = try await show(id)
    try check(old)
    // The end is stored, but the try is not over before the schedule knows of it.
    while schedule.knows(id) {
      try Task.checkCancellation()
      await waitForProgress()
    }
    var new = old
    new.state = .pending
    new.attempts = 0
    new.crashes = 0
    new.executions = 0
    new.lastStatus = nil
    new.firstAttemptTime = nil
    new.settledTime = nil
    new.dueTime = now()
    var batch = StorageBatch()
    let stored = DeliveryStore.update(from: old, to: new, in: &batch)
    try await storage.commit(batch, durability: .relaxed)
    settledCount? -= 1
    schedule.add(new, bytes: stored.bytes, isOrdered: configuration.isOrdered, now: now())
    wakeup.yield()
    return new
  }

  /// Gives a delivery up.
  ///
  /// A pending delivery becomes dead, a running one is not tried again, and a failed or dead one is
  /// forgotten. Throws `NOT_FOUND`, and `FAILED_PRECONDITION` for a delivery that has succeeded.
  package func discard(_ id: DeliveryID) async throws {
    let old = try await show(id)
    switch old.state {
    case .succeeded:
      throw StatusError(.failedPrecondition, "Event \(id) has succeeded; nothing is left to do.")
    case .failed, .dead:
      var batch = StorageBatch()
      batch.delete(DeliveryStore.rows, id.key)
      try await storage.commit(batch, durability: .relaxed)
      settledCount? -= 1
    case .pending:
      guard schedule.remove(id, now: now()) else {
        if schedule.isRunning(id) { discarding.insert(id) }
        return
      }
      var new = old
      new.end(.dead, Self.discardedText, now())
      var batch = StorageBatch()
      _ = DeliveryStore.update(from: old, to: new, in: &batch)
      if let task = new.task {
        TaskStore.end(queue: task.queue, id: task.id, at: now(), in: &batch)
      }
      try await storage.commit(batch, durability: .relaxed)
      settledCount? += 1
      wakeup.yield()
      resumeIdleWaiters()
    }
  }

  /// Sets whether later events reach functions; tasks and schedules always do.
  ///
  /// Events that happen while it is off are passed over for good, as by Firebase's emulators.
  /// Returns when all earlier events have been seen.
  package func setEnabled(_ isEnabled: Bool) async throws {
    if functions != nil { try await waitForExpansion(through: try await lastEvent()) }
    self.isEnabled = isEnabled
  }

  /// Applies these faults to deliveries from now on; nil applies none.
  package func setFaults(_ faults: FaultPlan?) {
    self.faults = faults
  }

  /// The faults that are applied now.
  package var currentFaults: FaultPlan? { faults }

  /// The deliveries that `deliver(_:)` could start now, ordered by id.
  ///
  /// For a service that does not start deliveries by itself.
  package func startable() -> [DeliveryID] { schedule.startable(now: now()) }

  /// The most rows that a list looks at.
  private var listScanMax: Int { 100_000 }
}
