import DocumentModel
import HeapModule

/// The backlogs of all functions: a value that decides what starts and what is read, and never acts.
///
/// Its cost follows the functions in which something has happened, not those that are deployed.
struct DispatchState: Sendable {
  private struct Alarm: Comparable, Sendable {
    var time: Timestamp
    var function: String
    static func < (left: Alarm, right: Alarm) -> Bool {
      (left.time, left.function) < (right.time, right.function)
    }
  }

  /// A delivery to be tried.
  struct Start: Sendable {
    var delivery: Delivery
    /// Nil when the event is kept no longer.
    var event: DeliveryEvent?
    var runsApart: Bool
  }

  /// What to do next.
  struct Work: Sendable {
    var starts: [Start] = []
    var loads: [DeliveryStore.LoadRequest] = []
    /// Whether something has happened to deliveries of a function that is not deployed.
    var concernsUndeployed = false
    /// When to look again if nothing else happens; nil for never.
    var nextTime: Timestamp?
  }

  /// The most memory that the events of all windows should take; an event may have two megabytes.
  private let heldBytesMax: Int
  /// Whether deliveries start by themselves.
  private let startsByItself: Bool
  private(set) var backlogs: [String: FunctionBacklog] = [:]
  /// The functions in which something has happened since the last look.
  private var changed: Set<String> = []
  private var alarms = Heap<Alarm>()
  /// The earliest alarm of each function.
  private var armed: [String: Timestamp] = [:]
  private var loadsRunning = 0
  private var limits: [String: DispatchLimits] = [:]
  /// The last deployment; nil before the first one.
  var deployment: Deployment?
  /// Since when functions are not deployed, as an earlier run has noted it.
  var undeployedSince: [String: Timestamp] = [:]
  /// The deliveries that may run here.
  private(set) var shards: ShardSet = .none
  /// Bytes of events in all windows.
  private var heldBytes = 0

  init(heldBytesMax: Int, startsByItself: Bool) {
    self.heldBytesMax = heldBytesMax
    self.startsByItself = startsByItself
  }

  /// Takes over the limits of the deployed functions.
  mutating func update(limits: [String: DispatchLimits]) {
    self.limits = limits
    for function in backlogs.keys { change(function) { $0.update(limits[function] ?? .init()) } }
  }

  /// Takes over which shards may run here, and those that may only end what runs.
  ///
  /// Deliveries of other shards are dropped: nothing that becomes of them counts.
  mutating func update(shards: ShardSet, leaving: ShardSet = .none) {
    let isMore = !shards.isSubset(of: self.shards)
    self.shards = shards
    for function in backlogs.keys {
      change(function) { backlog in
        // What was passed over while others had it is looked for again.
        if isMore { backlog.lookAgain(from: Timestamp(microseconds: 0)) }
        backlog.drop(where: { !shards.contains(Shard(of: $0)) }) {
          !shards.contains(Shard(of: $0)) && !leaving.contains(Shard(of: $0))
        }
      }
    }
  }

  /// Changes a function's backlog, which is then looked at again.
  @discardableResult
  mutating func change<Result>(
    _ function: String,
    _ change: (inout FunctionBacklog) -> Result
  ) -> Result {
    // The backlog is taken out of the dictionary, so that changing it does not copy it.
    var backlog =
      backlogs.removeValue(forKey: function)
      ?? makeBacklog(function)
    heldBytes -= backlog.heldBytes
    let result = change(&backlog)
    heldBytes += backlog.heldBytes
    backlogs[function] = backlog
    changed.insert(function)
    return result
  }

  private func makeBacklog(_ function: String) -> FunctionBacklog {
    var backlog = FunctionBacklog(
      function: function,
      limits: limits[function] ?? DispatchLimits()
    )
    backlog.undeployed = undeployed(function)
    return backlog
  }

  /// Whether the last deployment has a function.
  func isDeployed(_ function: String) -> Bool { limits[function] != nil }

  /// Takes new deliveries of one function; returns whether `inserted` must follow.
  mutating func add(_ new: [DeliveryStore.Candidate], of function: String) -> Bool {
    let room = room(heldBytes >= heldBytesMax)
    return change(function) { $0.add(new, room: room - $0.heldBytes) }
  }

  /// How many bytes of events one function may have in its window.
  ///
  /// One whose events are large leaves room for the others, and each has some.
  private func room(_ isFull: Bool) -> Int {
    min(heldBytesMax / 4, isFull ? Self.smallRoom : .max)
  }

  private static let smallRoom = 1 << 20

  // MARK: Looking

  /// Decides what starts and what is read at `now`; started deliveries count as running.
  mutating func look(now: Timestamp) -> Work {
    var work = Work()
    while let alarm = alarms.min, alarm.time <= now {
      alarms.removeMin()
      if armed[alarm.function] == alarm.time { armed[alarm.function] = nil }
      changed.insert(alarm.function)
    }
    // What waits for a read has its turn after the others.
    var waiting: Set<String> = []
    for function in changed {
      guard var backlog = backlogs.removeValue(forKey: function) else { continue }
      if startsByItself {
        while let entry = backlog.start(now: now) { work.starts.append(Start(entry)) }
      }
      let bytesMax = room(heldBytes >= heldBytesMax) - backlog.heldBytes
      // A read takes one event at least. Without room for it those in the window end first.
      let hasRoom = bytesMax > 0 || backlog.entries.isEmpty || !startsByItself
      if hasRoom, backlog.wantsLoad(now: now) {
        if loadsRunning < Self.loadsMax {
          loadsRunning += 1
          work.loads.append(backlog.beginLoad(now: now, bytesMax: bytesMax, shards: shards))
        } else {
          waiting.insert(function)
        }
      }
      if let time = backlog.nextTime, time > now, armed[function].map({ time < $0 }) ?? true {
        armed[function] = time
        alarms.insert(Alarm(time: time, function: function))
      }
      if backlog.undeployed != nil, backlog.count > 0 { work.concernsUndeployed = true }
      backlogs[function] = backlog
    }
    changed = waiting
    work.nextTime = alarms.min?.time
    return work
  }

  /// Takes in what a read has found, nil when it has failed; returns the deliveries to park.
  mutating func loaded(
    _ request: DeliveryStore.LoadRequest,
    _ loaded: DeliveryStore.Loaded?
  ) -> [Delivery] {
    loadsRunning -= 1
    let shards = shards
    return change(request.function) { backlog in
      if let loaded { return backlog.apply(loaded, shards: shards) }
      backlog.cancelLoad(request)
      return []
    }
  }

  /// Looks at all functions again, because time has jumped.
  mutating func lookAtAll() {
    changed.formUnion(backlogs.keys)
  }

  /// Looks at all functions again, because the clock was set back to `now`.
  mutating func clockWasSetBack(to now: Timestamp) {
    for function in backlogs.keys { change(function) { $0.clockWasSetBack(to: now) } }
  }

  /// Starts one delivery, whatever holds it up; nil when it is not ready.
  mutating func start(_ id: DeliveryID) -> Start? {
    change(id.function) { $0.start(id.place) }.map { Start($0) }
  }

  /// The reads that run at one time; those of many functions take turns.
  private static let loadsMax = 4

  // MARK: What there is

  var pendingCount: Int { backlogs.values.reduce(0) { $0 + $1.count } }

  var runningCount: Int { backlogs.values.reduce(0) { $0 + $1.runningCount } }

  /// The deliveries that run now.
  var runningIDs: Set<DeliveryID> {
    Set(
      backlogs.values.flatMap { backlog in
        backlog.runningPlaces.map { DeliveryID($0, backlog.function) }
      }
    )
  }

  /// The deliveries that could start now, ordered by id.
  var startable: [DeliveryID] {
    backlogs.values.flatMap { backlog in
      backlog.startable.map { DeliveryID($0, backlog.function) }
    }.sorted()
  }

  func phase(_ id: DeliveryID) -> FunctionBacklog.Phase? {
    backlogs[id.function]?.phase(id.place)
  }

  /// When the first delivery that waits for its time is due, which may be past; nil when none does.
  var nextDue: Timestamp? {
    backlogs.values.lazy.compactMap(\.nextTime).min()
  }

  /// Whether every backlog is in a state.
  func allSatisfy(_ condition: (FunctionBacklog) -> Bool) -> Bool {
    backlogs.values.allSatisfy(condition)
  }
}

extension DispatchState.Start {
  fileprivate init(_ entry: FunctionBacklog.Entry) {
    self.init(delivery: entry.delivery, event: entry.event, runsApart: entry.isSuspect)
  }
}
