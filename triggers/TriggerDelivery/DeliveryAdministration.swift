import DocumentModel
import EventLog
import StatusCodes
import StorageEngine

/// The operations by which developers inspect and change deliveries.
package final class DeliveryAdministration: Sendable {
  private let store: DeliveryStore
  private let writer: DeliveryWriter
  private let dispatcher: Dispatcher
  private let expander: EventExpander
  private let settled: SettledRows
  private let registry: FunctionRegistry
  private let now: @Sendable () -> Timestamp

  init(
    store: DeliveryStore,
    writer: DeliveryWriter,
    dispatcher: Dispatcher,
    expander: EventExpander,
    settled: SettledRows,
    registry: FunctionRegistry,
    now: @escaping @Sendable () -> Timestamp
  ) {
    self.store = store
    self.writer = writer
    self.dispatcher = dispatcher
    self.expander = expander
    self.settled = settled
    self.registry = registry
    self.now = now
  }

  // MARK: - Inspecting

  /// Lists deliveries, newest first; nil stands for any state or function.
  ///
  /// The search covers a bounded number of deliveries. Matching deliveries may be missing if a
  /// filter excludes nearly all of them.
  package func list(
    state: Delivery.State? = nil,
    isRunning: Bool? = nil,
    function: String? = nil,
    limit: Int = 50
  ) async throws -> [Delivery] {
    let running = dispatcher.read { $0.runningIDs }
    if isRunning == true {
      let ids = running.filter { function == nil || $0.function == function }.sorted(by: >)
      var found: [Delivery] = []
      for id in ids.prefix(limit) {
        if let delivery = try await store.delivery(id) { found.append(delivery) }
      }
      return found
    }
    return try await store.list(
      states: state.map { [$0] } ?? Set(Delivery.State.allCases),
      function: function,
      limit: limit,
      scanMax: Self.listScanMax
    ) { isRunning == nil || !running.contains($0.id) }
  }

  /// Returns one delivery; throws `NOT_FOUND` if there is none with this id.
  package func show(_ id: DeliveryID) async throws -> Delivery {
    guard let delivery = try await store.delivery(id) else { throw Self.unknown(id) }
    return delivery
  }

  /// Returns the stored deliveries that led to a delivery, nearest first; at most `limit`.
  package func causes(of delivery: Delivery, limit: Int = 100) async throws -> [Delivery] {
    guard let cause = delivery.cause else { return [] }
    return try await store.chain(from: cause, limit: limit)
  }

  /// Returns the ID of the trace of a delivery's attempts; nil if its event is no longer stored.
  package func traceID(of delivery: Delivery) async throws -> String? {
    try await store.event(at: delivery.id.place).map {
      DeliveryRequest.traceID(of: delivery.id, $0)
    }
  }

  /// The state of each function's deliveries, by the function's name.
  package var figures: [String: DeliveryFigures] { dispatcher.figures }

  /// Returns the reasons why deliveries wait.
  ///
  /// Deliveries that run or have settled are left out.
  package func waitReasons(of deliveries: [Delivery]) async throws -> [DeliveryID: WaitReason] {
    let pending = deliveries.filter { $0.state == .pending }
    guard !pending.isEmpty else { return [:] }
    let earlier = try await store.firstOfLanes(pending)
    let (time, isDeployed) = (now(), registry.current != nil)
    return dispatcher.read { dispatch in
      var reasons: [DeliveryID: WaitReason] = [:]
      for delivery in pending {
        if !isDeployed {
          reasons[delivery.id] = .nothingDeployed
        } else {
          reasons[delivery.id] = dispatch.backlogs[delivery.id.function]?.waitReason(
            of: delivery,
            behind: earlier[delivery.id],
            at: time
          )
        }
      }
      return reasons
    }
  }

  /// Indicates whether a delivery runs at this moment.
  package func isRunning(_ id: DeliveryID) -> Bool {
    dispatcher.read { $0.phase(id) == .running }
  }

  /// The number of pending deliveries, including tasks.
  package var pendingCount: Int { dispatcher.read { $0.pendingCount } }

  /// Returns the sequence of the last record in the event log.
  func lastEvent() async throws -> UInt64 {
    try await store.storage.read { try CommitLog.lastSequence(in: $0) }
  }

  /// Waits until every event up to a sequence has become deliveries.
  ///
  /// Without a sequence it waits for all events recorded so far.
  func waitForExpansion(through sequence: UInt64? = nil) async throws {
    let last = if let sequence { sequence } else { try await lastEvent() }
    try await dispatcher.waitUntil { expander.expandedThrough >= last }
  }

  // MARK: - Renewing

  /// Makes a failed or dead delivery pending again and resets its attempts.
  ///
  /// Throws `FAILED_PRECONDITION` if the delivery has another state, the current deployment lacks
  /// its function, or its event is no longer stored. For a task it is also thrown if a later task
  /// has its name.
  package func retry(_ id: DeliveryID) async throws -> Delivery {
    try await renew(id, checking: Self.checkIsFailed)
  }

  /// Makes failed and dead deliveries pending again, as `retry` does, and returns their number.
  ///
  /// Deliveries that `retry` refuses are left out. Deliveries are renewed in batches, and the
  /// function's other deliveries are loaded between two batches. Deliveries renewed before an error
  /// stay renewed.
  package func retryAll(_ ids: [DeliveryID]) async throws -> Int {
    var count = 0
    for (function, ids) in Dictionary(grouping: ids, by: \.function) {
      for start in stride(from: 0, to: ids.count, by: Self.batchMax) {
        try Task.checkCancellation()
        let page = Array(ids[start..<min(start + Self.batchMax, ids.count)])
        count += try await renew(
          page,
          of: function,
          leavingOutUnfit: true,
          checking: Self.checkIsFailed
        ).count
      }
    }
    return count
  }

  private static func checkIsFailed(_ old: Delivery) throws {
    guard old.state == .failed || old.state == .dead else {
      throw StatusError(
        .failedPrecondition,
        "Event \(old.id) is \(old.state.rawValue); only failed and dead events can be retried."
      )
    }
  }

  /// Makes any settled delivery pending again and resets its attempts.
  ///
  /// The effect is the same as if the outcome of the delivery had been lost. Throws
  /// `FAILED_PRECONDITION` if the delivery is pending, the current deployment lacks its function,
  /// or its event is no longer stored. For a task it is also thrown if a later task has its name.
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
    let renewed = try await renew([id], of: id.function, leavingOutUnfit: false, checking: check)
    guard let delivery = renewed.first else { throw Self.unknown(id) }
    return delivery
  }

  /// Renews deliveries of one function in one batch.
  private func renew(
    _ ids: [DeliveryID],
    of function: String,
    leavingOutUnfit: Bool,
    checking check: (Delivery) throws -> Void
  ) async throws -> [Delivery] {
    try await reserving(function) {
      var old: [Delivery] = []
      for (id, (delivery, hasEvent)) in zip(ids, try await store.settled(ids)) {
        do {
          guard let delivery else { throw Self.unknown(id) }
          try check(delivery)
          try checkIsDeployed(delivery.id)
          guard hasEvent else {
            throw StatusError(
              .failedPrecondition,
              "What event \(id) brought is kept no longer; only its outcome is."
            )
          }
          if delivery.isTask { try await checkName(of: delivery) }
          old.append(delivery)
        } catch let error as StatusError
          where leavingOutUnfit && [.notFound, .failedPrecondition].contains(error.statusCode)
        {
          // Another request was faster, or the event is no longer stored.
        }
      }
      return try await renew(old, of: function)
    }
  }

  private func renew(_ old: [Delivery], of function: String) async throws -> [Delivery] {
    guard !old.isEmpty else { return [] }
    // The outcomes are stored, but the window may not have removed the deliveries yet.
    try await dispatcher.waitUntil {
      dispatcher.read { dispatch in old.allSatisfy { dispatch.phase($0.id) == nil } }
    }
    let time = now()
    var batch = StorageBatch()
    let new = old.map { delivery in
      var new = delivery
      new.renew(at: time)
      DeliveryStore.forget(delivery, in: &batch)
      DeliveryStore.insert(new, into: &batch)
      return new
    }
    try await writer.write(batch)
    for delivery in old { settled.forget(delivery) }
    dispatcher.change { dispatch in
      dispatch.change(function) { backlog in
        backlog.count(by: new.count)
        backlog.noteDue(time)
        for lane in Set(new.compactMap(\.lane)) { backlog.check(lane) }
      }
    }
    return new
  }

  private func checkIsDeployed(_ id: DeliveryID) throws {
    guard let deployed = registry.current, deployed.endpoints[id.function] == nil else { return }
    throw StatusError(
      .failedPrecondition,
      "\(id.function) is not deployed, so event \(id) cannot run; deploy the function first."
    )
  }

  private static func unknown(_ id: DeliveryID) -> StatusError {
    StatusError(.notFound, "No event \(id) is known; `hearth events list` shows those that are.")
  }

  /// Throws `FAILED_PRECONDITION` if another task now has the task's name.
  private func checkName(of task: Delivery) async throws {
    let names = TaskStore(storage: store.storage)
    let queue = task.id.function
    guard case .live(let other) = try await names.find(queue: queue, id: task.subject)?.name,
      other != task.id
    else { return }
    throw StatusError(
      .failedPrecondition,
      "A later task of \(queue) is named \(task.subject); it must end first."
    )
  }

  /// Starts a pending delivery now, despite its due time and a paused queue.
  ///
  /// Does nothing if the delivery already runs.
  func hasten(_ id: DeliveryID) async throws {
    try await reserving(id.function) {
      guard ![.running, .saving].contains(dispatcher.read { $0.phase(id) }) else { return }
      guard let delivery = try await store.delivery(id), !delivery.state.isSettled else { return }
      let event = try await store.event(at: id.place)
      let candidate = DeliveryStore.Candidate(delivery: delivery, event: event, bytes: 0)
      dispatcher.change { dispatch in
        _ = dispatch.change(id.function) { $0.bring(candidate, isForced: true) }
      }
    }
  }

  // MARK: - Discarding

  /// Gives up a delivery.
  ///
  /// A pending delivery becomes dead, a running one is not retried, and a failed or dead one is
  /// deleted. Throws `NOT_FOUND` for an unknown delivery, and `FAILED_PRECONDITION` for a delivery
  /// that has succeeded.
  package func discard(_ id: DeliveryID) async throws {
    try await reserving(id.function) {
      // The delivery may start or end at any moment. Once it has left the window, its row has its
      // state.
      while dispatcher.read({ $0.phase(id) }) != nil {
        if dispatcher.discardRunning(id) { return }
        if try await discardInWindow([id], Dispatcher.discardedText) > 0 { return }
      }
      let old = try await show(id)
      switch old.state {
      case .succeeded:
        throw StatusError(.failedPrecondition, "Event \(id) has succeeded; nothing is left to do.")
      case .failed, .dead:
        try await drop([old])
      case .pending:
        try await discardStored([old], Dispatcher.discardedText)
      }
    }
  }

  /// Deletes a delivery.
  ///
  /// The attempt of a running one is its last, and its outcome stays. Throws as `discard` does.
  func delete(_ id: DeliveryID) async throws {
    try await discard(id)
    try await reserving(id.function) {
      guard let old = try await store.delivery(id), old.state == .dead else { return }
      try await drop([old])
    }
  }

  /// Deletes all pending deliveries of a function that do not run.
  func deleteAll(of function: String) async throws {
    _ = try await endAll(of: function, Dispatcher.discardedText)
    try await reserving(function) {
      while true {
        let page = try await store.list(
          states: [.dead],
          function: function,
          limit: Self.discardPageMax,
          scanMax: .max
        ) { $0.lastError == Dispatcher.discardedText }
        if !page.isEmpty { try await drop(page) }
        if page.count < Self.discardPageMax { return }
      }
    }
  }

  /// Gives up deliveries, as `discard` does, and returns their number.
  ///
  /// Deliveries that `discard` refuses are left out.
  package func discardAll(_ ids: [DeliveryID]) async throws -> Int {
    var count = 0
    for (function, ids) in Dictionary(grouping: ids, by: \.function) {
      for start in stride(from: 0, to: ids.count, by: Self.batchMax) {
        try Task.checkCancellation()
        let page = Array(ids[start..<min(start + Self.batchMax, ids.count)])
        let failed = try await reserving(function) {
          let failed = try await store.settled(page).compactMap(\.delivery)
            .filter { $0.state == .failed || $0.state == .dead }
          if !failed.isEmpty { try await drop(failed) }
          return failed
        }
        count += failed.count
        let dropped = Set(failed.map(\.id))
        for id in page where !dropped.contains(id) {
          do {
            try await discard(id)
            count += 1
          } catch let error as StatusError
            where [.notFound, .failedPrecondition].contains(error.statusCode)
          {
            // Another request was faster, or the delivery ended on its own.
          }
        }
      }
    }
    return count
  }

  /// Deletes failed and dead deliveries, and the stored events that only they needed.
  private func drop(_ failed: [Delivery]) async throws {
    let batch = try await store.dropping(failed.map(\.id))
    try await writer.write(batch)
    for delivery in failed { settled.forget(delivery) }
  }

  /// Makes all pending deliveries of a function that do not run dead; returns their number.
  func endAll(of function: String, _ error: String) async throws -> Int {
    try await reserving(function) {
      let inWindow = dispatcher.read { dispatch in
        dispatch.backlogs[function]?.entries.keys.map { DeliveryID($0, function) } ?? []
      }
      var count = try await discardInWindow(inWindow, error)
      while true {
        let running = dispatcher.read { $0.runningIDs }
        let page = try await store.list(
          states: [.pending],
          function: function,
          limit: Self.discardPageMax,
          scanMax: .max
        ) { !running.contains($0.id) }
        try await discardStored(page, error)
        count += page.count
        if page.count < Self.discardPageMax { return count }
      }
    }
  }

  /// Gives up deliveries in the window and waits until their outcomes are stored.
  ///
  /// Returns the number of deliveries given up.
  private func discardInWindow(_ ids: [DeliveryID], _ error: String) async throws -> Int {
    let time = now()
    let ends = dispatcher.change { dispatch in
      ids.compactMap { id in
        dispatch.change(id.function) { backlog in
          backlog.settle(id.place) { $0.end(.dead, error, time) }
        }
      }
    }
    dispatcher.write(ends)
    try await dispatcher.waitUntil {
      dispatcher.read { dispatch in ids.allSatisfy { dispatch.phase($0) != .saving } }
    }
    return ends.count
  }

  private func discardStored(_ deliveries: [Delivery], _ error: String) async throws {
    guard let function = deliveries.first?.id.function else { return }
    let time = now()
    var batch = StorageBatch()
    var ended: [Delivery] = []
    for old in deliveries {
      var new = old
      new.end(.dead, error, time)
      ended.append(new)
      DeliveryStore.update(from: old, to: new, hasLaneRows: true, in: &batch)
      if old.isTask { TaskStore.end(queue: function, id: old.subject, at: time, in: &batch) }
    }
    try await writer.write(batch)
    settled.note(ended)
    let unanswered = deliveries.count(where: \.isUnanswered)
    dispatcher.change { dispatch in
      dispatch.change(function) { backlog in
        backlog.count(by: -deliveries.count, unanswered: -unanswered)
        for lane in Set(deliveries.compactMap(\.lane)) { backlog.check(lane) }
      }
    }
  }

  /// Runs a change to a function's rows while none of them is loaded into its window.
  private func reserving<Result>(
    _ function: String,
    _ body: () async throws -> Result
  ) async throws -> Result {
    dispatcher.quietly { dispatch in
      dispatch.change(function) { $0.wantReservation() }
    }
    var isGranted = false
    defer {
      dispatcher.change { [isGranted] dispatch in
        dispatch.change(function) { $0.endReservation(wasGranted: isGranted) }
      }
    }
    try await dispatcher.waitUntil {
      isGranted = dispatcher.quietly { dispatch in
        dispatch.isLoaded && dispatch.change(function) { $0.reserve() }
      }
      return isGranted
    }
    return try await body()
  }

  /// The maximum number of rows of each kind that a list examines.
  private static let listScanMax = 100_000
  private static let discardPageMax = 1000
  /// The number of deliveries renewed or deleted in one batch, while the function's others wait.
  private static let batchMax = 500
}
