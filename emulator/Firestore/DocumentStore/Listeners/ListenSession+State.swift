import DocumentModel

extension ListenSession {
  /// A target that the client has added.
  struct Target {
    var id: Int32
    var prepared: PreparedTarget
    var isOnce: Bool
    /// True if some of the target's documents have been sent or queued.
    var isReported = false
    /// True if all of the target's documents have been sent.
    var isCurrent = false
    /// True if the client must discard the target's documents before it receives more.
    var needsReset = false
    /// True if the target is about to start over, so that nothing more is queued for it.
    var isOutdated = false
  }

  struct State {
    var subscriptions: [Int32: SubscriptionID] = [:]
    var targets: [SubscriptionID: Target] = [:]
    var queue = ListenQueue()
    /// The bytes of the events taken last, which may not have reached the transport yet.
    var takenBytes = 0
    /// The bytes kept by reads that wait for the client.
    var keptBytes = 0
    /// The bytes currently reported to the memory for slow clients.
    var heldBytes = 0
    /// The tasks that read documents of targets.
    var reads: [SubscriptionID: Task<Void, any Error>] = [:]
    /// The read tasks of targets that start over; cancelled once no lock is held.
    var outdatedReads: [Task<Void, any Error>] = []
    /// The subscriptions whose documents the client does not have completely yet.
    var incomplete: Set<SubscriptionID> = []
    /// The incomplete subscriptions of which the client has some documents.
    var partly: Set<SubscriptionID> = []
    /// The number of targets about to start over, whose documents at the client are out of date.
    var outdatedCount = 0
    /// The latest time that was withheld because of partial or outdated targets.
    var held: Timestamp?
    var isClosed = false
    var isInterrupted = false
    var waiter: CheckedContinuation<Void, Never>?
    var roomWaiters: [CheckedContinuation<Bool, Never>] = []
    var nextTargetID: Int32 = 1
    /// The number of targets whose documents are still to be read.
    var jobCount = 0
    /// The number of targets whose documents are being read.
    var readCount = 0
  }

  /// Tasks and waiters to cancel or resume once no lock is held.
  struct Released {
    var reads: [Task<Void, any Error>] = []
    var roomWaiters: [CheckedContinuation<Bool, Never>] = []

    func resume() {
      for read in reads { read.cancel() }
      for waiter in roomWaiters { waiter.resume(returning: true) }
    }
  }
}

extension ListenSession.State {
  /// Removes a subscription.
  mutating func forget(_ id: ListenTable.SubscriptionID) {
    targets[id] = nil
    incomplete.remove(id)
    if partly.remove(id) != nil { release() }
  }

  /// Returns true if more may be queued for a subscription.
  func wants(_ id: ListenTable.SubscriptionID) -> Bool {
    targets[id].map { !$0.isOutdated } ?? false
  }

  /// Drops the queue of a slow client; its targets are reset when it reads on.
  mutating func startAgain() {
    guard !isClosed else { return }
    // Targets whose documents are still being read have missed nothing, unless they lose a recheck.
    let reported = targets.filter(\.value.isReported).keys
    let resets = queue.removeObsolete().union(reported)
    for id in resets.sorted() where targets[id] != nil {
      targets[id]?.isOutdated = true
      if let read = reads.removeValue(forKey: id) { outdatedReads.append(read) }
      queue.append(.reset(id))
    }
  }

  /// Removes the read of a subscription and all tasks waiting for room, which check again.
  mutating func release(readOf id: ListenTable.SubscriptionID) -> ListenSession.Released {
    ListenSession.Released(
      reads: reads.removeValue(forKey: id).map { [$0] } ?? [],
      roomWaiters: takeRoomWaiters()
    )
  }

  /// Removes the reads of outdated targets and all tasks waiting for room; nil without such reads.
  mutating func takeOutdated() -> ListenSession.Released? {
    guard !outdatedReads.isEmpty else { return nil }
    defer { outdatedReads = [] }
    return ListenSession.Released(reads: outdatedReads, roomWaiters: takeRoomWaiters())
  }

  /// Records that an outdated target has started over or is gone.
  mutating func forgetOutdated() {
    outdatedCount -= 1
    release()
  }

  /// Queues the withheld time once nothing withholds it any longer.
  private mutating func release() {
    guard partly.isEmpty, outdatedCount == 0, let time = held else { return }
    held = nil
    queue.append(.time(time))
  }

  /// Returns the target of a subscription, adding a reset event first if one is due.
  mutating func reset(
    _ id: ListenTable.SubscriptionID,
    _ events: inout [ListenEvent]
  ) -> ListenSession.Target? {
    guard let target = targets[id] else { return nil }
    if target.needsReset {
      events.append(.reset(target.id))
      targets[id]?.needsReset = false
    }
    return target
  }

  mutating func takeRoomWaiters() -> [CheckedContinuation<Bool, Never>] {
    defer { roomWaiters = [] }
    return roomWaiters
  }

  /// Returns the changes of a commit by target, and the subscriptions whose changes are lost.
  ///
  /// Returns nil if some changes are not known yet; `session` is then woken when they are.
  func changes(
    of commit: ListenedCommit,
    for session: ListenSession
  ) -> (known: [(target: Int32, changes: [ListenedChange])], lost: [ListenTable.SubscriptionID])? {
    var known: [(target: Int32, changes: [ListenedChange])] = []
    var lost: [ListenTable.SubscriptionID] = []
    for part in commit.parts {
      guard let target = targets[part.subscription] else { continue }
      switch part.delta {
      case .now(let changes): known.append((target.id, changes))
      case .later(let later):
        switch later.outcome(for: session) {
        case .known(let changes): known.append((target.id, changes))
        case .lost: lost.append(part.subscription)
        case nil: return nil
        }
      }
    }
    return (known, lost)
  }
}
