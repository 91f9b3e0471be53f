import DequeModule
package import DocumentModel
import HeapModule

/// Which deliveries run now, which wait, and for whom: a value that decides and never acts.
///
/// Holds at most `heldMax` deliveries in memory; what does not fit stays in storage, is remembered
/// only as `overflowed`, and is loaded again when there is room. A function runs at most
/// `runningPerFunctionMax` at once, so that a slow one leaves room for the others.
package struct DeliverySchedule: Sendable {
  /// Bounds the memory of the schedule and of one refill.
  package let heldMax: Int
  /// More could not start anyway: a worker's default concurrency is 80.
  package let runningPerFunctionMax: Int

  /// Whether storage holds pending deliveries that are not here.
  package private(set) var overflowed = false
  private var held: [DeliveryID: Delivery] = [:]
  private var running: [DeliveryID: String] = [:]
  private var runningPerFunction: [String: Int] = [:]
  private var ready: [String: Deque<DeliveryID>] = [:]
  private var waiting = Heap<Waiting>()

  /// An empty schedule.
  package init(heldMax: Int = 4096, runningPerFunctionMax: Int = 160) {
    self.heldMax = heldMax
    self.runningPerFunctionMax = runningPerFunctionMax
  }

  private struct Waiting: Comparable {
    var due: Timestamp
    var id: DeliveryID
    static func < (left: Waiting, right: Waiting) -> Bool {
      (left.due, left.id) < (right.due, right.id)
    }
  }

  /// Whether nothing runs and nothing is due at `now`.
  package func isIdle(at now: Timestamp) -> Bool {
    running.isEmpty && ready.isEmpty && !overflowed && !waiting.unordered.contains { $0.due <= now }
  }

  /// Those that run at this moment.
  package var runningIDs: Set<DeliveryID> { Set(running.keys) }

  /// How many more fit.
  package var room: Int { max(0, heldMax - held.count) }

  /// Takes a pending delivery; one that is held already, or finds no room, changes nothing else.
  package mutating func add(_ delivery: Delivery, now: Timestamp) {
    guard held[delivery.id] == nil else { return }
    guard held.count < heldMax else {
      overflowed = true
      return
    }
    held[delivery.id] = delivery
    enqueue(delivery, now: now)
  }

  /// Notes that storage holds pending deliveries that are not here.
  package mutating func leftInStorage() {
    overflowed = true
  }

  /// Notes that everything pending in storage is held, or is about to be added.
  package mutating func filledFromStorage() {
    overflowed = false
  }

  /// The deliveries to start now; they count as running until `finish`.
  package mutating func start(now: Timestamp) -> [Delivery] {
    promoteDue(now: now)
    var started: [Delivery] = []
    for function in ready.keys.sorted() {
      while runningPerFunction[function, default: 0] < runningPerFunctionMax,
        let id = ready[function]?.popFirst()
      {
        guard let delivery = held[id] else { continue }
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
    return ready.values.flatMap { $0.compactMap { held[$0] } }.sorted { $0.id < $1.id }
  }

  /// Starts one delivery, which then runs until `finish`; nil when it is not one that could.
  package mutating func start(_ id: DeliveryID, now: Timestamp) -> Delivery? {
    promoteDue(now: now)
    guard let delivery = held[id], let place = ready[id.function]?.firstIndex(of: id) else {
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
    guard !delivery.state.isSettled else {
      held[delivery.id] = nil
      return
    }
    held[delivery.id] = delivery
    enqueue(delivery, now: now)
  }

  /// When the next waiting delivery is due; nil when none waits.
  package var nextDue: Timestamp? { waiting.min?.due }

  private mutating func promoteDue(now: Timestamp) {
    while let next = waiting.min, next.due <= now {
      waiting.removeMin()
      ready[next.id.function, default: []].append(next.id)
    }
  }

  private mutating func enqueue(_ delivery: Delivery, now: Timestamp) {
    if delivery.dueTime <= now {
      ready[delivery.id.function, default: []].append(delivery.id)
    } else {
      waiting.insert(Waiting(due: delivery.dueTime, id: delivery.id))
    }
  }
}
