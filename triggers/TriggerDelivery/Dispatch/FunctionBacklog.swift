import DequeModule
import DocumentModel

/// The pending deliveries of one function: a value that decides and never acts.
///
/// A window of them is in memory, with their events; the others stay in storage. What was never
/// tried enters the window in the order of the events, what was postponed when it is due. Of the
/// deliveries of one lane only the first runs, until its try has ended; of the ones behind it the
/// window takes its share (`LaneShare`), and the rest is parked in storage until the line is short.
/// A delivery stays in the window until its outcome is stored, so that nothing read from storage
/// meanwhile brings it back.
struct FunctionBacklog: Sendable {
  /// One delivery of the window.
  struct Entry: Sendable {
    var delivery: Delivery
    var event: DeliveryEvent?
    var bytes: Int
    var phase: Phase
    /// Whether the delivery has crashed a worker, or shared one that crashed, and must run apart.
    var isSuspect: Bool
    /// Whether another dispatcher has the delivery now: what becomes of the try counts for nothing.
    var isLost = false
  }

  /// Where a delivery of the window stands.
  enum Phase: Sendable {
    /// An earlier delivery of its lane is in the window.
    case blocked
    case ready
    case running
    /// Its outcome is being stored.
    case saving
  }

  /// What a read from storage began with.
  private struct Load {
    var known: Set<EventPlace>
    var hasMore = false
    var nextDue: Timestamp?
    var hasLaneRows = false
    /// Whether all is to be looked through again, from the start.
    var isOutdated = false
    /// Lanes that were held at some time of the read.
    var heldLanes: Set<DeliveryLane>
  }

  let function: String
  private(set) var entries: [EventPlace: Entry] = [:]
  private var ready: Deque<EventPlace> = []
  private var suspects: Deque<EventPlace> = []
  private var forced: Deque<EventPlace> = []
  private var lanes: [DeliveryLane: Deque<EventPlace>] = [:]
  private(set) var runningCount = 0
  private(set) var savingCount = 0
  private var suspectsRunning = 0
  /// The bytes of the events in the window.
  private(set) var heldBytes = 0
  /// The deliveries that wait for an earlier one of their lane, and the bytes of their events.
  private(set) var blockedCount = 0
  private var blockedBytes = 0

  /// Pending deliveries, in the window and in storage.
  private(set) var count = 0
  /// Those that are not tried now although no handler has failed.
  private(set) var unansweredCount = 0
  /// Untried deliveries up to this place have been in the window or are parked.
  private var position: EventPlace?
  /// Whether storage holds untried deliveries after `position`, or will in a moment.
  private var hasMore = false
  /// Whether some of these can be read by now.
  private var isMoreStored = false
  /// Writes of untried deliveries after `position` that have not ended.
  private var insertsRunning = 0
  /// When the first postponed delivery in storage is due.
  private(set) var nextDue: Timestamp?
  /// Whether a delivery of the function may have a row by lane.
  private(set) var hasLaneRows = false
  /// Lanes that get a row in a moment, with the number of such writes: nothing else enters them.
  private var heldLanes: [DeliveryLane: Int] = [:]
  /// Lanes whose next deliveries are to be read, and the order in which they came.
  private var lanesToCheck: Set<DeliveryLane> = []
  private var lanesInOrder: Deque<DeliveryLane> = []
  private var load: Load?
  /// Changes by hand that wait for the end of a read.
  private var reservationsWanted = 0

  private var limits: DispatchLimits
  private var bucket: TokenBucket
  /// Whether somebody has stopped the queue.
  var isPaused = false
  /// Set while the present deployment lacks the function: nothing starts then.
  var undeployed: Undeployed?
  /// Since when no worker takes the function's deliveries; nil while one does.
  private(set) var unstartableSince: Timestamp?
  /// Why the last attempt found no worker; nil once a worker has answered.
  private(set) var startError: String?
  private var isStartErrorReported = false
  private var startsFailed = 0
  /// The time before which nothing starts, because no worker could be had.
  private(set) var startsNotBefore: Timestamp?

  init(function: String, limits: DispatchLimits) {
    self.function = function
    self.limits = limits
    bucket = TokenBucket(rate: limits.perSecondMax)
  }

  /// Takes over new limits; the function may have a worker now.
  mutating func update(_ limits: DispatchLimits) {
    self.limits = limits
    bucket.update(rate: limits.perSecondMax)
    workerAnswered()
  }

  /// How many deliveries the window has at most.
  private var windowMax: Int { min(max(2 * limits.concurrentMax, 64), Self.windowMax) }

  private static let windowMax = 1024

  /// How many of them may wait for an earlier one of their lane.
  private var share: LaneShare { LaneShare(windowMax: windowMax) }

  /// The most deliveries that one read takes.
  static let loadMax = 256
}

// MARK: - Coming

extension FunctionBacklog {
  /// Takes up what an earlier run, or another dispatcher, left in storage.
  mutating func resume(_ summary: DeliveryStore.Summary, now: Timestamp) {
    count = summary.count
    unansweredCount = summary.unansweredCount
    hasLaneRows = hasLaneRows || summary.hasLaneRows
    // The clock may be behind that of the run before.
    lookAgain(from: summary.nextDue.map { min($0, now) })
  }

  /// Takes notice that the clock was set back to `now`: waits that began later are over.
  mutating func clockWasSetBack(to now: Timestamp) {
    startsNotBefore = nil
    unstartableSince = unstartableSince.map { min($0, now) }
    if nextDue != nil { noteDue(now) }
  }

  /// Looks through all of the function's deliveries in storage again.
  mutating func lookAgain(from due: Timestamp?) {
    position = nil
    load?.isOutdated = true
    noteMore()
    if let due { noteDue(due) }
  }

  /// Takes notice of deliveries that somebody else has put into storage.
  mutating func takeNotice(of count: Int, now: Timestamp) {
    self.count += count
    noteMore()
    noteDue(now)
  }

  /// Counts new deliveries, whose rows are about to be written, and takes those it can.
  ///
  /// They come in the order of the events. Once one stays in storage, later ones do as well, until
  /// it has been read. The write may be under way already: what a read has found in the meantime is
  /// counted and not taken again. Returns whether `inserted` must be called when the rows are
  /// written.
  mutating func add(_ new: [DeliveryStore.Candidate], room: Int) -> Bool {
    var isLeft = false
    var room = room
    for candidate in new {
      count += 1
      let delivery = candidate.delivery
      if delivery.isPostponed {
        if delivery.isUnanswered { unansweredCount += 1 }
        isLeft = true
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
        isLeft = true
      }
    }
    if isLeft { insertsRunning += 1 }
    return isLeft
  }

  /// Whether a delivery finds its lane empty, or room behind the others of its lane.
  private func hasRoom(behindOthersFor delivery: Delivery) -> Bool {
    guard let lane = delivery.lane, let line = lanes[lane] else { return true }
    return share.takes(behind: line.count, blocked: blockedCount, blockedBytes: blockedBytes)
  }

  /// Notes that rows of `add` can be read.
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
    // A read may have found the rows already.
    hasMore = isMoreStored || insertsRunning > 0 || load != nil && hasMore
  }

  /// Puts a delivery that is in storage into the window, unless it is there; false then.
  ///
  /// With `isForced` it starts next, whatever holds the queue up.
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
      isSuspect: delivery.crashes > 0
    )
    heldBytes += candidate.bytes
    if delivery.isUnanswered { unansweredCount -= 1 }
    if let lane = delivery.lane {
      // The line is taken out of the dictionary, so that changing it does not copy it.
      var line = lanes.removeValue(forKey: lane) ?? []
      // A renewed delivery goes back to its place, but never before one that runs.
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
    if entries[place]?.isSuspect == true { suspects.append(place) } else { ready.append(place) }
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

// MARK: - Reading

extension FunctionBacklog {
  /// Whether deliveries should be read from storage at `now`.
  func wantsLoad(now: Timestamp) -> Bool {
    guard load == nil, reservationsWanted == 0, !isPaused, undeployed == nil, hasPlace else {
      return false
    }
    if !lanesToCheck.isEmpty { return true }
    return takesMore && (isMoreStored || (nextDue.map { $0 <= now } ?? false))
  }

  private var hasPlace: Bool { entries.count < windowMax }

  /// Whether the window has room, and so little that could start that more of it helps.
  private var takesMore: Bool {
    hasPlace && ready.count + suspects.count <= windowMax / 2
  }

  /// Begins a read; nothing else may begin one until `apply` or `cancelLoad`.
  mutating func beginLoad(
    now: Timestamp,
    bytesMax: Int,
    shards: ShardSet
  ) -> DeliveryStore.LoadRequest {
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
      room: LaneRoom(
        share,
        lines: lanes.compactMapValues { line in
          line.last.map { LaneRoom.Line(count: line.count, last: $0) }
        },
        blocked: blockedCount,
        blockedBytes: blockedBytes
      ),
      shards: shards
    )
  }

  /// The lanes to be read next, those that have waited longest.
  private mutating func takeLanesToCheck() -> [DeliveryLane] {
    var taken: [DeliveryLane] = []
    while taken.count < Self.loadMax, let lane = lanesInOrder.popFirst() {
      // A lane that was held meanwhile is left out.
      if lanesToCheck.remove(lane) != nil { taken.append(lane) }
    }
    return taken
  }

  /// Ends a read that has failed, to be begun again.
  mutating func cancelLoad(_ request: DeliveryStore.LoadRequest) {
    load = nil
    for lane in request.lanes { check(lane) }
    noteMore()
  }

  /// Takes in what a read has found; returns the deliveries to park.
  ///
  /// `endParking` must follow when they are parked.
  mutating func apply(_ loaded: DeliveryStore.Loaded, shards: ShardSet = .all) -> [Delivery] {
    guard let load else { return [] }
    self.load = nil
    hasLaneRows = loaded.hasLaneRows || load.hasLaneRows || !heldLanes.isEmpty
    for lane in loaded.lanesLeft { check(lane) }
    guard !load.isOutdated else {
      // Others may have changed the rows meanwhile. All are read again, whatever their lanes.
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
      guard !load.known.contains(place), entries[place] == nil,
        shards.contains(Shard(of: candidate.delivery))
      else { continue }
      if let lane = candidate.delivery.lane, load.heldLanes.contains(lane) {
        parked.append(candidate.delivery)
      } else {
        enter(candidate)
      }
    }
    for lane in Self.lanes(of: parked) { hold(lane) }
    return parked
  }

  /// Notes that deliveries are parked: those that they wait for may have settled meanwhile.
  mutating func endParking(_ deliveries: [Delivery]) {
    for lane in Self.lanes(of: deliveries) {
      letGo(lane)
      refill(lane)
    }
  }

  /// Reads a lane's next deliveries once few of the window are left of it.
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

  /// Asks for a reservation; no read begins until it was granted and has ended.
  mutating func wantReservation() {
    reservationsWanted += 1
  }

  /// Reserves the function's rows for a change by hand; false while they are being read.
  ///
  /// What is not in the window then cannot enter it, so its row tells where it stands.
  mutating func reserve() -> Bool {
    guard load == nil else { return false }
    load = Load(known: [], heldLanes: Set(heldLanes.keys))
    return true
  }

  /// Ends a reservation that was granted, or no longer wanted.
  mutating func endReservation(wasGranted: Bool) {
    reservationsWanted -= 1
    guard wasGranted, let load else { return }
    self.load = nil
    if load.hasMore { noteMore() }
    if let due = load.nextDue { noteDue(due) }
    if load.hasLaneRows { noteLaneRows() }
  }

  /// Looks at a lane's first deliveries in storage at the next read.
  mutating func check(_ lane: DeliveryLane) {
    noteLaneRows()
    // A held lane is checked when it is let go: what is read before would be parked again.
    guard heldLanes[lane] == nil, lanesToCheck.insert(lane).inserted else { return }
    lanesInOrder.append(lane)
  }

  /// Notes that untried deliveries can be read.
  mutating func noteMore() {
    hasMore = true
    isMoreStored = true
    load?.hasMore = true
  }

  /// Notes a postponed delivery in storage.
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
  /// The next delivery to start at `now`, which then counts as running; nil when none may.
  mutating func start(now: Timestamp) -> Entry? {
    guard undeployed == nil else { return nil }
    while let place = forced.popFirst() {
      guard entries[place]?.phase == .ready else { continue }
      ready.removeAll { $0 == place }
      suspects.removeAll { $0 == place }
      bucket.overdraw(now: now)
      return run(place)
    }
    guard !isPaused, runningCount < limits.concurrentMax,
      startsNotBefore.map({ $0 <= now }) ?? true
    else { return nil }
    prune()
    // Suspects come first: they are older. Those that must wait let the others pass.
    if suspectsRunning < limits.apartMax, let place = suspects.first {
      guard bucket.take(now: now) else { return nil }
      suspects.removeFirst()
      return run(place)
    }
    guard let place = ready.first, bucket.take(now: now) else { return nil }
    ready.removeFirst()
    return run(place)
  }

  /// Starts one delivery, whatever holds the queue up; nil when it is not ready.
  mutating func start(_ place: EventPlace) -> Entry? {
    guard undeployed == nil, entries[place]?.phase == .ready else { return nil }
    ready.removeAll { $0 == place }
    suspects.removeAll { $0 == place }
    return run(place)
  }

  /// The deliveries that could start, in order, even past the function's limits.
  var startable: [EventPlace] {
    isPaused || undeployed != nil ? [] : entries.filter { $0.value.phase == .ready }.keys.sorted()
  }

  private mutating func run(_ place: EventPlace) -> Entry? {
    change(place, to: .running)
    runningCount += 1
    guard let entry = entries[place] else { return nil }
    if entry.isSuspect { suspectsRunning += 1 }
    return entry
  }

  /// Drops the places of deliveries that have left the window from the front of the queues.
  private mutating func prune() {
    while let place = ready.first, entries[place]?.phase != .ready { ready.removeFirst() }
    while let place = suspects.first, entries[place]?.phase != .ready { suspects.removeFirst() }
  }
}

// MARK: - Ending

extension FunctionBacklog {
  /// What to store of a try's end.
  struct End: Sendable {
    var old: Delivery
    var new: Delivery
    /// Deliveries of the lane that leave the window until `new` has settled.
    var parked: [Delivery] = []
  }

  /// Notes that a worker has answered.
  mutating func workerAnswered() {
    unstartableSince = nil
    startError = nil
    isStartErrorReported = false
    startsFailed = 0
    startsNotBefore = nil
  }

  /// Notes that no worker took a delivery; it stays first in its queue.
  ///
  /// Returns whether this is news; an error that is not worth a report never is.
  mutating func notStarted(
    _ place: EventPlace,
    error: String? = nil,
    isReportable: Bool = true,
    now: Timestamp,
    wait: (Int) -> Duration
  ) -> Bool {
    release(place, asSuspect: false)
    let isNews = isReportable && !isStartErrorReported
    if isReportable { isStartErrorReported = true }
    if unstartableSince == nil { unstartableSince = now }
    startError = error
    // What was sent at one time fails at one time, and that is one failure.
    if startsNotBefore.map({ $0 <= now }) ?? true {
      startsFailed += 1
      startsNotBefore = now.advanced(by: wait(startsFailed))
    }
    return isNews
  }

  /// Takes back a delivery whose try did not count.
  mutating func release(_ place: EventPlace, asSuspect: Bool) {
    guard entries[place]?.phase == .running else { return }
    stopRunning(place)
    guard entries[place]?.isLost == false else { return lose(place) }
    change(place, to: .ready)
    if asSuspect { entries[place]?.isSuspect = true }
    if entries[place]?.isSuspect == true {
      suspects.append(place)
    } else {
      ready.prepend(place)
    }
  }

  /// Takes back a delivery after its try, to be stored as `new`; the next of its lane is free then.
  mutating func finish(_ new: Delivery) -> End? {
    let place = new.id.place
    guard let entry = entries[place], entry.phase == .running else { return nil }
    stopRunning(place)
    guard !entry.isLost else {
      lose(place)
      return nil
    }
    return save(place, entry, as: new)
  }

  /// Settles a delivery of the window that does not run; nil when it runs or is not there.
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
    if entries[place]?.isSuspect == true { suspectsRunning -= 1 }
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

  /// Notes that an end is stored: the deliveries leave the window.
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

  /// Notes that an end was refused, because another dispatcher has the delivery now.
  mutating func refused(_ end: End) {
    leave(end.old.id.place, isPending: true)
    for delivery in end.parked { leave(delivery.id.place, isPending: true) }
    if end.new.isPostponed, let lane = end.old.lane { letGo(lane) }
    lookAgain(from: end.old.isPostponed ? end.old.dueTime : nil)
  }

  /// Forgets a delivery of the window whose rows are written; `isPending` if they still say so.
  private mutating func leave(_ place: EventPlace, isPending: Bool = false) {
    guard let entry = entries.removeValue(forKey: place) else { return }
    savingCount -= 1
    if isPending, entry.delivery.isUnanswered { unansweredCount += 1 }
    heldBytes -= entry.bytes
  }

  /// Drops deliveries that do not run, and those that run and that another dispatcher has now.
  ///
  /// The latter leave at their end.
  mutating func drop(
    where isGone: (Delivery) -> Bool,
    andIfRunning isLost: (Delivery) -> Bool
  ) {
    for (place, entry) in entries {
      switch entry.phase {
      case .ready, .blocked: if isGone(entry.delivery) { lose(place) }
      case .running: if isLost(entry.delivery) { entries[place]?.isLost = true }
      case .saving: continue
      }
    }
  }

  /// Forgets a delivery that does not run, with those behind it in its lane.
  ///
  /// It may be this dispatcher's again by now, and then all of them are read again in their order.
  private mutating func lose(_ place: EventPlace) {
    guard let entry = remove(place) else { return }
    lookAgain(from: nil)
    guard let lane = entry.delivery.lane, let line = lanes.removeValue(forKey: lane) else { return }
    var left: Deque<EventPlace> = []
    for other in line where other != place {
      switch entries[other]?.phase {
      case .ready where other > place, .blocked where other > place: _ = remove(other)
      default: left.append(other)
      }
    }
    guard let next = left.first else { return }
    lanes[lane] = left
    guard entries[next]?.phase == .blocked else { return }
    change(next, to: .ready)
    queueUp(next)
  }

  private mutating func remove(_ place: EventPlace) -> Entry? {
    // It counts as blocked no longer.
    change(place, to: .ready)
    guard let entry = entries.removeValue(forKey: place) else { return nil }
    heldBytes -= entry.bytes
    if entry.delivery.isUnanswered { unansweredCount += 1 }
    if entry.delivery.isPostponed { noteDue(entry.delivery.dueTime) }
    return entry
  }

  /// Counts a pending delivery that somebody has added to storage or removed from it.
  mutating func count(by difference: Int, unanswered: Int = 0) {
    count += difference
    unansweredCount += unanswered
  }
}

// MARK: - Looking

extension FunctionBacklog {
  /// Whether something runs or is being stored.
  var isRunningOrSaving: Bool { runningCount > 0 || savingCount > 0 }

  /// Whether something runs, is being stored, parked or read.
  private var isActive: Bool { isRunningOrSaving || load != nil || !heldLanes.isEmpty }

  /// Whether nothing is active, and nothing starts at `now` or waits for a worker.
  func isIdle(at now: Timestamp) -> Bool {
    guard !isActive else { return false }
    if undeployed != nil { return !awaitsGivingUp(at: now) }
    return isPaused && forced.isEmpty
      || !hasReady && unansweredCount == 0 && !hasWork(at: now)
  }

  /// Whether nothing is active, and nothing starts unless time passes.
  func isStill(at now: Timestamp) -> Bool {
    guard !isActive else { return false }
    if undeployed != nil { return !awaitsGivingUp(at: now) }
    if isPaused { return forced.isEmpty }
    // Until some of a full window have started, nothing is read.
    let isRead = hasPlace && !lanesToCheck.isEmpty || takesMore
    let isWorkHeldUp = hasReady && !isRead && insertsRunning == 0
    return (isWorkHeldUp || !hasWork(at: now)) && (!hasReady || waitTime.map { $0 > now } ?? false)
  }

  /// Whether nothing is active or has yet to come into the window.
  func isAtRest(at now: Timestamp) -> Bool { !isActive && (isPaused || !wantsLoad(now: now)) }

  private var hasReady: Bool { entries.contains { $0.value.phase == .ready } }

  private func hasWork(at now: Timestamp) -> Bool {
    hasMore || !lanesToCheck.isEmpty || nextDue.map { $0 <= now } ?? false
  }

  /// The time for which ready deliveries wait; nil when only workers hold them up.
  private var waitTime: Timestamp? {
    guard runningCount < limits.concurrentMax else { return nil }
    return [startsNotBefore, bucket.nextTime].compactMap(\.self).max()
  }

  /// When the function must be looked at again although nothing else happens; nil for never.
  ///
  /// The time may be past.
  var nextTime: Timestamp? {
    guard !isPaused, undeployed == nil else { return nil }
    let starts = ready.isEmpty && suspects.isEmpty ? nil : waitTime
    let due = load == nil && entries.count < windowMax ? nextDue : nil
    return [starts, due].compactMap(\.self).min()
  }

  /// The first delivery of a lane in the window.
  func first(of lane: DeliveryLane) -> EventPlace? { lanes[lane]?.first }

  /// The most deliveries that may run at one time.
  var concurrentMax: Int { limits.concurrentMax }

  /// When the rate of the function lets a delivery start; nil when it does now.
  var rateTime: Timestamp? { bucket.nextTime }

  /// Where a delivery stands if it is in the window.
  func phase(_ place: EventPlace) -> Phase? { entries[place]?.phase }

  /// The deliveries that run now.
  var runningPlaces: [EventPlace] { entries.filter { $0.value.phase == .running }.map(\.key) }

  /// Whether nothing of these shards runs or is being stored.
  func isQuiet(in shards: (Shard) -> Bool) -> Bool {
    entries.values.allSatisfy { entry in
      entry.phase == .ready || entry.phase == .blocked || !shards(Shard(of: entry.delivery))
    }
  }
}
