import DocumentModel
import Events
import RuntimeSupport
import StorageEngine

/// What people ask of the deliveries.
extension DeliveryService {
  /// The newest deliveries first; nil for any state or function.
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

  /// One delivery; `NOT_FOUND` when there is none of this id.
  package func show(_ id: DeliveryID) async throws -> Delivery {
    guard let delivery = try await store.delivery(id) else {
      throw StatusError(
        .notFound,
        "No event \(id) is known; `hearth events list` shows those that are."
      )
    }
    return delivery
  }

  /// The deliveries that led to one, the nearest first, as far as they are kept; at most `limit`.
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
  /// Throws `FAILED_PRECONDITION` for a delivery in another state, and for one that somebody else
  /// makes pending at this moment.
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

  /// Makes a delivery that has settled, however it did, pending again, with its attempts counted
  /// anew: what happens when the word of its end is lost.
  ///
  /// Throws `FAILED_PRECONDITION` for a delivery that is pending, and for one that somebody else
  /// makes pending at this moment.
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
    // Its end is stored, but the try is not over before the schedule knows of it.
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
    var batch = WriteBatch()
    let stored = DeliveryStore.update(from: old, to: new, in: &batch)
    try await storage.commit(batch, durability: .relaxed)
    settledCount? -= 1
    schedule.add(new, bytes: stored.bytes, isOrdered: configuration.isOrdered, now: now())
    wakeup.yield()
    return new
  }

  /// Gives a delivery up: a pending one becomes dead, one that runs is not tried again, and a failed
  /// or dead one is forgotten.
  ///
  /// Throws `NOT_FOUND`, and `FAILED_PRECONDITION` for one that has succeeded.
  package func discard(_ id: DeliveryID) async throws {
    let old = try await show(id)
    switch old.state {
    case .succeeded:
      throw StatusError(.failedPrecondition, "Event \(id) has succeeded; nothing is left to do.")
    case .failed, .dead:
      var batch = WriteBatch()
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
      var batch = WriteBatch()
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

  /// Whether the events that happen from now on reach functions; tasks and schedules do anyway.
  ///
  /// What happens meanwhile is passed over for good, as by Firebase's emulators. Returns when all
  /// that happened before has been seen.
  package func setEnabled(_ isEnabled: Bool) async throws {
    if functions != nil { try await waitForExpansion(through: try await lastEvent()) }
    self.isEnabled = isEnabled
  }

  /// Takes these liberties with deliveries from now on; nil takes none.
  package func setFaults(_ faults: FaultPlan?) {
    self.faults = faults
  }

  /// The liberties that are taken now.
  package var currentFaults: FaultPlan? { faults }

  /// The deliveries that `deliver(_:)` could start now, in the order of their ids; for a service
  /// that does not start them by itself.
  package func startable() -> [DeliveryID] { schedule.startable(now: now()) }

  /// A list looks at no more rows than this.
  private var listScanMax: Int { 100_000 }
}
