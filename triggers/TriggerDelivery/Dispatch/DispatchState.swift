import DocumentModel
import HeapModule

/// The backlogs of all functions: a value that decides what to start and load, and never acts.
///
/// Its cost depends on the functions that have changed, not on the number of deployed functions.
struct DispatchState: Sendable {
  private struct Alarm: Comparable, Sendable {
    var time: Timestamp
    var function: String
    static func < (left: Alarm, right: Alarm) -> Bool {
      (left.time, left.function) < (right.time, right.function)
    }
  }

  /// A delivery to attempt.
  struct Start: Sendable {
    var delivery: Delivery
    /// The event; nil if it is no longer stored.
    var event: DeliveryEvent?
    var runsIsolated: Bool
  }

  /// The work to do next.
  struct Work: Sendable {
    var starts: [Start] = []
    var loads: [DeliveryStore.LoadRequest] = []
    /// True if deliveries of an undeployed function have changed.
    var concernsUndeployed = false
    /// The time of the next check if nothing else happens; nil for none.
    var nextTime: Timestamp?
  }

  /// The target memory size of the events in all windows, in bytes.
  ///
  /// It may be exceeded, because a single event may have two megabytes.
  private let heldBytesMax: Int
  /// True if deliveries start automatically.
  private let startsByItself: Bool
  private(set) var backlogs: [String: FunctionBacklog] = [:]
  /// The functions that have changed since the last call of `look`.
  private var changed: Set<String> = []
  private var alarms = Heap<Alarm>()
  /// The earliest alarm of each function.
  private var armed: [String: Timestamp] = [:]
  private var loadsRunning = 0
  private var limits: [String: DispatchLimits] = [:]
  /// The last deployment; nil before the first one.
  var deployment: Deployment?
  /// The times since which functions are undeployed, as an earlier run has stored them.
  var undeployedSince: [String: Timestamp] = [:]
  /// True once the deliveries that an earlier run left are counted.
  private(set) var isLoaded = false
  /// The size of the events in all windows, in bytes.
  private var heldBytes = 0

  init(heldBytesMax: Int, startsByItself: Bool) {
    self.heldBytesMax = heldBytesMax
    self.startsByItself = startsByItself
  }

  /// Applies the limits of the deployed functions.
  mutating func update(limits: [String: DispatchLimits]) {
    self.limits = limits
    for function in backlogs.keys { change(function) { $0.update(limits[function] ?? .init()) } }
  }

  /// Applies the summaries of the deliveries that an earlier run left, by function.
  mutating func resume(_ summaries: [String: DeliveryStore.Summary], now: Timestamp) {
    for (function, summary) in summaries { change(function) { $0.resume(summary, now: now) } }
    isLoaded = true
  }

  /// Changes a function's backlog and marks the function as changed.
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

  /// Indicates whether the last deployment contains a function.
  func isDeployed(_ function: String) -> Bool { limits[function] != nil }

  /// Adds new deliveries of one function; `inserted` must be called when their rows are written.
  mutating func add(_ new: [DeliveryStore.Candidate], of function: String) {
    let room = room(heldBytes >= heldBytesMax)
    change(function) { $0.add(new, room: room - $0.heldBytes) }
  }

  /// Returns the number of bytes that one function's events may take in its window.
  ///
  /// The limit leaves space for other functions if a function's events are large. When memory is
  /// full, each function still has a small share.
  private func room(_ isFull: Bool) -> Int {
    min(heldBytesMax / 4, isFull ? Self.smallRoom : .max)
  }

  private static let smallRoom = 1 << 20

  // MARK: Deciding

  /// Decides what to start and load at `now`; started deliveries count as running.
  mutating func look(now: Timestamp) -> Work {
    var work = Work()
    while let alarm = alarms.min, alarm.time <= now {
      alarms.removeMin()
      if armed[alarm.function] == alarm.time { armed[alarm.function] = nil }
      changed.insert(alarm.function)
    }
    // Functions that wait for a load are checked again after the others.
    var waiting: Set<String> = []
    for function in changed {
      guard var backlog = backlogs.removeValue(forKey: function) else { continue }
      if startsByItself {
        while let entry = backlog.start(now: now) { work.starts.append(Start(entry)) }
      }
      let bytesMax = room(heldBytes >= heldBytesMax) - backlog.heldBytes
      // A load takes at least one event. Without space for it, the events in the window must end
      // first.
      let hasRoom = bytesMax > 0 || backlog.entries.isEmpty || !startsByItself
      if hasRoom, backlog.wantsLoad(now: now) {
        if loadsRunning < Self.loadsMax {
          loadsRunning += 1
          work.loads.append(backlog.beginLoad(now: now, bytesMax: bytesMax))
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

  /// Applies the result of a load, nil if it failed; returns the deliveries to park.
  mutating func loaded(
    _ request: DeliveryStore.LoadRequest,
    _ loaded: DeliveryStore.Loaded?
  ) -> [Delivery] {
    loadsRunning -= 1
    return change(request.function) { backlog in
      if let loaded { return backlog.apply(loaded) }
      backlog.cancelLoad(request)
      return []
    }
  }

  /// Marks all functions as changed, because time has jumped.
  mutating func lookAtAll() {
    changed.formUnion(backlogs.keys)
  }

  /// Updates all functions after the clock was set back to `now`.
  mutating func clockWasSetBack(to now: Timestamp) {
    for function in backlogs.keys { change(function) { $0.clockWasSetBack(to: now) } }
  }

  /// Starts one delivery regardless of limits and paused queues; nil if it is not ready.
  mutating func start(_ id: DeliveryID) -> Start? {
    change(id.function) { $0.start(id.place) }.map { Start($0) }
  }

  /// The maximum number of concurrent loads; functions take turns if there are more.
  private static let loadsMax = 4

  // MARK: Querying

  var pendingCount: Int { backlogs.values.reduce(0) { $0 + $1.count } }

  var runningCount: Int { backlogs.values.reduce(0) { $0 + $1.runningCount } }

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

  /// The earliest due time of a waiting delivery, which may be past; nil if none waits.
  var nextDue: Timestamp? {
    backlogs.values.lazy.compactMap(\.nextTime).min()
  }

  /// Indicates whether all backlogs satisfy a condition.
  func allSatisfy(_ condition: (FunctionBacklog) -> Bool) -> Bool {
    backlogs.values.allSatisfy(condition)
  }
}

extension DispatchState.Start {
  fileprivate init(_ entry: FunctionBacklog.Entry) {
    self.init(delivery: entry.delivery, event: entry.event, runsIsolated: entry.isCrashCandidate)
  }
}
