import DocumentModel

/// The assembly of a session's queued items into the next events for its client.
///
/// The changes of a commit are merged into one event per document, whatever the number of its
/// targets. A `snapshot` follows them, unless some target's documents are incomplete at the client.
struct SnapshotAssembly {
  private let session: ListenSession
  private(set) var events: [ListenEvent] = []
  /// The targets whose documents are to be read again.
  private(set) var restarted: [(target: ListenSession.Target, old: ListenTable.SubscriptionID)] = []
  /// The subscriptions that are no longer needed.
  private(set) var ended: [ListenTable.SubscriptionID] = []
  /// A subscription whose access has to be rechecked before anything else is taken.
  private(set) var recheck: (ListenTable.SubscriptionID, AccessMoment)?
  private(set) var roomWaiters: [CheckedContinuation<Bool, Never>] = []
  /// The waits that end because the transport has everything taken before.
  private(set) var handovers: [Handover] = []
  /// The bytes of the events.
  private var bytes = 0
  private(set) var isClosed = false

  /// The maximum number of events taken at a time.
  private static let eventsMax = 256
  /// The bytes of events taken at a time, after which no more are added.
  ///
  /// Taken events can no longer be dropped if the client does not read.
  private static let eventBytesMax = 1 << 20

  init(for session: ListenSession) { self.session = session }

  /// Takes items from the front of the queue until there are enough events.
  mutating func take(from state: inout ListenSession.State) {
    while events.count < Self.eventsMax, bytes < Self.eventBytesMax, let item = state.queue.first {
      if case .handover(let handover) = item {
        guard events.isEmpty else { break }
        state.queue.removeFirst()
        handovers.append(handover)
        continue
      }
      if case .recheck(let id, let moment) = item {
        // The events taken so far are sent first.
        guard events.isEmpty else { break }
        recheck = (id, moment)
        state.queue.removeFirst()
        break
      }
      if case .commit(let commit) = item {
        guard let (changes, lost) = state.changes(of: commit, for: session) else { break }
        bytes += commit.bytes
        for id in lost { take(.reset(id), &state) }
        append(changes, at: commit.time)
        addSnapshot(at: commit.time, &state)
      } else if case .results(let id, let results) = item,
        let rest = takePart(of: results, id, &state)
      {
        state.queue.replaceFirst(with: rest, of: id, taken: results.bytes - rest.bytes)
        continue
      } else {
        take(item, &state)
      }
      state.queue.removeFirst()
    }
    state.takenBytes = bytes
    roomWaiters = state.takeRoomWaiters()
    isClosed = state.isClosed || state.isInterrupted
  }

  /// Takes as many results as fit into one batch of events; returns nil if all of them fit.
  private mutating func takePart(
    of results: ListenSession.Results,
    _ id: ListenTable.SubscriptionID,
    _ state: inout ListenSession.State
  ) -> ListenSession.Results? {
    let average = max(1, results.bytes / max(1, results.changes.count))
    let count = max(
      1,
      min(Self.eventsMax - events.count, (Self.eventBytesMax - bytes) / average)
    )
    guard count < results.changes.count else { return nil }
    var (part, rest) = (results, results)
    part.count = nil
    part.changes = results.changes.prefix(count)
    part.bytes = min(results.bytes, count * average)
    rest.changes.removeFirst(count)
    rest.bytes -= part.bytes
    take(.results(id, part), &state)
    return rest
  }

  private mutating func take(_ item: ListenQueue.Item, _ state: inout ListenSession.State) {
    switch item {
    case .event(let event): events.append(event)
    case .time(let time): addSnapshot(at: time, &state)
    case .commit, .recheck, .handover: break
    case .results(let id, let results):
      bytes += results.bytes
      guard let target = state.reset(id, &events) else { return }
      state.partly.insert(id)
      append([(target.id, Array(results.changes))], at: results.time)
      // The client compares the count with the documents it then has.
      if let count = results.count {
        events.append(.filter(target.id, count: count.count, names: count.names))
      }
    case .current(let id, let time):
      guard let target = state.reset(id, &events) else { return }
      state.partly.remove(id)
      state.incomplete.remove(id)
      state.targets[id]?.isCurrent = true
      events.append(.current(target.id, readTime: time, token: session.token(time)))
      addSnapshot(at: time, &state)
      if target.isOnce {
        events.append(.removed(target.id, cause: nil))
        state.subscriptions[target.id] = nil
        state.forget(id)
        ended.append(id)
      }
    case .failure(let id, let error):
      guard let target = state.targets[id] else { return }
      events.append(.removed(target.id, cause: error))
      state.subscriptions[target.id] = nil
      state.forget(id)
    case .reset(let id):
      guard var target = state.targets[id] else { return }
      state.forget(id)
      target.isReported = false
      target.isCurrent = false
      target.needsReset = true
      target.isOutdated = false
      state.outdatedCount += 1
      restarted.append((target, id))
      ended.append(id)
    }
  }

  /// Adds a snapshot, unless the client has only a part of some target's documents.
  private mutating func addSnapshot(at time: Timestamp, _ state: inout ListenSession.State) {
    guard state.partly.isEmpty, state.outdatedCount == 0 else {
      state.held = time
      return
    }
    state.held = nil
    // A client applies the token to all its targets, including one whose documents it does not
    // have.
    let token = state.incomplete.isEmpty ? session.token(time) : []
    events.append(.snapshot(readTime: time, token: token))
  }

  /// Adds the changes of documents, one event per document regardless of the number of its targets.
  private mutating func append(
    _ changes: [(target: Int32, changes: [ListenedChange])],
    at time: Timestamp
  ) {
    if changes.count == 1, let (target, only) = changes.first {
      for change in only {
        var outcome = DocumentOutcome()
        outcome.add(change, target)
        events.append(outcome.event(change.name, at: time, hidesFormer: session.hidesFormer))
      }
      return
    }
    var names: [DocumentName] = []
    var outcomes: [DocumentName: DocumentOutcome] = [:]
    for (target, changes) in changes {
      for change in changes {
        if outcomes[change.name] == nil { names.append(change.name) }
        outcomes[change.name, default: DocumentOutcome()].add(change, target)
      }
    }
    for name in names {
      guard let outcome = outcomes[name] else { continue }
      events.append(outcome.event(name, at: time, hidesFormer: session.hidesFormer))
    }
  }
}

/// The outcome of one commit for a document in all targets of a listener.
private struct DocumentOutcome {
  private var document: ListenedDocument?
  private var isDeleted = false
  private var targets: [Int32] = []
  private var removedTargets: [Int32] = []

  mutating func add(_ change: ListenedChange, _ target: Int32) {
    switch change {
    case .member(let document):
      self.document = document
      targets.append(target)
    case .former(let document):
      self.document = document
      removedTargets.append(target)
    case .departed: removedTargets.append(target)
    case .deleted:
      isDeleted = true
      removedTargets.append(target)
    }
  }

  func event(_ name: DocumentName, at time: Timestamp, hidesFormer: Bool) -> ListenEvent {
    let (targets, removedTargets) = (targets.sorted(), removedTargets.sorted())
    if isDeleted { return .deleted(name, removedTargets: removedTargets, readTime: time) }
    guard let document, !(hidesFormer && targets.isEmpty) else {
      return .departed(name, removedTargets: removedTargets, readTime: time)
    }
    return .document(document, targets: targets, removedTargets: removedTargets)
  }
}
