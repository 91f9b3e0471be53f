import FlowControl
import Logging
import NIOCore
import Synchronization

/// The state that all versions and workers of the fleet share: settings, clock and start gate.
final class FleetContext: Sendable {
  struct State {
    var versions: [ObjectIdentifier: FunctionVersion] = [:]
    var gate: StartGate<ObjectIdentifier, PlaceOwner>
    /// Replaced versions that may still have workers, with the time of their replacement.
    var replaced: [PlaceOwner: (version: FunctionVersion, since: Duration)] = [:]
    /// The time of the last log line that reported the holders of places.
    var shortageLogged: Duration?
    /// Workers that wait at the gate.
    var queued: [ObjectIdentifier: WorkerProcess] = [:]
    /// Workers that the gate has admitted and that have not exited.
    var live: [ObjectIdentifier: WorkerProcess] = [:]
    /// The time at which each version next has work to do.
    var advances = Deadlines<ObjectIdentifier>()
    var isClosing = false
    var meters: [String: FunctionMeter] = [:]
  }

  let configuration: WorkerFleet.Configuration
  let time: PoolTime
  let alarm: Alarm<Duration>
  let log: FunctionLogStore
  let journal: InvocationJournal?
  let logger: Logger
  let strays = StraySweep()
  /// The admitted workers, for the fleet's service to run.
  let launches: AsyncStream<WorkerProcess>
  private let launch: AsyncStream<WorkerProcess>.Continuation
  let state: Mutex<State>
  /// True if workers wait for a place that another worker could give up.
  private let isShort = Atomic(false)
  private let socketsMade = Atomic<Int>(0)
  private let ownersMade = Atomic<Int>(0)
  private let socketFolder = Mutex<SocketFolder?>(nil)

  init(
    _ configuration: WorkerFleet.Configuration,
    time: PoolTime,
    log: FunctionLogStore,
    _ journal: InvocationJournal?,
    logger: Logger
  ) {
    self.configuration = configuration
    self.time = time
    self.alarm = Alarm(sleep: time.sleep)
    self.log = log
    self.journal = journal
    self.logger = logger
    // Bounded by `workersMax`, because the gate admits no more workers.
    (launches, launch) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    state = Mutex(
      State(
        gate: StartGate(
          startingMax: max(1, configuration.startsMax),
          liveMax: max(1, configuration.workersMax)
        )
      )
    )
  }

  // MARK: Versions

  func add(_ version: FunctionVersion) {
    state.withLock { state in
      state.versions[ObjectIdentifier(version)] = version
      state.gate.set(version.owner, .deploying)
    }
  }

  /// Creates the identity under which a version of a function holds places.
  func makeOwner(of function: String) -> PlaceOwner {
    let number = ownersMade.wrappingAdd(1, ordering: .relaxed).newValue
    return PlaceOwner(function: function, number: number)
  }

  /// Records that versions serve from now on.
  func serve(_ versions: [FunctionVersion]) {
    state.withLock { state in
      for version in versions { state.gate.set(version.owner, .serving) }
    }
  }

  /// Records that a version takes no more invocations.
  func replace(_ version: FunctionVersion) {
    let now = time.now()
    state.withLock { state in
      state.gate.set(version.owner, .replaced)
      guard state.versions[ObjectIdentifier(version)] != nil, version.debugger == nil else {
        return
      }
      state.replaced[version.owner] = (version, now)
    }
  }

  /// Returns the meter of a function, which counts across all of its versions.
  func meter(of function: String) -> FunctionMeter {
    state.withLock { state in
      if let meter = state.meters[function] { return meter }
      let meter = FunctionMeter()
      state.meters[function] = meter
      return meter
    }
  }

  /// The figures of all functions since the server started, by name.
  var figures: [String: FunctionFigures] {
    state.withLock { $0.meters }.mapValues(\.figures)
  }

  /// Removes a version that is retired and has no workers left.
  func remove(_ version: FunctionVersion) {
    let closes = state.withLock { state in
      state.versions[ObjectIdentifier(version)] = nil
      state.replaced[version.owner] = nil
      state.gate.set(version.owner, .replaced)
      state.advances.remove(ObjectIdentifier(version))
      return state.isClosing && state.versions.isEmpty
    }
    if closes { closeLaunches() }
  }

  /// Ends the launches once no version is left; all versions must have been retired.
  func closeLaunchesWhenEmpty() {
    let closes = state.withLock { state in
      state.isClosing = true
      return state.versions.isEmpty
    }
    if closes { closeLaunches() }
  }

  /// All versions with workers, including retired ones.
  var versions: [FunctionVersion] { state.withLock { Array($0.versions.values) } }

  /// Schedules a version to advance at `time`, unless it is already scheduled earlier.
  func advance(_ version: FunctionVersion, by time: Duration) {
    let id = ObjectIdentifier(version)
    let isNew = state.withLock { state in
      guard state.versions[id] != nil, state.advances[id].map({ time < $0 }) ?? true else {
        return false
      }
      state.advances.set(id, time)
      return true
    }
    if isNew { alarm.set(time) }
  }

  /// Advances every version that has work due.
  func advance() {
    let now = time.now()
    let due = state.withLock { state in
      var due: [FunctionVersion] = []
      while let id = state.advances.popDue(now) {
        if let version = state.versions[id] { due.append(version) }
      }
      return due
    }
    for version in due { version.advance() }
    if let next = journal?.writeDue(now: now) { alarm.set(next) }
    pass { $0.gate.admit(now: $1) }
    if let next = state.withLock({ $0.advances.first }) { alarm.set(next) }
  }

  // MARK: Starts

  func requestStart(_ worker: WorkerProcess) {
    let id = ObjectIdentifier(worker)
    pass { state, now in
      state.queued[id] = worker
      return state.gate.request(id, of: worker.version.owner, now: now)
    }
  }

  func ready(_ worker: WorkerProcess) {
    pass { $0.gate.ready(ObjectIdentifier(worker), now: $1) }
  }

  func exited(_ worker: WorkerProcess) {
    let id = ObjectIdentifier(worker)
    pass { state, now in
      state.live[id] = nil
      return state.gate.exited(id, now: now)
    }
  }

  /// The number of workers that have been admitted and have not exited.
  var workersLive: Int { state.withLock { $0.live.count } }

  /// Records that a worker is to end; true if it was never launched and never will be.
  func leaves(_ worker: WorkerProcess) -> Bool {
    let id = ObjectIdentifier(worker)
    return state.withLock { state in
      defer { noteShortage(state) }
      guard state.queued.removeValue(forKey: id) != nil else {
        state.gate.leaves(id)
        return false
      }
      state.gate.withdraw(id, of: worker.version.owner)
      return true
    }
  }

  /// Closes the stream of launches; no worker is launched afterwards.
  func closeLaunches() {
    launch.finish()
  }

  private func pass(_ change: (inout State, Duration) -> [ObjectIdentifier]) {
    let now = time.now()
    let (admitted, wake) = state.withLock { state in
      let admitted = change(&state, now).compactMap { id in
        let worker = state.queued.removeValue(forKey: id)
        state.live[id] = worker
        return worker
      }
      noteShortage(state)
      return (admitted, state.gate.wake(now: now))
    }
    for worker in admitted {
      // The service has ended and will not run the worker, so it counts as exited at once.
      if case .terminated = launch.yield(worker) { worker.neverRan() }
    }
    if let wake { alarm.set(wake) }
    offerRoom()
    relieveShortage(now)
  }

  // MARK: Places

  /// Makes workers give up their places while others wait.
  ///
  /// This is also called whenever a worker becomes idle. While no worker waits, it costs only a
  /// check of a flag.
  func offerRoom() {
    while isShort.load(ordering: .acquiring), yieldIdleWorker() || yieldBusyWorker() {}
  }

  private func noteShortage(_ state: borrowing State) {
    isShort.store(state.gate.isShort, ordering: .releasing)
  }

  /// Stops the worker of any function that has been idle longest.
  private func yieldIdleWorker() -> Bool {
    let versions = state.withLock { state in
      Dictionary(
        state.live.values.map { ($0.version.owner, $0.version) },
        uniquingKeysWith: { first, _ in first }
      ).filter { state.gate.mayGiveWay($0.key) }.values
    }
    let idle = versions.compactMap { version in version.idleSince.map { (version, $0) } }
    return idle.sorted { $0.1 < $1.1 }.contains { $0.0.yieldWorker(mayBeBusy: false) != nil }
  }

  /// Makes the function version with the most workers give one up once that worker is done.
  private func yieldBusyWorker() -> Bool {
    let candidates = state.withLock { state -> [FunctionVersion] in
      guard state.gate.placesUnassigned > 0,
        let ownerWithMostWorkers = state.gate.ownerWithMostWorkers
      else { return [] }
      return state.live.values.map(\.version).filter {
        $0.owner == ownerWithMostWorkers && $0.debugger == nil
      }
    }
    for version in candidates {
      guard let worker = version.yieldWorker(mayBeBusy: true) else { continue }
      state.withLock { $0.gate.yields(ObjectIdentifier(worker)) }
      return true
    }
    return false
  }

  // MARK: Sockets

  func makeSocketFolder() throws -> String {
    try socketFolder.withLock { folder in
      if let folder { return folder.path }
      let made = try SocketFolder(in: configuration.socketFolder)
      folder = made
      return made.path
    }
  }

  func removeSocketFolder() {
    socketFolder.withLock { folder in
      folder?.remove()
      folder = nil
    }
  }

  /// Returns a socket path that no earlier worker has used.
  func nextSocketPath() throws -> String {
    let number = socketsMade.wrappingAdd(1, ordering: .relaxed).newValue
    return "\(try makeSocketFolder())/\(number)"
  }
}
