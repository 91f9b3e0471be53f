import DocumentModel
import EventLog
import Events
import StorageEngine

extension DeliveryService {
  /// Follows the event log until the service stops.
  func expand() async throws {
    var unsaved = 0
    var unsavedBytes = 0
    for try await entries in tailer.entries(after: expandedThrough) {
      while schedule.eventCount >= configuration.pendingMax {
        try Task.checkCancellation()
        if isStopping { return }
        await waitForProgress()
      }
      guard let table, let last = entries.last?.record.sequence else { continue }
      var deliveries: [Delivery] = []
      for entry in entries { deliveries += try await expand(entry.record, with: table) }
      unsaved += entries.count
      unsavedBytes += entries.reduce(0) { $0 + $1.bytes }
      if !deliveries.isEmpty || unsaved >= Self.cursorLagMax
        || unsavedBytes >= Self.cursorLagBytesMax
      {
        try await keep(deliveries, through: last)
        unsaved = 0
        unsavedBytes = 0
      }
      expandedThrough = last
      wakeup.yield()
    }
  }

  /// Stores new deliveries with the cursor; those that fit in memory start meanwhile.
  ///
  /// Their outcomes are written after them, because storage keeps the order; a crash before that
  /// expands the event again.
  private func keep(_ deliveries: [Delivery], through sequence: UInt64) async throws {
    var batch = StorageBatch()
    let stored = DeliveryStore.insert(deliveries, into: &batch)
    EventCursor.put(Self.cursorName, sequence: sequence, in: &batch)
    var isAdded = false
    try await untilThereIsRoom("New events wait") {
      if isAdded {
        // Deliveries that settled while the disk was full already have a later row, or need none.
        let rows = deliveries.filter { $0.state.isSettled || schedule.knows($0.id) }
        batch = StorageBatch()
        _ = DeliveryStore.insert(rows, into: &batch)
        EventCursor.put(Self.cursorName, sequence: sequence, in: &batch)
      }
      try await withCheckedThrowingContinuation {
        (continuation: CheckedContinuation<Void, any Error>) in
        storage.submit(batch, expecting: [], durability: .relaxed) { result in
          continuation.resume(with: result.map { _ in })
        }
        if !isAdded, schedule.hasRoom(for: stored.reduce(0) { $0 + $1.bytes }) {
          isAdded = true
          add(stored)
          wakeup.yield()
        }
      }
    }
    if !isAdded { add(stored) }
    settledCount? += stored.count { $0.delivery.state.isSettled }
  }

  private func add(_ stored: [DeliveryStore.Stored]) {
    for (delivery, bytes) in stored where !delivery.state.isSettled {
      schedule.add(delivery, bytes: bytes, isOrdered: isOrdered, now: now())
    }
  }

  private var isOrdered: Bool { configuration.isOrdered && faults?.reordering != true }

  private func expand(_ record: CommitRecord, with table: TriggerTable) async throws -> [Delivery] {
    var contents: [(index: Int, function: String, content: Delivery.Content)] = []
    if isEnabled {
      for (index, change) in record.changes.enumerated() {
        for trigger in table.matches(change) {
          contents.append((index, trigger.function, .document(change, trigger.type)))
        }
      }
    }
    for (offset, occurrence) in record.occurrences.enumerated() {
      let index = record.changes.count + offset
      for function in functions(for: occurrence, in: table) {
        contents.append((index, function, .occurrence(occurrence)))
      }
    }
    guard !contents.isEmpty else { return [] }
    let chain = try await causes(of: record)
    return contents.map { index, function, content in
      var delivery = Delivery(
        id: DeliveryID(
          sequence: record.sequence,
          changeIndex: UInt32(index),
          function: function
        ),
        content: content,
        commitTime: record.commitTime,
        auth: record.auth,
        cause: record.cause.flatMap { DeliveryID($0) }
      )
      place(&delivery, after: chain)
      return delivery
    }
  }

  private func functions(for occurrence: Occurrence, in table: TriggerTable) -> [String] {
    switch occurrence {
    case .event(let event): isEnabled ? table.functions(for: event) : []
    case .schedule(let function, _): [function]
    case .task(let task): [task.queue]
    }
  }

  /// The deliveries that led to a commit, newest first; only one unless the chain is long.
  private func causes(of record: CommitRecord) async throws -> [Delivery] {
    guard let cause = record.cause.flatMap({ DeliveryID($0) }),
      let parent = try await store.delivery(cause)
    else { return [] }
    guard configuration.loopCheck.wantsLook(at: parent.depth + 1) else { return [parent] }
    return try await store.chain(from: cause, limit: configuration.loopCheck.lengthMax)
  }

  /// Gives a new delivery its time and its place in a chain, or stops it if the chain is a loop.
  private func place(_ delivery: inout Delivery, after chain: [Delivery]) {
    if delivery.task == nil {
      // A clock that was set back must not make an event wait.
      let delay = faults?.delay(of: delivery) ?? .zero
      delivery.dueTime = now().advanced(by: delay)
      delivery.isUnanswered = delay > .zero
      delivery.depth = chain.first.map { $0.depth + 1 } ?? 0
    }
    guard configuration.loopCheck.wantsLook(at: delivery.depth),
      let problem = configuration.loopCheck.problem(with: delivery, after: chain)
    else { return }
    delivery.end(.dead, problem, now())
    log(delivery, .deferred(problem))
  }

  /// Event records without deliveries that a crash may cause to be expanded again.
  ///
  /// The log keeps such records and must not fill up with them.
  private static let cursorLagMax = 256
  private static let cursorLagBytesMax = 4 << 20
}
