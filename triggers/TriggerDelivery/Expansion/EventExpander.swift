import DocumentModel
import EventLog
import Events
import Logging
import StorageEngine
import Synchronization

/// The part that converts events in the log into deliveries, once each.
///
/// The rows of new deliveries and the advanced cursor are written in one batch. The cursor always
/// advances: many pending deliveries of one function delay neither the other functions nor the log.
final class EventExpander: Sendable {
  private struct State {
    var expandedThrough: UInt64 = 0
    var isEnabled = true
    var spreads = SpreadCounts()
    var skipped = 0
  }

  private let registry: FunctionRegistry
  private let store: DeliveryStore
  private let writer: DeliveryWriter
  private let dispatcher: Dispatcher
  private let tailer: EventTailer
  private let configuration: DeliveryService.Configuration
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let state = Mutex(State())

  init(
    registry: FunctionRegistry,
    store: DeliveryStore,
    writer: DeliveryWriter,
    dispatcher: Dispatcher,
    tailer: EventTailer,
    configuration: DeliveryService.Configuration,
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.registry = registry
    self.store = store
    self.writer = writer
    self.dispatcher = dispatcher
    self.tailer = tailer
    self.configuration = configuration
    self.now = now
    self.logger = logger
  }

  /// The sequence up to which every event has become deliveries.
  var expandedThrough: UInt64 { state.withLock { $0.expandedThrough } }

  /// True if events become deliveries; see `DeliveryService.setEnabled`.
  var isEnabled: Bool {
    get { state.withLock { $0.isEnabled } }
    set { state.withLock { $0.isEnabled = newValue } }
  }

  /// The number of matched events since the start that were skipped while disabled.
  var skipped: Int { state.withLock { $0.skipped } }

  /// Counts events that were skipped while disabled.
  func noteSkipped(_ count: Int = 1) { state.withLock { $0.skipped += count } }

  /// Reads the position up to which an earlier run has expanded the events.
  func readCursor() async throws {
    let cursor = try await store.storage.read { snapshot in
      try EventCursor.get(DeliveryService.cursorName, in: snapshot)
    }
    state.withLock { $0.expandedThrough = cursor ?? 0 }
  }

  /// Follows the event log from the cursor until the tailer ends or the task is cancelled.
  ///
  /// The cursor must have been read.
  func run() async throws {
    var unsaved = 0
    var unsavedBytes = 0
    for try await entries in tailer.entries(after: expandedThrough) {
      guard let deployment = registry.current, let last = entries.last?.record.sequence else {
        continue
      }
      var new: [DeliveryStore.Candidate] = []
      let skippedBefore = skipped
      for entry in entries { new += try await expand(entry, with: deployment.table) }
      // Skipped events must not be expanded after a crash if triggers are then enabled again.
      let hasSkipped = skipped != skippedBefore
      unsaved += entries.count
      unsavedBytes += entries.reduce(0) { $0 + $1.bytes }
      if !new.isEmpty || hasSkipped || unsaved >= Self.cursorLagMax
        || unsavedBytes >= Self.cursorLagBytesMax
      {
        try await keep(new, through: last)
        unsaved = 0
        unsavedBytes = 0
      }
      state.withLock { $0.expandedThrough = last }
      dispatcher.wake()
    }
  }

  /// Stores new deliveries with the cursor; deliveries that fit in memory start during the write.
  ///
  /// Outcomes are written after the deliveries, because the writer keeps the order. After a crash
  /// before the write, the events are expanded again.
  private func keep(_ new: [DeliveryStore.Candidate], through sequence: UInt64) async throws {
    var batch = StorageBatch()
    for candidate in new { DeliveryStore.insert(candidate.delivery, into: &batch) }
    EventCursor.put(DeliveryService.cursorName, sequence: sequence, in: &batch)
    let pending = Dictionary(grouping: new.filter { !$0.delivery.state.isSettled }) {
      $0.delivery.id.function
    }
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      writer.write(batch) { continuation.resume(with: $0) }
      dispatcher.change { dispatch in
        for (function, candidates) in pending { dispatch.add(candidates, of: function) }
      }
    }
    noteSettled(new)
    dispatcher.change { dispatch in
      for (function, candidates) in pending {
        dispatch.change(function) { $0.inserted(candidates.map(\.delivery)) }
      }
    }
  }

  /// Reports deliveries that are dead from the start.
  ///
  /// The limits on stored deliveries then include them.
  private func noteSettled(_ new: [DeliveryStore.Candidate]) {
    let settled = new.map(\.delivery).filter(\.state.isSettled)
    if !settled.isEmpty { dispatcher.onStored(settled) }
  }

  private func expand(
    _ entry: EventEntry,
    with table: TriggerTable
  ) async throws -> [DeliveryStore.Candidate] {
    let record = entry.record
    let wanted = try wanted(of: record, by: table)
    guard !wanted.isEmpty else { return [] }
    let cause = record.cause.flatMap { DeliveryCause($0) }
    let depth = cause.map { $0.depth + 1 } ?? 0
    let chain = try await chain(of: cause, depth: depth, to: wanted)
    let bytes = entry.bytes / max(1, record.changes.count + record.occurrences.count)
    return wanted.compactMap { want in
      guard var event = record.event(at: want.index) else { return nil }
      var place = EventPlace(sequence: record.sequence, index: UInt32(want.index))
      var bytes = bytes
      if let value = want.value {
        event.content = .occurrence(.value(value.change))
        place.node = value.node
        bytes = value.change.before.count + value.change.after.count
      }
      let id = DeliveryID(place, want.function)
      let isTask = event.task != nil
      var delivery = Delivery(
        id: id,
        event: event,
        type: want.type,
        cause: cause?.id,
        depth: isTask ? 0 : depth
      )
      delivery.eventBytes = bytes
      if let cause, !isTask {
        delivery.origin = LoopCheck.origin(of: delivery, cause: cause, after: chain)
      }
      settle(&delivery, after: chain)
      return DeliveryStore.Candidate(delivery: delivery, event: event, bytes: bytes)
    }
  }

  /// Returns the deliveries that led to an event, nearest first, as far back as its functions need.
  ///
  /// The nearest delivery is usually in memory. Most chains end there or do not return to a
  /// function that wants the event. Only the other chains need a read.
  private func chain(
    of cause: DeliveryCause?,
    depth: Int,
    to wanted: [Want]
  ) async throws -> [Delivery] {
    guard let cause else { return [] }
    if configuration.loopCheck.wantsLook(at: depth) {
      return try await store.chain(from: cause.id, limit: configuration.loopCheck.lengthMax)
    }
    let nearest = dispatcher.read { dispatch in
      dispatch.backlogs[cause.id.function]?.entries[cause.id.place]?.delivery
    }
    guard let nearest else {
      return try await store.chain(from: cause.id, limit: LoopCheck.lookBackMax)
    }
    let isKnown = wanted.allSatisfy { $0.function == cause.id.function }
    guard !isKnown, let next = nearest.cause,
      depth > 2 || wanted.contains(where: { $0.function == next.function })
    else { return [nearest] }
    return [nearest] + (try await store.chain(from: next, limit: LoopCheck.lookBackMax - 1))
  }

  /// A function that wants an event of a commit, and the document event type of its trigger.
  private struct Want {
    var index: Int
    var function: String
    var type = DocumentEventType(.written)
    /// The node of a change in the Realtime Database; nil for other events.
    var value: ValueMatch?
  }

  private func wanted(of record: CommitRecord, by table: TriggerTable) throws -> [Want] {
    let isEnabled = self.isEnabled
    var wanted: [Want] = []
    var skipped = 0
    if record.purpose == .events {
      for (index, change) in record.changes.enumerated() {
        let triggers = table.matches(change, project: configuration.project)
        guard isEnabled else {
          skipped += triggers.isEmpty ? 0 : 1
          continue
        }
        for trigger in triggers {
          wanted.append(Want(index: index, function: trigger.function, type: trigger.type))
        }
      }
    }
    for (offset, occurrence) in record.occurrences.enumerated() {
      let index = record.changes.count + offset
      switch occurrence {
      case .event(let event) where isEnabled:
        wanted += table.functions(for: event).map { Want(index: index, function: $0) }
      case .event(let event): skipped += table.functions(for: event).isEmpty ? 0 : 1
      case .schedule(let function, _): wanted.append(Want(index: index, function: function))
      case .task(let task): wanted.append(Want(index: index, function: task.queue))
      case .value(let change):
        var lost: ValueMatch.Loss?
        let matches = try table.matches(change, lost: &lost)
        if let lost { log(lost, of: change) }
        guard isEnabled else {
          skipped += matches.isEmpty ? 0 : 1
          continue
        }
        wanted += matches.map { match in
          Want(
            index: index,
            function: match.function,
            type: DocumentEventType(match.kind),
            value: match
          )
        }
      }
    }
    if skipped > 0 { noteSkipped(skipped) }
    return wanted
  }

  private func log(_ loss: ValueMatch.Loss, of change: DatabaseChange) {
    let path: Logger.Metadata = ["database.path": "/\(change.path.joined(separator: "/"))"]
    switch loss {
    case .tooMany:
      logger.warning(
        "One write changed more watched values than a function gets events; the rest were left out",
        metadata: path
      )
    case .recordedBelow:
      logger.warning(
        "A value changed before the function that watches it was deployed, so it gets no event",
        metadata: path
      )
    }
  }

  /// Sets a new delivery's due time and lane, or ends it if it must not run.
  private func settle(_ delivery: inout Delivery, after chain: [Delivery]) {
    let now = now()
    let faults = dispatcher.faults
    if !configuration.isOrdered || faults?.reordering == true, delivery.source != .schedule {
      delivery.lane = nil
    }
    if delivery.isTask {
      if delivery.dueTime > now { delivery.postpone(to: delivery.dueTime, nil, at: nil) }
    } else if let delay = faults?.delay(of: delivery), delay > .zero {
      delivery.postpone(to: now.advanced(by: delay), nil, at: now)
      delivery.isUnanswered = true
    }
    let function = delivery.id.function
    if dispatcher.read({ $0.backlogs[function]?.count ?? 0 }) >= configuration.pendingMax {
      delivery.end(
        .dead,
        "\(configuration.pendingMax) events of \(function) wait already; fix it, or discard some.",
        now
      )
      dispatcher.log(delivery)
    } else if configuration.loopCheck.wantsLook(at: delivery.depth),
      let problem = configuration.loopCheck.problem(with: delivery, after: chain)
    {
      delivery.end(.dead, problem, now)
      dispatcher.noteStopped(delivery)
      dispatcher.log(delivery)
    } else {
      checkSpread(of: &delivery, after: chain, now)
    }
  }

  /// Ends a delivery of a function whose writes trigger it for ever more documents.
  private func checkSpread(
    of delivery: inout Delivery,
    after chain: [Delivery],
    _ now: Timestamp
  ) {
    guard let origin = delivery.origin, origin.generation >= LoopCheck.generationMin else { return }
    let function = delivery.id.function
    let count = state.withLock { $0.spreads.add(origin.root, function) }
    let problem = configuration.loopCheck.problem(with: delivery, count: count, after: chain)
    guard let problem else { return }
    delivery.end(.dead, problem, now)
    dispatcher.noteStopped(delivery)
    // The first stopped delivery is logged, and then one each time their number has doubled.
    let stopped = count - configuration.loopCheck.spreadMax
    if stopped.nonzeroBitCount == 1 { dispatcher.log(delivery) }
  }

  /// The number of event records without deliveries that a crash may cause to be expanded again.
  ///
  /// The log keeps such records and must not fill up with them.
  private static let cursorLagMax = 256
  private static let cursorLagBytesMax = 4 << 20
}
