import DequeModule
package import DocumentModel
import HeapModule

/// Which deliveries run now, which wait, and for whom: a value that decides and never acts.
///
/// Holds at most `heldMax` deliveries of `heldBytesMax` bytes in memory. The others stay in storage,
/// and of them only the earliest due time is known; those that wait longest give way to those that
/// are due earlier, so that nothing due waits behind a later retry. A function runs at most
/// `runningPerFunctionMax` at once, so that a slow one leaves room for the others.
package struct DeliverySchedule: Sendable {
  /// Bounds the schedule and one refill.
  package let heldMax: Int
  /// Bounds the memory of the schedule and of one refill, but for the delivery that exceeds it: an
  /// event may have two megabytes.
  package let heldBytesMax: Int
  /// More could not start anyway: a worker's default concurrency is 80.
  package let runningPerFunctionMax: Int

  /// When the first of the pending deliveries that only storage holds is due; nil without any.
  package private(set) var leftDue: Timestamp?
  private var held: [DeliveryID: Held] = [:]
  private var heldBytes = 0
  private var running: [DeliveryID: String] = [:]
  private var runningPerFunction: [String: Int] = [:]
  private var ready: [String: Deque<DeliveryID>] = [:]
  private var waiting = Heap<Waiting>()
  private var waitingBytes = 0
  /// What was tried while a refill reads an older state of storage; nil while none reads.
  private var triedDuringRefill: Set<DeliveryID>?

  /// An empty schedule.
  package init(
    heldMax: Int = 4096,
    heldBytesMax: Int = 64 << 20,
    runningPerFunctionMax: Int = 160
  ) {
    self.heldMax = heldMax
    self.heldBytesMax = heldBytesMax
    self.runningPerFunctionMax = runningPerFunctionMax
  }

  private struct Held {
    var delivery: Delivery
    var bytes: Int
  }

  private struct Waiting: Comparable {
    var due: Timestamp
    var id: DeliveryID
    static func < (left: Waiting, right: Waiting) -> Bool {
      (left.due, left.id) < (right.due, right.id)
    }
  }

  /// Whether nothing runs and nothing is due at `now`, here or in storage.
  package func isIdle(at now: Timestamp) -> Bool {
    running.isEmpty && ready.isEmpty && triedDuringRefill == nil
      && nextDue.map { $0 > now } ?? true
  }

  /// Whether nothing runs, and of what is due at `now` as much is here as belongs here.
  package func isAtRest(at now: Timestamp) -> Bool {
    running.isEmpty && triedDuringRefill == nil && !wantsRefill(at: now)
  }

  /// Those that run at this moment.
  package var runningIDs: Set<DeliveryID> { Set(running.keys) }

  /// Whether one runs at this moment.
  package func isRunning(_ id: DeliveryID) -> Bool { running[id] != nil }

  /// How many are held.
  package var heldCount: Int { held.count }

  /// Whether everything pending is held, as far as it was added or read from storage.
  package var holdsAll: Bool { leftDue == nil && triedDuringRefill == nil }

  /// Takes a pending delivery whose row has `bytes` bytes; one that is held already changes nothing.
  ///
  /// Where there is no room, the one of all that is due last is left to storage; what is due at
  /// `now` or runs stays.
  package mutating func add(_ delivery: Delivery, bytes: Int, now: Timestamp) {
    guard held[delivery.id] == nil else { return }
    while !hasRoom, let last = waiting.max, last.due > delivery.dueTime {
      waiting.removeMax()
      waitingBytes -= bytesHeld(last.id)
      forget(last.id)
      leftInStorage(due: last.due)
    }
    guard hasRoom else { return leftInStorage(due: delivery.dueTime) }
    held[delivery.id] = Held(delivery: delivery, bytes: bytes)
    heldBytes += bytes
    enqueue(delivery, now: now)
  }

  /// Notes that storage holds a pending delivery, due then, that is not here.
  package mutating func leftInStorage(due: Timestamp) {
    leftDue = min(leftDue ?? due, due)
  }

  /// Whether something due is only in storage, and there is room for half of what fits.
  ///
  /// What waits counts as room, for it gives way.
  package func wantsRefill(at now: Timestamp) -> Bool {
    guard triedDuringRefill == nil, let leftDue, leftDue <= now else { return false }
    return held.count - waiting.count <= heldMax / 2
      && heldBytes - waitingBytes <= heldBytesMax / 2
  }

  /// Notes that what is due first in storage is about to be read.
  ///
  /// Comes before the read, so that what is left to storage during it is not forgotten after it.
  package mutating func beginRefill(now: Timestamp) {
    promoteDue(now: now)
    leftDue = nil
    triedDuringRefill = []
  }

  /// Takes what was read since `beginRefill`, and when the first of what was not read is due.
  ///
  /// What was tried meanwhile is settled or known better, and is passed over.
  package mutating func endRefill(
    _ read: [(delivery: Delivery, bytes: Int)],
    nextDue: Timestamp?,
    now: Timestamp
  ) {
    let tried = triedDuringRefill ?? []
    triedDuringRefill = nil
    if let nextDue { leftInStorage(due: nextDue) }
    for (delivery, bytes) in read where !tried.contains(delivery.id) {
      add(delivery, bytes: bytes, now: now)
    }
  }

  /// The deliveries to start now; they count as running until `finish`.
  package mutating func start(now: Timestamp) -> [Delivery] {
    promoteDue(now: now)
    var started: [Delivery] = []
    for function in ready.keys.sorted() {
      while runningPerFunction[function, default: 0] < runningPerFunctionMax,
        let id = ready[function]?.popFirst()
      {
        guard let delivery = held[id]?.delivery else { continue }
        running[id] = function
        runningPerFunction[function, default: 0] += 1
        started.append(delivery)
      }
      if ready[function]?.isEmpty == true { ready[function] = nil }
    }
    return started
  }

  /// Those that could start at `now`, in the order of their ids, those that are past a function's
  /// bound included.
  package mutating func startable(now: Timestamp) -> [Delivery] {
    promoteDue(now: now)
    return ready.values.flatMap { $0.compactMap { held[$0]?.delivery } }.sorted { $0.id < $1.id }
  }

  /// Starts one delivery, which then runs until `finish`; nil when it is not one that could.
  package mutating func start(_ id: DeliveryID, now: Timestamp) -> Delivery? {
    promoteDue(now: now)
    guard let delivery = held[id]?.delivery, let place = ready[id.function]?.firstIndex(of: id)
    else {
      return nil
    }
    ready[id.function]?.remove(at: place)
    if ready[id.function]?.isEmpty == true { ready[id.function] = nil }
    running[id] = id.function
    runningPerFunction[id.function, default: 0] += 1
    return delivery
  }

  /// Takes back a delivery after its try: again if it is still pending, else it leaves.
  package mutating func finish(_ delivery: Delivery, now: Timestamp) {
    if let function = running.removeValue(forKey: delivery.id) {
      let left = runningPerFunction[function, default: 1] - 1
      runningPerFunction[function] = left == 0 ? nil : left
    }
    triedDuringRefill?.insert(delivery.id)
    guard !delivery.state.isSettled else { return forget(delivery.id) }
    held[delivery.id]?.delivery = delivery
    enqueue(delivery, now: now)
  }

  /// When the first of those that wait, here or in storage, is due, which may be past; nil without
  /// any.
  package var nextDue: Timestamp? {
    guard let due = waiting.min?.due else { return leftDue }
    return min(due, leftDue ?? due)
  }

  /// When to look again, if nothing else happens after a look at `now`; nil for never.
  ///
  /// What is due but only in storage waits for others to end, not for a time.
  package func nextLook(after now: Timestamp) -> Timestamp? {
    [waiting.min?.due, leftDue].compactMap { $0 }.filter { $0 > now }.min()
  }

  private var hasRoom: Bool { held.count < heldMax && heldBytes < heldBytesMax }

  private func bytesHeld(_ id: DeliveryID) -> Int { held[id]?.bytes ?? 0 }

  private mutating func forget(_ id: DeliveryID) {
    heldBytes -= bytesHeld(id)
    held[id] = nil
  }

  private mutating func promoteDue(now: Timestamp) {
    while let next = waiting.min, next.due <= now {
      waiting.removeMin()
      waitingBytes -= bytesHeld(next.id)
      ready[next.id.function, default: []].append(next.id)
    }
  }

  private mutating func enqueue(_ delivery: Delivery, now: Timestamp) {
    if delivery.dueTime <= now {
      ready[delivery.id.function, default: []].append(delivery.id)
    } else {
      waiting.insert(Waiting(due: delivery.dueTime, id: delivery.id))
      waitingBytes += bytesHeld(delivery.id)
    }
  }
}
