import DequeModule
import DocumentModel
import Events

/// The locks on documents and query ranges, held and requested: a state machine without a clock.
///
/// Requests are served first come, first served. A request waits behind every earlier conflicting
/// request, even if the lock holders would admit it, so that readers do not starve writers. There
/// is one exception, so that this rule does not itself cause deadlocks: an owner never waits behind
/// a request that is waiting for that owner. If owners wait for each other's locks in a cycle, the
/// youngest owner of the cycle is aborted.
struct LockTable: Sendable {
  /// A request's place in the queue.
  typealias Ticket = UInt64

  enum Reception: Equatable {
    case granted
    case waiting(Ticket)
  }

  /// The outcome of a waiting request.
  enum Action: Equatable {
    case granted(Ticket)
    /// The owner has lost its locks, in a deadlock or because they were released.
    case aborted(Ticket)
  }

  private struct Entry {
    var exclusive: LockOwner?
    var update: LockOwner?
    var shared: Set<LockOwner> = []
    /// The waiting requests that name the key, oldest first.
    var waiting: Deque<Ticket> = []
    var waitingExclusive = 0
    var waitingUpdate = 0
    var waitingShared = 0
    /// True if readers that wanted to write were aborted here.
    ///
    /// The mark lasts as long as the entry: until no owner holds or requests the document.
    var isContended = false

    var isUnused: Bool {
      exclusive == nil && update == nil && shared.isEmpty && waiting.isEmpty
    }

    mutating func add(_ owner: LockOwner, _ mode: LockMode) {
      switch mode {
      case .shared: shared.insert(owner)
      case .update: update = owner
      case .exclusive: exclusive = owner
      }
    }

    mutating func remove(_ owner: LockOwner, _ mode: LockMode) {
      switch mode {
      case .shared: shared.remove(owner)
      case .update: update = nil
      case .exclusive: exclusive = nil
      }
    }

    mutating func countWaiting(_ mode: LockMode, _ change: Int) {
      switch mode {
      case .shared: waitingShared += change
      case .update: waitingUpdate += change
      case .exclusive: waitingExclusive += change
      }
    }

    /// Returns true if a waiting request may conflict with a request for this mode.
    func mayWaitAhead(of mode: LockMode) -> Bool {
      switch mode {
      case .shared: waitingExclusive > 0
      case .update: waitingExclusive + waitingUpdate > 0
      case .exclusive: !waiting.isEmpty
      }
    }
  }

  private struct Holdings {
    var documents: [LockKey: LockMode] = [:]
    /// The keys in `documents` that are locked to commit, with the modes of their earlier reads.
    var readBefore: [LockKey: LockMode?] = [:]
    var ranges: [QueryRange] = []
    var changes: [DocumentChange] = []
    var waiting: Set<Ticket> = []

    var holdsAnything: Bool { !documents.isEmpty || !ranges.isEmpty || !changes.isEmpty }
  }

  private struct Waiter {
    var owner: LockOwner
    var request: LockRequest
  }

  private var entries: [LockKey: Entry] = [:]
  private var owners: [LockOwner: Holdings] = [:]
  private var waiters: [Ticket: Waiter] = [:]
  private var rangeHolders: Set<LockOwner> = []
  private var changeHolders: Set<LockOwner> = []
  /// The owners that hold locks and wait for more; only these can be part of a cycle.
  private var entangled: Set<LockOwner> = []
  private var waitingForRanges: Set<Ticket> = []
  private var waitingForChanges: Set<Ticket> = []
  private var nextTicket: Ticket = 1

  /// The number of waiting requests.
  var waitingCount: Int { waiters.count }

  /// Returns the mode in which an owner should lock what it reads.
  ///
  /// Readers that share a document and then all want to write it abort each other. Where that has
  /// happened, later readers take turns. An owner that already holds locks does not join the queue:
  /// two owners in each other's queues would be aborted during a read instead of at commit, and not
  /// every client retries after a failed read.
  func modeForReading(_ key: LockKey, by owner: LockOwner) -> LockMode {
    guard entries[key]?.isContended == true else { return .shared }
    return owners[owner]?.holdsAnything == true ? .shared : .update
  }

  /// True if no owner holds or waits for a lock.
  var isEmpty: Bool { entries.isEmpty && owners.isEmpty && waiters.isEmpty }

  /// Grants a request or queues it; the actions concern requests that were already waiting.
  mutating func request(
    _ request: LockRequest,
    by owner: LockOwner
  ) -> (reception: Reception, actions: [Action]) {
    let ticket = nextTicket
    nextTicket += 1
    if isFree(request, owner, ticket) {
      grant(request, to: owner)
      // A new lock can close a cycle only if its owner also waits for another lock.
      let waitsElsewhere = !(owners[owner]?.waiting.isEmpty ?? true)
      return (.granted, waitsElsewhere ? grantWhatIsFree(among: []) : [])
    }
    enqueue(request, owner, ticket)
    var actions = owners[owner]?.holdsAnything == true ? grantWhatIsFree(among: []) : []
    if let index = actions.firstIndex(of: .granted(ticket)) {
      actions.remove(at: index)
      return (.granted, actions)
    }
    return (.waiting(ticket), actions)
  }

  /// Grants a request only if it does not have to wait.
  mutating func tryRequest(_ request: LockRequest, by owner: LockOwner) -> Bool {
    guard isFree(request, owner, nextTicket) else { return false }
    grant(request, to: owner)
    return true
  }

  /// Removes a request from the queue without an action for it; its owner keeps its locks.
  ///
  /// Returns nil if the request is not waiting.
  mutating func cancel(_ ticket: Ticket) -> [Action]? {
    guard let waiter = waiters[ticket] else { return nil }
    let behind = remove(ticket)
    forgetIfUnused(waiter.owner)
    return grantWhatIsFree(among: behind)
  }

  /// Releases all locks of an owner; the owner's waiting requests are aborted.
  mutating func release(_ owner: LockOwner) -> [Action] {
    let lost = owners[owner]?.waiting.sorted() ?? []
    return lost.map(Action.aborted) + grantWhatIsFree(among: drop(owner))
  }

  /// Releases the locks that an owner took to commit; its reads stay locked.
  mutating func releaseCommit(_ owner: LockOwner) -> [Action] {
    guard var holdings = owners[owner] else { return [] }
    var affected: Set<Ticket> = []
    for (key, before) in holdings.readBefore {
      entries[key]?.remove(owner, .exclusive)
      if let before { entries[key]?.add(owner, before) }
      holdings.documents[key] = before
      affected.formUnion(firstWaiting(for: key))
      forgetIfUnused(key)
    }
    holdings.readBefore = [:]
    if !holdings.changes.isEmpty {
      holdings.changes = []
      changeHolders.remove(owner)
      affected.formUnion(waitingForRanges)
    }
    owners[owner] = holdings
    forgetIfUnused(owner)
    noteEntangled(owner)
    return grantWhatIsFree(among: affected)
  }
}

// MARK: Granting

extension LockTable {
  private mutating func grant(_ request: LockRequest, to owner: LockOwner) {
    var holdings = owners[owner] ?? Holdings()
    for (key, mode) in request.documents {
      let held = holdings.documents[key]
      if let held, held >= mode {
        // Read again while locked to commit: it stays locked for that read afterwards.
        if case .some(let before) = holdings.readBefore[key], mode != .exclusive {
          holdings.readBefore[key] = max(before ?? mode, mode)
        }
        continue
      }
      if mode == .exclusive { holdings.readBefore[key] = .some(held) }
      if let held { entries[key]?.remove(owner, held) }
      entries[key, default: Entry()].add(owner, mode)
      holdings.documents[key] = mode
    }
    if !request.ranges.isEmpty {
      holdings.ranges += request.ranges
      rangeHolders.insert(owner)
    }
    if !request.changes.isEmpty {
      holdings.changes += request.changes
      changeHolders.insert(owner)
    }
    owners[owner] = holdings
    noteEntangled(owner)
  }

  /// Returns true if nothing blocks a request whose place in the queue is `ticket`.
  private func isFree(_ request: LockRequest, _ owner: LockOwner, _ ticket: Ticket) -> Bool {
    for (key, mode) in request.documents where isHeldByOthers(key, mode, owner) { return false }
    for range in request.ranges where isBeingChanged(range, by: owner) { return false }
    for change in request.changes where isRead(change, by: owner) { return false }
    // No request can be waiting for an owner that holds no locks.
    let canBeWaitedFor = owners[owner]?.holdsAnything ?? false
    return !hasConflictingWaiter(request, owner, before: ticket) { other in
      !canBeWaitedFor || !isWaiting(other, for: owner)
    }
  }

  private func isHeldByOthers(_ key: LockKey, _ mode: LockMode, _ owner: LockOwner) -> Bool {
    guard let entry = entries[key] else { return false }
    if let holder = entry.exclusive { return holder != owner }
    if mode != .shared, let holder = entry.update, holder != owner { return true }
    guard mode == .exclusive else { return false }
    return entry.shared.count > (entry.shared.contains(owner) ? 1 : 0)
  }

  private func isBeingChanged(_ range: QueryRange, by owner: LockOwner) -> Bool {
    changeHolders.contains { holder in
      holder != owner && (owners[holder]?.changes.contains(where: range.covers) ?? false)
    }
  }

  private func isRead(_ change: DocumentChange, by owner: LockOwner) -> Bool {
    rangeHolders.contains { holder in
      holder != owner && (owners[holder]?.ranges.contains { $0.covers(change) } ?? false)
    }
  }

  /// Returns true if another owner's earlier request conflicts with this one and passes `counts`.
  private func hasConflictingWaiter(
    _ request: LockRequest,
    _ owner: LockOwner,
    before ticket: Ticket,
    where counts: (Ticket) -> Bool
  ) -> Bool {
    func isAhead(_ other: Ticket, _ conflicts: (LockRequest) -> Bool) -> Bool {
      guard other < ticket, let waiter = waiters[other], waiter.owner != owner else { return false }
      return conflicts(waiter.request) && counts(other)
    }
    for (key, mode) in request.documents {
      // A lock that the owner already holds is not requested again. Any request that waits for a
      // document the owner is about to write waits for the owner.
      if let held = owners[owner]?.documents[key], held >= min(mode, .update) { continue }
      guard let entry = entries[key], entry.mayWaitAhead(of: mode) else { continue }
      for other in entry.waiting {
        if other >= ticket { break }
        if isAhead(other, { $0.documents[key]?.conflicts(with: mode) ?? false }) { return true }
      }
    }
    for range in request.ranges {
      for other in waitingForChanges
      where isAhead(other, { $0.changes.contains(where: range.covers) }) { return true }
    }
    for change in request.changes {
      for other in waitingForRanges
      where isAhead(other, { $0.ranges.contains { $0.covers(change) } }) { return true }
    }
    return false
  }

  /// Returns true if a request waits, directly or through other owners, for a lock of `owner`.
  private func isWaiting(_ ticket: Ticket, for owner: LockOwner) -> Bool {
    var visited: Set<Ticket> = [ticket]
    var next = [ticket]
    while let ticket = next.popLast() {
      guard let waiter = waiters[ticket] else { continue }
      let holders = holders(against: waiter)
      if holders.contains(owner) { return true }
      for holder in holders {
        for other in owners[holder]?.waiting ?? [] where visited.insert(other).inserted {
          next.append(other)
        }
      }
      _ = hasConflictingWaiter(waiter.request, waiter.owner, before: ticket) { other in
        if visited.insert(other).inserted { next.append(other) }
        return false
      }
    }
    return false
  }

  /// Returns the owners whose locks conflict with a waiting request.
  private func holders(against waiter: Waiter) -> Set<LockOwner> {
    var result: Set<LockOwner> = []
    for (key, mode) in waiter.request.documents {
      guard let entry = entries[key] else { continue }
      if let holder = entry.exclusive { result.insert(holder) }
      if mode != .shared, let holder = entry.update { result.insert(holder) }
      if mode == .exclusive { result.formUnion(entry.shared) }
    }
    for holder in changeHolders {
      let changes = owners[holder]?.changes ?? []
      if waiter.request.ranges.contains(where: { changes.contains(where: $0.covers) }) {
        result.insert(holder)
      }
    }
    for holder in rangeHolders {
      let ranges = owners[holder]?.ranges ?? []
      if waiter.request.changes.contains(where: { change in
        ranges.contains { $0.covers(change) }
      }) {
        result.insert(holder)
      }
    }
    result.remove(waiter.owner)
    return result
  }
}

// MARK: The queue

extension LockTable {
  private mutating func enqueue(_ request: LockRequest, _ owner: LockOwner, _ ticket: Ticket) {
    waiters[ticket] = Waiter(owner: owner, request: request)
    owners[owner, default: Holdings()].waiting.insert(ticket)
    for (key, mode) in request.documents {
      entries[key, default: Entry()].waiting.append(ticket)
      entries[key]?.countWaiting(mode, 1)
    }
    if !request.ranges.isEmpty { waitingForRanges.insert(ticket) }
    if !request.changes.isEmpty { waitingForChanges.insert(ticket) }
    noteEntangled(owner)
  }

  private mutating func noteEntangled(_ owner: LockOwner) {
    if let holdings = owners[owner], holdings.holdsAnything, !holdings.waiting.isEmpty {
      entangled.insert(owner)
    } else {
      entangled.remove(owner)
    }
  }

  /// Returns the requests for a document that no earlier waiting request blocks.
  ///
  /// These are the readers before the first writer, and the first owner that intends to write. Also
  /// included are all requests of that writer's or owner's, which does not wait for itself. A
  /// release costs O(1) even with a long queue if all in the queue intend to write. No reader may
  /// be left out: nothing else would wake it, and the owner ahead may come to wait for it.
  private func firstWaiting(for key: LockKey) -> [Ticket] {
    guard let entry = entries[key] else { return [] }
    guard entry.mayWaitAhead(of: .update) else { return Array(entry.waiting) }
    var first: [Ticket] = []
    var updater: LockOwner?
    var readersLeft = entry.waitingShared
    for ticket in entry.waiting {
      guard let waiter = waiters[ticket] else { continue }
      switch waiter.request.documents[key] {
      case .exclusive: return first + (owners[waiter.owner]?.waiting ?? [])
      case .update:
        if let updater, updater != waiter.owner {
          guard readersLeft > 0 else { return first + (owners[updater]?.waiting ?? []) }
          continue
        }
        updater = waiter.owner
      case .shared: readersLeft -= 1
      case nil: break
      }
      first.append(ticket)
    }
    return first + (updater.flatMap { owners[$0]?.waiting } ?? [])
  }

  /// Removes a request from the queue and returns the requests that may have waited behind it.
  private mutating func remove(_ ticket: Ticket) -> Set<Ticket> {
    guard let waiter = waiters.removeValue(forKey: ticket) else { return [] }
    var behind: Set<Ticket> = []
    owners[waiter.owner]?.waiting.remove(ticket)
    noteEntangled(waiter.owner)
    for (key, mode) in waiter.request.documents {
      if let index = entries[key]?.waiting.firstIndex(of: ticket) {
        entries[key]?.waiting.remove(at: index)
      }
      entries[key]?.countWaiting(mode, -1)
      // Readers do not wait for each other.
      if mode != .shared || entries[key]?.waitingExclusive ?? 0 > 0 {
        behind.formUnion(firstWaiting(for: key))
      }
      forgetIfUnused(key)
    }
    if waitingForRanges.remove(ticket) != nil { behind.formUnion(waitingForChanges) }
    if waitingForChanges.remove(ticket) != nil { behind.formUnion(waitingForRanges) }
    return behind
  }

  /// Removes an owner and returns the requests that may now be granted.
  private mutating func drop(_ owner: LockOwner) -> Set<Ticket> {
    guard let holdings = owners[owner] else { return [] }
    var affected: Set<Ticket> = []
    for ticket in holdings.waiting { affected.formUnion(remove(ticket)) }
    for (key, mode) in holdings.documents {
      guard var entry = entries[key] else { continue }
      entry.remove(owner, mode)
      entries[key] = entry.isUnused ? nil : entry
      // Releasing a shared lock admits only requests for an exclusive lock.
      if mode != .shared || entry.waitingExclusive > 0 {
        affected.formUnion(firstWaiting(for: key))
      }
    }
    if rangeHolders.remove(owner) != nil { affected.formUnion(waitingForChanges) }
    if changeHolders.remove(owner) != nil { affected.formUnion(waitingForRanges) }
    owners[owner] = nil
    entangled.remove(owner)
    return affected.subtracting(holdings.waiting)
  }

  private mutating func forgetIfUnused(_ key: LockKey) {
    if let entry = entries[key], entry.isUnused { entries[key] = nil }
  }

  private mutating func forgetIfUnused(_ owner: LockOwner) {
    if let holdings = owners[owner], !holdings.holdsAnything, holdings.waiting.isEmpty {
      owners[owner] = nil
    }
  }

  /// Grants requests that have become free and breaks cycles until nothing changes.
  private mutating func grantWhatIsFree(among candidates: Set<Ticket>) -> [Action] {
    var actions: [Action] = []
    var candidates = candidates
    while true {
      var granted = false
      for ticket in candidates.sorted() {
        guard let waiter = waiters[ticket], isFree(waiter.request, waiter.owner, ticket) else {
          continue
        }
        // In this order, so that the document's entry outlives the change of its holder.
        grant(waiter.request, to: waiter.owner)
        _ = remove(ticket)
        actions.append(.granted(ticket))
        granted = true
      }
      // Other requests may now wait for an owner that both holds and waits. That lets the owner
      // pass them or closes a cycle.
      let entangled = entangled.flatMap { owners[$0]?.waiting ?? [] }
      if granted, !entangled.isEmpty {
        candidates = Set(entangled)
        continue
      }
      let free = entangled.filter { ticket in
        waiters[ticket].map { isFree($0.request, $0.owner, ticket) } ?? false
      }
      if !free.isEmpty {
        candidates = Set(free)
        continue
      }
      guard let victim = youngestInCycle(entangled) else { return actions }
      let lost = owners[victim]?.waiting.sorted() ?? []
      for ticket in lost {
        guard let request = waiters[ticket]?.request else { continue }
        for case (let key, .exclusive) in request.documents { entries[key]?.isContended = true }
        if !request.changes.isEmpty {
          for range in owners[victim]?.ranges ?? [] {
            entries[range.queueKey]?.isContended = true
          }
        }
      }
      candidates = drop(victim)
      actions += lost.map(Action.aborted)
    }
  }

  /// Returns the youngest owner of a cycle of owners that wait for each other's locks, or nil.
  private func youngestInCycle(_ entangled: [Ticket]) -> LockOwner? {
    var edges: [LockOwner: Set<LockOwner>] = [:]
    for ticket in entangled {
      guard let waiter = waiters[ticket] else { continue }
      edges[waiter.owner, default: []].formUnion(holders(against: waiter))
    }
    // An owner that waits for none of the others is not part of a cycle. Removing these owners
    // repeatedly leaves only owners that lead into a cycle.
    var removed = true
    while removed {
      removed = false
      for (owner, targets) in edges where targets.allSatisfy({ edges[$0] == nil }) {
        edges[owner] = nil
        removed = true
      }
    }
    guard var owner = edges.keys.min() else { return nil }
    var path: [LockOwner] = []
    while !path.contains(owner) {
      path.append(owner)
      guard let next = edges[owner]?.filter({ edges[$0] != nil }).min() else { return nil }
      owner = next
    }
    return path.drop { $0 != owner }.max()
  }
}
