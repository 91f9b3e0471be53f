import DequeModule
import DocumentModel
import StatusCodes

/// The queue of a listener: the items that its client has not taken yet, and their size.
struct ListenQueue {
  enum Item {
    case event(ListenEvent)
    case results(ListenTable.SubscriptionID, ListenSession.Results)
    case current(ListenTable.SubscriptionID, Timestamp)
    case failure(ListenTable.SubscriptionID, StatusError)
    case reset(ListenTable.SubscriptionID)
    /// A recheck of the client's access, due before any later item is sent.
    case recheck(ListenTable.SubscriptionID, AccessMoment)
    case commit(ListenedCommit)
    case time(Timestamp)
    /// A wait until the client's transport has everything before this item.
    case handover(Handover)
  }

  private var items: Deque<Item> = []
  /// The stored size of the queued commits.
  private(set) var commitBytes = 0
  private(set) var commitCount = 0
  private(set) var recheckCount = 0
  /// The places of the rechecks with nothing of their subscription behind them, counted from the
  /// first item ever.
  private var lastRechecks: [ListenTable.SubscriptionID: Int] = [:]
  /// The number of items taken from the front.
  private var takenCount = 0
  /// The bytes of the queued results.
  private(set) var resultBytes = 0
  /// The last queued handover.
  private(set) var handover: Handover?

  var first: Item? { items.first }
  var count: Int { items.count }
  var isEmpty: Bool { items.isEmpty }
  /// The handovers in the queue.
  var handovers: [Handover] {
    items.compactMap { if case .handover(let handover) = $0 { handover } else { nil } }
  }

  mutating func append(_ item: Item) {
    add(item)
    items.append(item)
  }

  /// Adds a recheck; `isSole` if it makes one unnecessary that nothing to send separates from it.
  ///
  /// A hot document would otherwise add a recheck with each commit.
  mutating func append(
    recheckOf id: ListenTable.SubscriptionID,
    at moment: AccessMoment,
    isSole: Bool
  ) {
    if isSole, let place = lastRechecks[id],
      case .recheck(_, let earlier) = items[place - takenCount]
    {
      // Access before a change of the policy can no longer be decided, so the target starts over.
      guard earlier.policyVersion == moment.policyVersion else { return }
      items[place - takenCount] = .recheck(id, moment)
      return
    }
    append(.recheck(id, moment))
    lastRechecks[id] = takenCount + items.count - 1
  }

  /// Adds an item that is taken before all others.
  mutating func prepend(_ item: Item) {
    add(item)
    items.prepend(item)
    takenCount -= 1
  }

  private mutating func add(_ item: Item) {
    switch item {
    case .commit(let commit):
      commitBytes += commit.bytes
      commitCount += 1
      for part in commit.parts { lastRechecks[part.subscription] = nil }
    case .results(let id, let results):
      resultBytes += results.bytes
      lastRechecks[id] = nil
    case .recheck: recheckCount += 1
    case .handover(let handover): self.handover = handover
    default: break
    }
  }

  mutating func removeFirst() {
    takenCount += 1
    switch items.removeFirst() {
    case .recheck(let id, _):
      recheckCount -= 1
      if let place = lastRechecks[id], place < takenCount { lastRechecks[id] = nil }
    case .commit(let commit):
      commitBytes -= commit.bytes
      commitCount -= 1
    case .results(_, let results): resultBytes -= results.bytes
    case .handover(let first):
      if handover === first { handover = nil }
    default: break
    }
  }

  /// Replaces results at the front of the queue, of which a part has been taken, with their rest.
  mutating func replaceFirst(
    with rest: ListenSession.Results,
    of id: ListenTable.SubscriptionID,
    taken bytes: Int
  ) {
    resultBytes -= bytes
    items[0] = .results(id, rest)
  }

  /// Removes the items of a subscription that has ended.
  mutating func removeItems(of id: ListenTable.SubscriptionID) {
    var kept: Deque<Item> = []
    for item in items {
      switch item {
      case .results(id, let results): resultBytes -= results.bytes
      case .recheck(id, _): recheckCount -= 1
      case .current(id, _), .failure(id, _), .reset(id): continue
      case .commit(var commit):
        commit.parts.removeAll { $0.subscription == id }
        guard commit.parts.isEmpty else {
          kept.append(.commit(commit))
          continue
        }
        commitBytes -= commit.bytes
        commitCount -= 1
        kept.append(.time(commit.time))
      default: kept.append(item)
      }
    }
    items = kept
    lastRechecks = [:]
  }

  /// Removes everything that becomes obsolete when targets start over.
  ///
  /// Returns the subscriptions whose queued resets or rechecks were removed, too.
  mutating func removeObsolete() -> Set<ListenTable.SubscriptionID> {
    var kept: Deque<Item> = []
    var resets: Set<ListenTable.SubscriptionID> = []
    for item in items {
      switch item {
      case .event, .failure, .handover: kept.append(item)
      case .reset(let id), .recheck(let id, _): resets.insert(id)
      case .results, .current, .commit, .time: continue
      }
    }
    items = kept
    commitBytes = 0
    commitCount = 0
    recheckCount = 0
    lastRechecks = [:]
    resultBytes = 0
    return resets
  }
}
