import DequeModule
import DocumentModel

/// The pending deliveries of one function: a value that decides and never acts.
///
/// A window of them is in memory, with their events; the others stay in storage. Untried deliveries
/// enter the window in the order of their events, and postponed deliveries when they are due. In
/// each lane only the first delivery runs, until its attempt has ended. Of the deliveries behind it
/// the window takes a share (`LaneShare`). The rest is parked in storage until the lane's line is
/// short. A delivery stays in the window until its outcome is stored, so that no concurrent load
/// from storage can add it again.
struct FunctionBacklog: Sendable {
  /// One delivery in the window.
  struct Entry: Sendable {
    var delivery: Delivery
    var event: DeliveryEvent?
    var bytes: Int
    var phase: Phase
    /// True if the delivery must run in a worker of its own.
    ///
    /// It has crashed a worker, or it shared a worker that crashed.
    var isCrashCandidate: Bool
  }

  /// The state of a delivery in the window.
  enum Phase: Sendable {
    /// An earlier delivery of its lane is in the window.
    case blocked
    case ready
    case running
    /// Its outcome is being stored.
    case saving
  }

  /// The state of a load from storage, and changes that were noted while it ran.
  private struct Load {
    var known: Set<EventPlace>
    var hasMore = false
    var nextDue: Timestamp?
    var hasLaneRows = false
    /// True if all rows must be read again from the start.
    var isOutdated = false
    /// The lanes that were held at any time during the load.
    var heldLanes: Set<DeliveryLane>
  }

  let function: String
  private(set) var entries: [EventPlace: Entry] = [:]
  private var ready: Deque<EventPlace> = []
  private var crashCandidates: Deque<EventPlace> = []
  private var forced: Deque<EventPlace> = []
  private var lanes: [DeliveryLane: Deque<EventPlace>] = [:]
  private(set) var runningCount = 0
  private(set) var savingCount = 0
  private var crashCandidatesRunning = 0
  /// The size of the events in the window, in bytes.
  private(set) var heldBytes = 0
  /// The number of deliveries that wait for an earlier delivery of their lane.
  ///
  /// `blockedBytes` is the size of their events.
  private(set) var blockedCount = 0
  private var blockedBytes = 0

  /// The number of pending deliveries, in the window and in storage.
  private(set) var count = 0
  /// The number of deliveries in storage that wait although no handler has failed.
  private(set) var unansweredCount = 0
  /// The place up to which untried deliveries have been in the window or are parked.
  private var position: EventPlace?
  /// True if storage holds untried deliveries after `position`, or will soon.
  private var hasMore = false
  /// True if some of the deliveries of `hasMore` can be loaded already.
  private var isMoreStored = false
  /// The number of unfinished writes of untried deliveries after `position`.
  private var insertsRunning = 0
  /// The due time of the first postponed delivery in storage.
  private(set) var nextDue: Timestamp?
  /// True if a delivery of the function may have a row by lane.
  private(set) var hasLaneRows = false
  /// The lanes that are about to get a row, with the number of such writes.
  ///
  /// No other delivery enters these lanes until the writes have ended.
  private var heldLanes: [DeliveryLane: Int] = [:]
  /// The lanes whose next deliveries must be loaded.
  ///
  /// `lanesInOrder` has the order in which they were added.
  private var lanesToCheck: Set<DeliveryLane> = []
  private var lanesInOrder: Deque<DeliveryLane> = []
  private var load: Load?
  /// The number of administrative changes that wait for the end of a load.
  private var reservationsWanted = 0

  private var limits: DispatchLimits
  private var bucket: TokenBucket
  /// True if the queue was paused on request.
  var isPaused = false
  /// The undeployed state; set while the current deployment lacks the function, so nothing starts.
  var undeployed: Undeployed?
  /// The time since which no worker accepts the function's deliveries; nil while one does.
  private(set) var unstartableSince: Timestamp?
  /// The reason why the last attempt found no worker; nil once a worker has responded.
  private(set) var startError: String?
  private var isStartErrorReported = false
  private var startsFailed = 0
  /// The time before which nothing starts, because no worker was available.
  private(set) var startsNotBefore: Timestamp?

  init(function: String, limits: DispatchLimits) {
    self.function = function
    self.limits = limits
    bucket = TokenBucket(rate: limits.perSecondMax)
  }

  /// Applies new limits and resets the start back-off; the function may have a worker now.
  mutating func update(_ limits: DispatchLimits) {
    self.limits = limits
    bucket.update(rate: limits.perSecondMax)
    workerResponded()
  }

  /// The maximum number of deliveries in the window.
  private var windowMax: Int { min(max(2 * limits.concurrentMax, 64), Self.windowMax) }

  private static let windowMax = 1024

  /// The part of the window for deliveries that wait for an earlier delivery of their lane.
  private var share: LaneShare { LaneShare(windowMax: windowMax) }

  /// The maximum number of deliveries in one load.
  static let loadMax = 256
}

// MARK: - Adding deliveries

extension FunctionBacklog {
  /// Applies a summary of the deliveries that an earlier run left.
  mutating func resume(_ summary: DeliveryStore.Summary, now: Timestamp) {
    count = summary.count
    unansweredCount = summary.unansweredCount
    hasLaneRows = hasLaneRows || summary.hasLaneRows
    // The clock may be behind the clock of the earlier run.
    lookAgain(from: summary.nextDue.map { min($0, now) })
  }

  /// Records that the clock was set back to `now`; waits that began later are over.
  mutating func clockWasSetBack(to now: Timestamp) {
    startsNotBefore = nil
    unstartableSince = unstartableSince.map { min($0, now) }
    if nextDue != nil { noteDue(now) }
  }

  /// Marks all of the function's deliveries in storage to be searched again.
  mutating func lookAgain(from due: Timestamp?) {
    position = nil
    load?.isOutdated = true
    noteMore()
    if let due { noteDue(due) }
  }

  /// Counts new deliveries whose rows are about to be written, and takes as many as possible.
  ///
  /// The deliveries come in the order of their events. Once one of them stays in storage, later
  /// deliveries stay there too until it has been loaded. The write may already be running:
  /// deliveries that a concurrent load has found are counted but not added again. `inserted` must
  /// be called when the rows are written.
  mutating func add(_ new: [DeliveryStore.Candidate], room: Int) {
    insertsRunning += 1
    var room = room
    for candidate in new {
      count += 1
      let delivery = candidate.delivery
      if delivery.isPostponed {
        if delivery.isUnanswered { unansweredCount += 1 }
      } else if position.map({ delivery.id.place <= $0 }) ?? false {
        continue
      } else if undeployed == nil, !hasMore, load == nil, !hasLaneRows, entries.count < windowMax,
        candidate.bytes <= room, hasRoom(behindOthersFor: delivery)
      {
        room -= candidate.bytes
        position = delivery.id.place
        enter(candidate)
      } else {
        hasMore = true
      }
    }
  }

  /// Indicates whether a delivery's lane is empty or has space behind its other deliveries.
  private func hasRoom(behindOthersFor delivery: Delivery) -> Bool {
    guard let lane = delivery.lane, let line = lanes[lane] else { return true }
    return share.takes(behind: line.count, blocked: blockedCount, blockedBytes: blockedBytes)
  }

  /// Records that rows of deliveries passed to `add` can be loaded.
  ///
  /// Those that the window took may have left it in the meantime, if the function is suspended.
  mutating func inserted(_ new: [Delivery]) {
    insertsRunning -= 1
    for delivery in new {
      if delivery.isPostponed {
        if delivery.lane != nil { noteLaneRows() }
        noteDue(delivery.dueTime)
      } else if position.map({ $0 < delivery.id.place }) ?? true {
        noteMore()
      }
    }
    // A load may have found the rows already.
    hasMore = isMoreStored || insertsRunning > 0 || load != nil && hasMore
  }

  /// Adds a stored delivery to the window unless it is there.
  ///
  /// With `isForced` the delivery starts next, even if the queue is paused or at its limits.
  /// Returns false if a forced delivery is not ready.
  mutating func bring(_ candidate: DeliveryStore.Candidate, isForced: Bool) -> Bool {
    let place = candidate.delivery.id.place
    if entries[place] == nil { enter(candidate) }
    guard isForced else { return true }
    guard entries[place]?.phase == .ready else { return false }
    forced.append(place)
    return true
  }

  private mutating func enter(_ candidate: DeliveryStore.Candidate) {
    let delivery = candidate.delivery
    let place = delivery.id.place
    var entry = Entry(
      delivery: delivery,
      event: candidate.event,
      bytes: candidate.bytes,
      phase: .blocked,
      isCrashCandidate: delivery.crashes > 0
    )
    heldBytes += candidate.bytes
    if delivery.isUnanswered { unansweredCount -= 1 }
    if let lane = delivery.lane {
      // The line is taken out of the dictionary, so that changing it does not copy it.
      var line = lanes.removeValue(forKey: lane) ?? []
      // A renewed delivery returns to its place, but never before a running delivery.
      var index = line.endIndex
      while index > 0, place < line[index - 1],
        !(index == 1 && entries[line[0]]?.phase == .running)
      {
        index -= 1
      }
      line.insert(place, at: index)
      lanes[lane] = line
      guard index == 0 else {
        entries[place] = entry
        blockedCount += 1
        blockedBytes += entry.bytes
        return
      }
      if line.count > 1 { change(line[1], to: .blocked) }
    }
    entry.phase = .ready
    entries[place] = entry
    queueUp(place)
  }

  private mutating func queueUp(_ place: EventPlace) {
    if entries[place]?.isCrashCandidate == true {
      crashCandidates.append(place)
    } else {
      ready.append(place)
    }
  }

  private mutating func change(_ place: EventPlace, to phase: Phase) {
    guard let old = entries[place]?.phase else { return }
    let bytes = entries[place]?.bytes ?? 0
    if old == .blocked {
      blockedCount -= 1
      blockedBytes -= bytes
    }
    if phase == .blocked {
      blockedCount += 1
      blockedBytes += bytes
    }
    entries[place]?.phase = phase
  }
}

// MARK: - Loading

extension FunctionBacklog {
  /// Indicates whether deliveries should be loaded from storage at `now`.
  func wantsLoad(now: Timestamp) -> Bool {
    guard load == nil, reservationsWanted == 0, !isPaused, undeployed == nil, hasPlace else {
      return false
    }
    if !lanesToCheck.isEmpty { return true }
    return takesMore && (isMoreStored || (nextDue.map { $0 <= now } ?? false))
  }

  private var hasPlace: Bool { entries.count < windowMax }

  /// True if the window has space and few enough ready deliveries that a load helps.
  private var takesMore: Bool {
    hasPlace && ready.count + crashCandidates.count <= windowMax / 2
  }

  /// Begins a load.
  ///
  /// No other load may begin until `apply` or `cancelLoad` is called.
  mutating func beginLoad(now: Timestamp, bytesMax: Int) -> DeliveryStore.LoadRequest {
    let known = Set(entries.keys)
    load = Load(known: known, heldLanes: Set(heldLanes.keys))
    isMoreStored = false
    return DeliveryStore.LoadRequest(
      function: function,
      known: known,
      position: position,
      countMax: min(max(windowMax - entries.count, 1), Self.loadMax),
      bytesMax: bytesMax,
      now: now,
      lanes: takeLanesToCheck(),
      room: LaneCapacity(
        share,
        lines: lanes.compactMapValues { line in
          line.last.map { LaneCapacity.Line(count: line.count, last: $0) }
        },
        blocked: blockedCount,
        blockedBytes: blockedBytes
      )
    )
  }

  /// Removes and returns the lanes to load next, those that have waited longest first.
  private mutating func takeLanesToCheck() -> [DeliveryLane] {
    var taken: [DeliveryLane] = []
    while taken.count < Self.loadMax, let lane = lanesInOrder.popFirst() {
      // A lane that was held in the meantime is left out.
      if lanesToCheck.remove(lane) != nil { taken.append(lane) }
    }
    return taken
  }

  /// Ends a load that has failed, so that it is begun again.
  mutating func cancelLoad(_ request: DeliveryStore.LoadRequest) {
    load = nil
    for lane in request.lanes { check(lane) }
    noteMore()
  }

  /// Adds the results of a load to the window; returns the deliveries to park.
  ///
  /// `endParking` must be called once they are parked.
  mutating func apply(_ loaded: DeliveryStore.Loaded) -> [Delivery] {
    guard let load else { return [] }
    self.load = nil
    hasLaneRows = loaded.hasLaneRows || load.hasLaneRows || !heldLanes.isEmpty
    for lane in loaded.lanesLeft { check(lane) }
    guard !load.isOutdated else {
      // The window or the rows have changed in the meantime. All rows are read again, regardless of
      // their lanes.
      nextDue = Timestamp(microseconds: 0)
      noteMore()
      for delivery in loaded.candidates.map(\.delivery) {
        if let lane = delivery.lane { check(lane) }
      }
      return []
    }
    position = loaded.position
    isMoreStored = loaded.hasMore || load.hasMore
    hasMore = isMoreStored || insertsRunning > 0
    nextDue = [loaded.nextDue, load.nextDue].compactMap(\.self).min()
    var parked = loaded.parked
    for candidate in loaded.candidates {
      let place = candidate.delivery.id.place
      guard !load.known.contains(place), entries[place] == nil else { continue }
      if let lane = candidate.delivery.lane, load.heldLanes.contains(lane) {
        parked.append(candidate.delivery)
      } else {
        enter(candidate)
      }
    }
    for lane in Self.lanes(of: parked) { hold(lane) }
    return parked
  }

  /// Records that deliveries are parked.
  ///
  /// The deliveries they wait for may have settled in the meantime.
  mutating func endParking(_ deliveries: [Delivery]) {
    for lane in Self.lanes(of: deliveries) {
      letGo(lane)
      refill(lane)
    }
  }

  /// Requests a lane's next deliveries if few of its deliveries are left in the window.
  private mutating func refill(_ lane: DeliveryLane) {
    if (lanes[lane]?.count ?? 0) <= share.laneMin { check(lane) }
  }

  private static func lanes(of deliveries: [Delivery]) -> Set<DeliveryLane> {
    Set(deliveries.compactMap(\.lane))
  }

  private mutating func hold(_ lane: DeliveryLane) {
    noteLaneRows()
    heldLanes[lane, default: 0] += 1
    lanesToCheck.remove(lane)
    load?.heldLanes.insert(lane)
  }

  private mutating func letGo(_ lane: DeliveryLane) {
    noteLaneRows()
    let left = (heldLanes[lane] ?? 1) - 1
    heldLanes[lane] = left == 0 ? nil : left
  }

  /// Requests a reservation; no load begins until it was granted and has ended.
  mutating func wantReservation() {
    reservationsWanted += 1
  }

  /// Reserves the function's rows for an administrative change; false while a load runs.
  ///
  /// Deliveries outside the window cannot enter it during a reservation, so their rows show their
  /// state.
  mutating func reserve() -> Bool {
    guard load == nil else { return false }
    load = Load(known: [], heldLanes: Set(heldLanes.keys))
    return true
  }

  /// Ends a reservation that was granted or is no longer wanted.
  mutating func endReservation(wasGranted: Bool) {
    reservationsWanted -= 1
    guard wasGranted, let load else { return }
    self.load = nil
    if load.hasMore { noteMore() }
    if let due = load.nextDue { noteDue(due) }
    if load.hasLaneRows { noteLaneRows() }
  }

  /// Marks a lane so that its first deliveries in storage are examined in the next load.
  mutating func check(_ lane: DeliveryLane) {
    noteLaneRows()
    // A held lane is checked once it is released: deliveries loaded earlier would be parked again.
    guard heldLanes[lane] == nil, lanesToCheck.insert(lane).inserted else { return }
    lanesInOrder.append(lane)
  }

  /// Records that untried deliveries can be loaded.
  mutating func noteMore() {
    hasMore = true
    isMoreStored = true
    load?.hasMore = true
  }

  /// Records a postponed delivery in storage.
  mutating func noteDue(_ due: Timestamp) {
    nextDue = min(nextDue ?? due, due)
    if let other = load?.nextDue { load?.nextDue = min(other, due) } else { load?.nextDue = due }
  }

  private mutating func noteLaneRows() {
    hasLaneRows = true
    load?.hasLaneRows = true
  }
}

// MARK: - Starting

extension FunctionBacklog {
  /// Starts and returns the next delivery that may run at `now`; nil if there is none.
  ///
  /// The delivery then counts as running.
  mutating func start(now: Timestamp) -> Entry? {
    guard undeployed == nil else { return nil }
    while let place = forced.popFirst() {
      guard entries[place]?.phase == .ready else { continue }
      ready.removeAll { $0 == place }
      crashCandidates.removeAll { $0 == place }
      bucket.overdraw(now: now)
      return run(place)
    }
    guard !isPaused, runningCount < limits.concurrentMax,
      startsNotBefore.map({ $0 <= now }) ?? true
    else { return nil }
    prune()
    // Crash-loop candidates come first, because they are older. While they must wait, others start.
    if crashCandidatesRunning < limits.isolatedMax, let place = crashCandidates.first {
      guard bucket.take(now: now) else { return nil }
      crashCandidates.removeFirst()
      return run(place)
    }
    guard let place = ready.first, bucket.take(now: now) else { return nil }
    ready.removeFirst()
    return run(place)
  }

  /// Starts one delivery regardless of limits and pauses; nil if it is not ready or not deployed.
  mutating func start(_ place: EventPlace) -> Entry? {
    guard undeployed == nil, entries[place]?.phase == .ready else { return nil }
    ready.removeAll { $0 == place }
    crashCandidates.removeAll { $0 == place }
    return run(place)
  }

  /// The deliveries that could start, in order, without regard to the function's limits.
  var startable: [EventPlace] {
    isPaused || undeployed != nil ? [] : entries.filter { $0.value.phase == .ready }.keys.sorted()
  }

  private mutating func run(_ place: EventPlace) -> Entry? {
    change(place, to: .running)
    runningCount += 1
    guard let entry = entries[place] else { return nil }
    if entry.isCrashCandidate { crashCandidatesRunning += 1 }
    return entry
  }

  /// Removes deliveries that are no longer ready from the front of the queues.
  private mutating func prune() {
    while let place = ready.first, entries[place]?.phase != .ready { ready.removeFirst() }
    while let place = crashCandidates.first, entries[place]?.phase != .ready {
      crashCandidates.removeFirst()
    }
  }
}

// MARK: - Ending

extension FunctionBacklog {
  /// The rows to store for the outcome of a delivery.
  struct End: Sendable {
    var old: Delivery
    var new: Delivery
    /// Deliveries of the lane that leave the window until `new` has settled.
    var parked: [Delivery] = []
  }

  /// Records that a worker has responded.
  mutating func workerResponded() {
    unstartableSince = nil
    startError = nil
    isStartErrorReported = false
    startsFailed = 0
    startsNotBefore = nil
  }

  /// Records that no worker accepted a delivery; the delivery returns to its queue.
  ///
  /// Returns true if the error has not been reported yet. It is always false for an error that is
  /// not reportable.
  mutating func notStarted(
    _ place: EventPlace,
    error: String? = nil,
    isReportable: Bool = true,
    now: Timestamp,
    wait: (Int) -> Duration
  ) -> Bool {
    release(place, asCrashCandidate: false)
    let isNews = isReportable && !isStartErrorReported
    if isReportable { isStartErrorReported = true }
    if unstartableSince == nil { unstartableSince = now }
    startError = error
    // Deliveries that were sent at the same time fail at the same time. That is one failure.
    if startsNotBefore.map({ $0 <= now }) ?? true {
      startsFailed += 1
      startsNotBefore = now.advanced(by: wait(startsFailed))
    }
    return isNews
  }

  /// Moves a delivery whose attempt does not count back to its queue.
  mutating func release(_ place: EventPlace, asCrashCandidate: Bool) {
    guard entries[place]?.phase == .running else { return }
    stopRunning(place)
    change(place, to: .ready)
    if asCrashCandidate { entries[place]?.isCrashCandidate = true }
    if entries[place]?.isCrashCandidate == true {
      crashCandidates.append(place)
    } else {
      ready.prepend(place)
    }
  }

  /// Ends a delivery's attempt and returns the rows to store.
  ///
  /// `new` is the delivery after the attempt. The next delivery of its lane is then free.
  mutating func finish(_ new: Delivery) -> End? {
    let place = new.id.place
    guard let entry = entries[place], entry.phase == .running else { return nil }
    stopRunning(place)
    return save(place, entry, as: new)
  }

  /// Settles a delivery in the window that does not run; nil if it runs or is not in the window.
  mutating func settle(_ place: EventPlace, _ end: (inout Delivery) -> Void) -> End? {
    guard let entry = entries[place], entry.phase == .ready || entry.phase == .blocked else {
      return nil
    }
    var new = entry.delivery
    end(&new)
    return save(place, entry, as: new)
  }

  private mutating func stopRunning(_ place: EventPlace) {
    runningCount -= 1
    if entries[place]?.isCrashCandidate == true { crashCandidatesRunning -= 1 }
  }

  private mutating func save(_ place: EventPlace, _ entry: Entry, as new: Delivery) -> End {
    var end = End(old: entry.delivery, new: new)
    beginSaving(place)
    guard let lane = entry.delivery.lane, var line = lanes.removeValue(forKey: lane) else {
      return end
    }
    let wasFirst = line.first == place
    if wasFirst { line.removeFirst() } else { line.removeAll { $0 == place } }
    if new.isPostponed {
      hold(lane)
      for other in line {
        guard let waiting = entries[other]?.delivery else { continue }
        end.parked.append(waiting)
        beginSaving(other)
      }
      return end
    }
    guard let next = line.first else { return end }
    lanes[lane] = line
    if wasFirst {
      change(next, to: .ready)
      queueUp(next)
    }
    return end
  }

  private mutating func beginSaving(_ place: EventPlace) {
    change(place, to: .saving)
    savingCount += 1
  }

  /// Records that an outcome is stored; its deliveries leave the window.
  mutating func saved(_ end: End) {
    leave(end.old.id.place)
    for delivery in end.parked { leave(delivery.id.place, isPending: true) }
    if end.new.isPostponed {
      noteDue(end.new.dueTime)
      if end.new.isUnanswered { unansweredCount += 1 }
    } else {
      count -= 1
    }
    guard hasLaneRows, let lane = end.old.lane else { return }
    if end.new.isPostponed { letGo(lane) }
    refill(lane)
  }

  /// Records that an outcome could not be stored, so the delivery is still pending.
  mutating func refused(_ end: End) {
    leave(end.old.id.place, isPending: true)
    for delivery in end.parked { leave(delivery.id.place, isPending: true) }
    if end.new.isPostponed, let lane = end.old.lane { letGo(lane) }
    lookAgain(from: end.old.isPostponed ? end.old.dueTime : nil)
  }

  /// Removes from the window a delivery whose rows are written.
  ///
  /// `isPending` is true if the rows still say that the delivery is pending.
  private mutating func leave(_ place: EventPlace, isPending: Bool = false) {
    guard let entry = entries.removeValue(forKey: place) else { return }
    savingCount -= 1
    if isPending, entry.delivery.isUnanswered { unansweredCount += 1 }
    heldBytes -= entry.bytes
  }

  /// Removes the deliveries that neither run nor are being stored; they stay in storage.
  ///
  /// When they are loaded again, they come in their order.
  mutating func dropWaiting() {
    for (place, entry) in entries where entry.phase == .ready || entry.phase == .blocked {
      // This removes the delivery from the blocked counts.
      change(place, to: .ready)
      entries[place] = nil
      heldBytes -= entry.bytes
      if entry.delivery.isUnanswered { unansweredCount += 1 }
      if entry.delivery.isPostponed { noteDue(entry.delivery.dueTime) }
    }
    // Of each lane only a running delivery is left.
    lanes = lanes.compactMapValues { line in
      let left = line.filter { entries[$0] != nil }
      return left.isEmpty ? nil : left
    }
    lookAgain(from: nil)
  }

  /// Adjusts the counts for pending deliveries that were added to storage or removed from it.
  mutating func count(by difference: Int, unanswered: Int = 0) {
    count += difference
    unansweredCount += unanswered
  }
}

// MARK: - Querying

extension FunctionBacklog {
  var isRunningOrSaving: Bool { runningCount > 0 || savingCount > 0 }

  /// True if a delivery runs or is being stored or parked, or if a load runs.
  private var isActive: Bool { isRunningOrSaving || load != nil || !heldLanes.isEmpty }

  /// Indicates whether nothing is active, and nothing starts at `now` or waits for a worker.
  func isIdle(at now: Timestamp) -> Bool {
    guard !isActive else { return false }
    if undeployed != nil { return !awaitsGivingUp(at: now) }
    return isPaused && forced.isEmpty
      || !hasReady && unansweredCount == 0 && !hasWork(at: now)
  }

  /// Indicates whether nothing is active, and nothing starts until time passes.
  func isStill(at now: Timestamp) -> Bool {
    guard !isActive else { return false }
    if undeployed != nil { return !awaitsGivingUp(at: now) }
    if isPaused { return forced.isEmpty }
    // A full window loads nothing until some of its deliveries have started.
    let isRead = hasPlace && !lanesToCheck.isEmpty || takesMore
    let isWorkHeldUp = hasReady && !isRead && insertsRunning == 0
    return (isWorkHeldUp || !hasWork(at: now)) && (!hasReady || waitTime.map { $0 > now } ?? false)
  }

  /// Indicates whether nothing is active and nothing is left to load into the window.
  func isAtRest(at now: Timestamp) -> Bool { !isActive && (isPaused || !wantsLoad(now: now)) }

  private var hasReady: Bool { entries.contains { $0.value.phase == .ready } }

  private func hasWork(at now: Timestamp) -> Bool {
    hasMore || !lanesToCheck.isEmpty || nextDue.map { $0 <= now } ?? false
  }

  /// The time until which ready deliveries wait; nil if only running deliveries hold them up.
  private var waitTime: Timestamp? {
    guard runningCount < limits.concurrentMax else { return nil }
    return [startsNotBefore, bucket.nextTime].compactMap(\.self).max()
  }

  /// The time of the next check if nothing else happens; nil for none.
  ///
  /// The time may be past.
  var nextTime: Timestamp? {
    guard !isPaused, undeployed == nil else { return nil }
    let starts = ready.isEmpty && crashCandidates.isEmpty ? nil : waitTime
    let due = load == nil && entries.count < windowMax ? nextDue : nil
    return [starts, due].compactMap(\.self).min()
  }

  /// Returns the first delivery of a lane in the window.
  func first(of lane: DeliveryLane) -> EventPlace? { lanes[lane]?.first }

  /// The maximum number of deliveries that may run at the same time.
  var concurrentMax: Int { limits.concurrentMax }

  /// The time at which the rate limit lets a delivery start; nil if it does now.
  var rateTime: Timestamp? { bucket.nextTime }

  /// Returns the phase of a delivery; nil if it is not in the window.
  func phase(_ place: EventPlace) -> Phase? { entries[place]?.phase }

  var runningPlaces: [EventPlace] { entries.filter { $0.value.phase == .running }.map(\.key) }
}
