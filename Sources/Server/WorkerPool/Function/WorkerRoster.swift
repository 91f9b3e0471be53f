/// The workers of one function, with their phases and loads.
///
/// Every change goes through `update`. It maintains the counts and orderings that the scheduler
/// reads on each invocation. The cost of these reads does not grow with the number of workers.
struct WorkerRoster {
  typealias ID = FunctionScheduler.WorkerID

  /// A worker process, from the decision to start it until it has exited.
  struct Worker {
    enum Phase: Equatable {
      /// Waits until the fleet has a place; `isForQueue` if only waiting invocations need it.
      case queued(isForQueue: Bool)
      case starting(by: Duration)
      case ready
      /// A connection broke; the worker takes new invocations only after it has answered.
      case checking(by: Duration)
      /// The worker is paused while it writes a crash report; it takes nothing new.
      case crashing(by: Duration)
      /// Another function needs the place; the worker takes nothing new and exits once done.
      case yielding
      /// An abandoned invocation did not stop; the worker takes nothing new and is killed last.
      case condemned
      case stopping(killAt: Duration)
      case killed
    }

    var phase: Phase
    /// The number of invocations whose callers are waiting.
    var running = 0
    /// The number of invocations whose callers have left but which have not stopped yet.
    var lingering = 0
    /// True if the worker runs an isolated invocation, which must stay alone.
    var isReserved = false
    /// The number of invocations that ran here when the worker was first seen to be in trouble.
    var suspects = 0
    var idleSince = Duration.zero

    var load: Int { running + lingering }
    var isIdle: Bool { phase == .ready && load == 0 }
    var isLeaving: Bool {
      switch phase {
      case .queued, .starting, .ready, .checking: false
      case .crashing, .yielding, .condemned, .stopping, .killed: true
      }
    }
  }

  /// The counts of workers that are not leaving.
  struct Tally {
    var all = 0
    var ready = 0
    /// Workers that wait for a place and that only waiting invocations need.
    var queuedOnDemand = 0
    /// Workers that run one isolated invocation.
    var reserved = 0
    /// Workers that run ordinary invocations.
    var occupied = 0

    /// Workers that will take invocations soon.
    var onTheWay: Int { all - ready }

    fileprivate mutating func count(_ worker: Worker, _ times: Int) {
      guard !worker.isLeaving else { return }
      all += times
      if worker.phase == .ready { ready += times }
      if worker.phase == .queued(isForQueue: true) { queuedOnDemand += times }
      if worker.isReserved { reserved += times } else if worker.load > 0 { occupied += times }
    }
  }

  private struct Free: Comparable {
    var load: Int
    var number: Int

    static func < (left: Self, right: Self) -> Bool {
      (left.load, left.number) < (right.load, right.number)
    }
  }

  private struct Idle: Comparable {
    var since: Duration
    var number: Int

    static func < (left: Self, right: Self) -> Bool {
      (left.since, left.number) < (right.since, right.number)
    }
  }

  private let concurrency: Int
  private var workers: [ID: Worker] = [:]
  private var made = 0
  private var free = SortedList<Free>()
  private var idle = SortedList<Idle>()
  private(set) var tally = Tally()

  /// Creates an empty roster of workers that run up to `concurrency` invocations at once.
  init(concurrency: Int) {
    self.concurrency = concurrency
  }

  subscript(id: ID) -> Worker? { workers[id] }

  /// All workers, in no particular order.
  var all: [ID: Worker] { workers }

  /// The worker that has been idle longest, and the time since which it has been idle.
  var idleLongest: (id: ID, since: Duration)? {
    idle.first.map { (ID(number: $0.number), $0.since) }
  }

  /// Returns the least loaded worker with room for another invocation.
  ///
  /// Workers with an isolated invocation are skipped. If `mayBeIdle` is false, so are idle workers.
  func free(mayBeIdle: Bool) -> ID? {
    free.first(from: Free(load: mayBeIdle ? 0 : 1, number: 0)).map { ID(number: $0.number) }
  }

  /// A worker that runs no invocation.
  var freeForOneAlone: ID? {
    free.first.flatMap { $0.load == 0 ? ID(number: $0.number) : nil }
  }

  /// The ready worker with the lowest load.
  var leastBusy: ID? {
    workers.filter { $0.value.phase == .ready }
      .min { ($0.value.load, $0.key.number) < ($1.value.load, $1.key.number) }?.key
  }

  /// The newest worker that waits for a place and that only waiting invocations need.
  var lastQueuedForQueue: ID? {
    workers.filter { $0.value.phase == .queued(isForQueue: true) }
      .keys.max { $0.number < $1.number }
  }

  mutating func add(_ phase: Worker.Phase) -> ID {
    made += 1
    let id = ID(number: made)
    let worker = Worker(phase: phase)
    note(id, worker, 1)
    workers[id] = worker
    return id
  }

  /// Changes a worker if it exists.
  mutating func update(_ id: ID, _ change: (inout Worker) -> Void) {
    guard var worker = workers[id] else { return }
    note(id, worker, -1)
    change(&worker)
    note(id, worker, 1)
    workers[id] = worker
  }

  /// Removes a worker that has exited.
  mutating func remove(_ id: ID) -> Worker? {
    guard let worker = workers.removeValue(forKey: id) else { return nil }
    note(id, worker, -1)
    return worker
  }

  /// Adds a worker to the counts and orderings, or removes it.
  private mutating func note(_ id: ID, _ worker: Worker, _ times: Int) {
    tally.count(worker, times)
    guard worker.phase == .ready else { return }
    if !worker.isReserved, worker.load < concurrency {
      let place = Free(load: worker.load, number: id.number)
      if times > 0 { free.insert(place) } else { free.remove(place) }
    }
    if worker.load == 0 {
      let place = Idle(since: worker.idleSince, number: id.number)
      if times > 0 { idle.insert(place) } else { idle.remove(place) }
    }
  }
}
