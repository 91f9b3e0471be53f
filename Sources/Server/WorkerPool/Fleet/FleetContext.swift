import Logging
import NIOCore
import Synchronization

/// What all versions and workers of the fleet share: settings, time, and the gate of starts.
final class FleetContext: Sendable {
  private struct State {
    var versions: [ObjectIdentifier: FunctionVersion] = [:]
    var gate: StartGate<ObjectIdentifier>
    /// Workers waiting at the gate.
    var queued: [ObjectIdentifier: WorkerProcess] = [:]
    var isClosing = false
  }

  let configuration: WorkerFleet.Configuration
  let time: PoolTime
  let alarm: Alarm
  let log: FunctionLogStore
  let logger: Logger
  let strays = StraySweep()
  /// The workers that the fleet's service is to run.
  let launches: AsyncStream<WorkerProcess>
  private let launch: AsyncStream<WorkerProcess>.Continuation
  private let state: Mutex<State>
  private let socketsMade = Atomic<Int>(0)
  private let socketFolder = Mutex<SocketFolder?>(nil)

  init(
    _ configuration: WorkerFleet.Configuration,
    time: PoolTime,
    log: FunctionLogStore,
    logger: Logger
  ) {
    self.configuration = configuration
    self.time = time
    self.alarm = Alarm(time)
    self.log = log
    self.logger = logger
    // Bounded by `workersMax`: the gate lets no more workers pass.
    (launches, launch) = AsyncStream.makeStream()
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
    state.withLock { $0.versions[ObjectIdentifier(version)] = version }
  }

  /// Removes a version that is retired and empty.
  func remove(_ version: FunctionVersion) {
    let closes = state.withLock { state in
      state.versions[ObjectIdentifier(version)] = nil
      return state.isClosing && state.versions.isEmpty
    }
    if closes { closeLaunches() }
  }

  /// Lets the service end once no version is left; all versions must have been retired.
  func closeLaunchesWhenEmpty() {
    let closes = state.withLock { state in
      state.isClosing = true
      return state.versions.isEmpty
    }
    if closes { closeLaunches() }
  }

  /// All versions with workers, including retired ones.
  var versions: [FunctionVersion] { state.withLock { Array($0.versions.values) } }

  /// Does what is due in all versions.
  func advance() {
    for version in versions { version.advance() }
    pass { $0.gate.admit(now: $1) }
  }

  // MARK: Starts

  func requestStart(_ worker: WorkerProcess) {
    let id = ObjectIdentifier(worker)
    pass { state, now in
      state.queued[id] = worker
      return state.gate.request(id, of: worker.version.function.name, now: now)
    }
  }

  func ready(_ worker: WorkerProcess) {
    pass { $0.gate.ready(ObjectIdentifier(worker), now: $1) }
  }

  func exited(_ worker: WorkerProcess) {
    pass { state, now in
      state.queued[ObjectIdentifier(worker)] = nil
      return state.gate.exited(ObjectIdentifier(worker), now: now)
    }
  }

  /// Ends all launches; no worker is launched after this.
  func closeLaunches() {
    launch.finish()
  }

  private func pass(_ change: (inout State, Duration) -> [ObjectIdentifier]) {
    let now = time.now()
    let (admitted, wake) = state.withLock { state in
      let admitted = change(&state, now).compactMap { state.queued.removeValue(forKey: $0) }
      return (admitted, state.gate.wake(now: now))
    }
    for worker in admitted {
      // After the service has ended nothing runs the worker, so it counts as gone at once.
      if case .terminated = launch.yield(worker) { worker.neverRan() }
    }
    if let wake { alarm.set(wake) }
    makeRoom()
  }

  /// Frees places while workers wait for one.
  ///
  /// Stops the worker of any function that has been idle longest. When none is idle, the function
  /// with the most workers gives one up once that worker is done.
  private func makeRoom() {
    while let richest = state.withLock({ $0.gate.needsRoom ? .some($0.gate.richest) : nil }) {
      let versions = versions
      let idle = versions.compactMap { version in version.idleSince.map { (version, $0) } }
      let worker =
        idle.min { $0.1 < $1.1 }?.0.yieldWorker(mayBeBusy: false)
        ?? versions.lazy.filter { $0.function.name == richest && $0.debugger == nil }
        .compactMap { $0.yieldWorker(mayBeBusy: true) }.first
      guard let worker else { return }
      state.withLock { $0.gate.isLeaving(ObjectIdentifier(worker)) }
    }
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

  /// A path for the next worker's socket.
  func nextSocketPath() throws -> String {
    let number = socketsMade.wrappingAdd(1, ordering: .relaxed).newValue
    return "\(try makeSocketFolder())/\(number)"
  }
}
