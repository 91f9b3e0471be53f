/// The workers of one function: what each is about, and which one is free.
///
/// Every change goes through `update`, which keeps the numbers and orders that the scheduler asks
/// for with each invocation; none of these answers costs more with more workers.
struct WorkerRoster {
  typealias ID = FunctionScheduler.WorkerID

  /// One worker process, from the decision to start it until it has exited.
  struct Worker {
    enum Phase: Equatable {
      /// Waits until the fleet has a place for it. `isForQueue`: not needed without the queue.
      case queued(isForQueue: Bool)
      case starting(by: Duration)
      case ready
      /// A connection broke; new invocations wait until the worker has answered.
      case checking(by: Duration)
      /// The worker writes a crash report and stands still meanwhile; it takes nothing new.
      case crashing(by: Duration)
      /// Another function needs the place: the worker takes nothing new and goes once it is done.
      case yielding
      /// An abandoned invocation did not stop: the worker takes nothing new and is ended last.
      case condemned
      case stopping(killAt: Duration)
      case killed
    }

    var phase: Phase
    /// Invocations whose callers wait.
    var running = 0
    /// Invocations whose callers have gone but which have not stopped yet.
    var lingering = 0
    /// Whether the one invocation that runs here must stay alone.
    var isReserved = false
    /// How many ran here when the worker was first seen to be in trouble.
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

  /// Numbers of workers that are not leaving.
  struct Tally {
    var all = 0
    var ready = 0
    /// Waiting for a place, and wanted by the queue only.
    var queuedForQueue = 0
    /// Running one invocation apart.
    var reserved = 0
    /// Running ordinary invocations.
    var occupied = 0

    /// Those that will take invocations soon.
    var onTheWay: Int { all - ready }

    fileprivate mutating func count(_ worker: Worker, _ times: Int) {
      guard !worker.isLeaving else { return }
      all += times
      if worker.phase == .ready { ready += times }
      if worker.phase == .queued(isForQueue: true) { queuedForQueue += times }
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

  /// No workers, each of which will take so many invocations at once.
  init(concurrency: Int) {
    self.concurrency = concurrency
  }

  subscript(id: ID) -> Worker? { workers[id] }

  /// All workers, in no order.
  var all: [ID: Worker] { workers }

  /// The worker idle longest, and since when.
  var idleLongest: (id: ID, since: Duration)? {
    idle.first.map { (ID(number: $0.number), $0.since) }
  }

  /// The least loaded worker with room for one more that may share it.
  ///
  /// With `mayBeIdle` false only workers that run something already are asked.
  func free(mayBeIdle: Bool) -> ID? {
    free.first(from: Free(load: mayBeIdle ? 0 : 1, number: 0)).map { ID(number: $0.number) }
  }

  /// A worker that runs nothing.
  var freeForOneAlone: ID? {
    free.first.flatMap { $0.load == 0 ? ID(number: $0.number) : nil }
  }

  /// The ready worker that runs least.
  var leastBusy: ID? {
    workers.filter { $0.value.phase == .ready }
      .min { ($0.value.load, $0.key.number) < ($1.value.load, $1.key.number) }?.key
  }

  /// The youngest worker that waits for a place which only the queue wants.
  var lastQueuedForQueue: ID? {
    workers.filter { $0.value.phase == .queued(isForQueue: true) }
      .keys.max { $0.number < $1.number }
  }

  /// Adds a worker.
  mutating func add(_ phase: Worker.Phase) -> ID {
    made += 1
    let id = ID(number: made)
    let worker = Worker(phase: phase)
    note(id, worker, 1)
    workers[id] = worker
    return id
  }

  /// Changes a worker if it is there.
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

  /// Adds a worker to the numbers and orders, or takes it out.
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
