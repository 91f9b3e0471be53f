import DequeModule
package import DocumentModel
import HeapModule

/// Which deliveries run now, which wait, and for whom: a value that decides and never acts.
///
/// Knows every pending delivery by its id, about 200 bytes each; the deliveries themselves are held
/// up to `heldBytesMax` and otherwise read from storage when they start. Of the deliveries of one
/// lane only the first can run, until it has settled. Each function has a queue of its own with
/// limits of its own, so that a slow one leaves room for the others.
package struct DeliverySchedule: Sendable {
  /// The most memory that held deliveries may take; an event may have two megabytes.
  package let heldBytesMax: Int

  private var entries: [DeliveryID: Entry] = [:]
  /// The pending deliveries of each lane in their order; only the first may run.
  private var lanes: [DeliveryLane: Deque<DeliveryID>] = [:]
  private var queues: [String: FunctionQueue] = [:]
  private var waiting = Heap<Waiting>()
  /// The deliveries whose worker has not answered yet.
  private var unanswered: Set<DeliveryID> = []
  private var heldBytes = 0
  private var limits: @Sendable (String) -> DispatchLimits

  /// An empty schedule; it asks `limits` for the limits of each function that it meets.
  package init(
    heldBytesMax: Int = 64 << 20,
    limits: @escaping @Sendable (String) -> DispatchLimits = { _ in DispatchLimits() }
  ) {
    self.heldBytesMax = heldBytesMax
    self.limits = limits
  }

  private struct Entry {
    var lane: DeliveryLane?
    var isTask: Bool
    var due: Timestamp
    var phase: Phase
    var held: Delivery?
    var bytes: Int
  }

  private enum Phase {
    /// An earlier delivery of its lane is pending.
    case blocked
    /// Its time has not come.
    case waiting
    case ready
    case running
  }

  private struct Waiting: Comparable {
    var due: Timestamp
    var id: DeliveryID
    static func < (left: Waiting, right: Waiting) -> Bool {
      (left.due, left.id) < (right.due, right.id)
    }
  }

  /// A delivery to be tried; `held` is nil when it must be read from storage first.
  package struct Start: Sendable {
    package var id: DeliveryID
    package var held: Delivery?
  }

  // MARK: What there is

  /// How many deliveries are pending.
  package var count: Int { entries.count }

  /// How many tasks are pending.
  package private(set) var taskCount = 0

  /// How many deliveries other than tasks are pending.
  package var eventCount: Int { entries.count - taskCount }

  /// The pending deliveries.
  var ids: Set<DeliveryID> { Set(entries.keys) }

  /// How many deliveries of a function are pending.
  package func count(of function: String) -> Int {
    entries.keys.count { $0.function == function }
  }

  /// The ids of a function's pending deliveries, in order.
  package func ids(of function: String) -> [DeliveryID] {
    entries.keys.filter { $0.function == function }.sorted()
  }

  /// Whether a delivery of a lane is pending.
  func isOccupied(_ lane: DeliveryLane) -> Bool { lanes[lane] != nil }

  /// Whether a delivery is pending.
  package func knows(_ id: DeliveryID) -> Bool { entries[id] != nil }

  /// The deliveries that run at this moment.
  package var runningIDs: Set<DeliveryID> {
    Set(entries.lazy.filter { $0.value.phase == .running }.map(\.key))
  }

  /// Whether a delivery runs at this moment.
  package func isRunning(_ id: DeliveryID) -> Bool { entries[id]?.phase == .running }

  /// How many deliveries run at this moment.
  package private(set) var runningCount = 0

  /// Whether nothing runs, is due at `now`, or waits for a worker that died or could not be had.
  ///
  /// Paused queues do not count.
  package func isIdle(at now: Timestamp) -> Bool {
    runningCount == 0 && (waiting.min.map { $0.due > now } ?? true)
      && queues.values.allSatisfy { $0.isPaused || $0.ready.isEmpty }
      && !unanswered.contains { entries[$0]?.phase == .waiting && !isPaused($0.function) }
  }

  /// Whether nothing runs and nothing will start unless time passes.
  ///
  /// Unlike `isIdle`, it ignores deliveries that wait for a worker or are held up by the rate of
  /// their function.
  package func isStill(at now: Timestamp) -> Bool {
    runningCount == 0 && (waiting.min.map { $0.due > now } ?? true)
      && queues.values.allSatisfy { $0.isStill(at: now) }
  }

  /// Whether nothing runs.
  package var isAtRest: Bool { runningCount == 0 }

  /// Whether there is room to hold deliveries of so many bytes.
  func hasRoom(for bytes: Int) -> Bool { heldBytes + bytes <= heldBytesMax }

  // MARK: Coming and going

  /// Takes a pending delivery whose row has `bytes` bytes; a known delivery changes nothing.
  ///
  /// The delivery has its place in its lane, unless `isOrdered` is false.
  package mutating func add(
    _ delivery: Delivery,
    bytes: Int,
    isOrdered: Bool = true,
    now: Timestamp
  ) {
    guard entries[delivery.id] == nil else { return }
    var pending = DeliveryStore.Pending(delivery)
    if !isOrdered, !pending.isOfSchedule { pending.lane = nil }
    add(pending, now: now)
    hold(delivery, bytes)
  }

  /// Takes a pending delivery that is in storage only.
  mutating func add(_ pending: DeliveryStore.Pending, now: Timestamp) {
    let id = pending.id
    guard entries[id] == nil else { return }
    entries[id] = Entry(
      lane: pending.lane,
      isTask: pending.isTask,
      due: pending.due,
      phase: .blocked,
      held: nil,
      bytes: 0
    )
    if pending.isTask { taskCount += 1 }
    if pending.isUnanswered { unanswered.insert(id) }
    guard let lane = pending.lane else { return enqueue(id, now: now) }
    // The line is taken out of the dictionary, so that changing it does not copy it.
    var line = lanes.removeValue(forKey: lane) ?? []
    // Most deliveries come in order. A renewed one goes back to its place, but never before one
    // that runs.
    var place = line.endIndex
    while place > 0, id < line[place - 1], !(place == 1 && isRunning(line[0])) { place -= 1 }
    line.insert(id, at: place)
    lanes[lane] = line
    guard place == 0 else { return }
    if line.count > 1 { entries[line[1]]?.phase = .blocked }
    enqueue(id, now: now)
  }

  /// The deliveries to start now; they count as running until `finish`.
  package mutating func start(now: Timestamp) -> [Start] {
    promoteDue(now: now)
    var started: [Start] = []
    for function in queues.filter({ !$0.value.ready.isEmpty }).keys.sorted() {
      // The queue is taken out of the dictionary, so that changing it does not copy its entries.
      guard var queue = queues.removeValue(forKey: function) else { continue }
      while !queue.ready.isEmpty, queue.mayStart(now: now), let id = queue.ready.popFirst() {
        guard let start = run(id) else { continue }
        queue.started()
        started.append(start)
      }
      queues[function] = queue
    }
    return started
  }

  /// The deliveries that could start at `now`, ordered by id, even past a function's bound.
  package mutating func startable(now: Timestamp) -> [DeliveryID] {
    promoteDue(now: now)
    return queues.values.flatMap { queue in
      queue.isPaused ? [] : queue.ready.filter { entries[$0]?.phase == .ready }
    }.sorted()
  }

  /// Starts one delivery, which then runs until `finish`; nil when it cannot start.
  package mutating func start(_ id: DeliveryID, now: Timestamp) -> Start? {
    promoteDue(now: now)
    guard let place = queues[id.function]?.ready.firstIndex(of: id) else { return nil }
    queues[id.function]?.ready.remove(at: place)
    guard let start = run(id) else { return nil }
    queues[id.function]?.started()
    return start
  }

  /// Takes back a delivery after its try; it stays if it is still pending, else it leaves.
  package mutating func finish(_ delivery: Delivery, bytes: Int, now: Timestamp) {
    if !delivery.state.isSettled, isRunning(delivery.id) { hold(delivery, bytes) }
    release(
      delivery.id,
      due: delivery.state.isSettled ? nil : delivery.dueTime,
      isUnanswered: delivery.isUnanswered,
      now: now
    )
  }

  /// Takes back a delivery that could not be tried, to be tried at `due`; nil means never.
  mutating func release(
    _ id: DeliveryID,
    due: Timestamp?,
    isUnanswered: Bool = true,
    now: Timestamp
  ) {
    guard var entry = entries[id], entry.phase == .running else { return }
    if isUnanswered { unanswered.insert(id) } else { unanswered.remove(id) }
    runningCount -= 1
    queues[id.function]?.running -= 1
    guard let due else { return forget(id, entry, now: now) }
    entry.due = due
    entry.phase = .blocked
    entries[id] = entry
    enqueue(id, now: now)
  }

  /// Forgets a delivery that does not run; false when it runs or is unknown.
  package mutating func remove(_ id: DeliveryID, now: Timestamp) -> Bool {
    guard let entry = entries[id], entry.phase != .running else { return false }
    forget(id, entry, now: now)
    return true
  }

  /// Makes a delivery due now; false when it runs or is behind another one in its lane.
  package mutating func hasten(_ id: DeliveryID, now: Timestamp) -> Bool {
    guard let entry = entries[id], entry.phase == .waiting || entry.phase == .ready else {
      return false
    }
    if entry.phase == .waiting {
      entries[id]?.due = now
      enqueue(id, now: now)
    }
    return true
  }

  // MARK: Functions

  /// Stops or resumes the queue of a function; running deliveries go on.
  package mutating func setPaused(_ isPaused: Bool, function: String) {
    queue(of: function) { $0.isPaused = isPaused }
  }

  /// Whether the queue of a function is stopped.
  package func isPaused(_ function: String) -> Bool { queues[function]?.isPaused ?? false }

  /// Asks for the limits of all functions again.
  package mutating func updateLimits(
    _ limits: @escaping @Sendable (String) -> DispatchLimits
  ) {
    self.limits = limits
    for function in queues.keys { queues[function]?.update(limits(function)) }
  }

  // MARK: Time

  /// When the first waiting delivery is due, which may be past; nil when none waits.
  package var nextDue: Timestamp? {
    (queues.values.compactMap(\.rateTime) + [waiting.min?.due].compactMap(\.self)).min()
  }

  /// When to look again, if nothing else happens after a look at `now`; nil for never.
  package func nextLook(after now: Timestamp) -> Timestamp? {
    nextDue.map { max($0, now.advanced(by: .microseconds(1))) }
  }

  // MARK: Inside

  private mutating func queue(of function: String, _ change: (inout FunctionQueue) -> Void) {
    change(&queues[function, default: FunctionQueue(limits: limits(function))])
  }

  private mutating func hold(_ delivery: Delivery, _ bytes: Int) {
    guard hasRoom(for: bytes), entries[delivery.id]?.held == nil else { return }
    entries[delivery.id]?.held = delivery
    entries[delivery.id]?.bytes = bytes
    heldBytes += bytes
  }

  /// Counts a ready delivery as running; nil when it has left or was overtaken meanwhile.
  private mutating func run(_ id: DeliveryID) -> Start? {
    guard var entry = entries[id], entry.phase == .ready else { return nil }
    let start = Start(id: id, held: entry.held)
    heldBytes -= entry.bytes
    entry.held = nil
    entry.bytes = 0
    entry.phase = .running
    entries[id] = entry
    runningCount += 1
    return start
  }

  private mutating func forget(_ id: DeliveryID, _ entry: Entry, now: Timestamp) {
    entries[id] = nil
    unanswered.remove(id)
    heldBytes -= entry.bytes
    if entry.isTask { taskCount -= 1 }
    pruneWaiting()
    guard let lane = entry.lane, var line = lanes.removeValue(forKey: lane) else { return }
    let wasFirst = line.first == id
    if wasFirst { line.removeFirst() } else { line.removeAll { $0 == id } }
    if !line.isEmpty { lanes[lane] = line }
    if wasFirst, let next = line.first { enqueue(next, now: now) }
  }

  private mutating func enqueue(_ id: DeliveryID, now: Timestamp) {
    guard let due = entries[id]?.due else { return }
    if due <= now {
      entries[id]?.phase = .ready
      queue(of: id.function) { $0.ready.append(id) }
    } else {
      entries[id]?.phase = .waiting
      waiting.insert(Waiting(due: due, id: id))
    }
    pruneWaiting()
  }

  private mutating func promoteDue(now: Timestamp) {
    while let next = waiting.min, next.due <= now {
      waiting.removeMin()
      if isCurrent(next) { enqueue(next.id, now: now) }
    }
    pruneWaiting()
  }

  /// Drops heap entries whose delivery has left or got another time, once they reach the top.
  private mutating func pruneWaiting() {
    while let next = waiting.min, !isCurrent(next) { waiting.removeMin() }
  }

  private func isCurrent(_ place: Waiting) -> Bool {
    guard let entry = entries[place.id] else { return false }
    return entry.phase == .waiting && entry.due == place.due
  }
}
