import FlowControl
package import HTTPMessages
package import Invocation
package import Logging
package import Manifests
package import NIOCore
import ServiceLifecycle
import StatusCodes
import Synchronization

/// The service that runs the deployed functions in worker processes.
///
/// Each function has its own workers, bounded queue and back-off. A function that crashes, hangs or
/// is flooded therefore does not affect the others. No worker starts before `run` is running.
package final class WorkerFleet: FunctionInvoker, Service {
  struct State {
    var deployed: [String: FunctionVersion] = [:] { didSet { choose() } }
    /// The registered debugger processes; if two run the same function, the later one gets it.
    var attachments: [Attachment] = [] { didSet { choose() } }
    /// The version that currently runs each function.
    private(set) var current: [String: FunctionVersion] = [:]
    private(set) var endpoints: [String: FunctionEndpoint] = [:]
    var unserved: UnservedDeployment? { didSet { choose() } }
    var isReplacing = false
    var isStopping = false

    private mutating func choose() {
      current = attachments.reduce(into: deployed) { current, attachment in
        if !attachment.isLeaving { current.merge(attachment.versions) { $1 } }
      }
      // A fleet that stops still knows its functions, so none of them passes for missing.
      guard !isStopping else { return }
      endpoints = (unserved?.endpoints ?? [:]).merging(
        current.mapValues(\.function.endpoint)
      ) { $1 }
    }
  }

  let context: FleetContext
  let state = Mutex(State())

  /// Creates a fleet without functions; with a `journal`, the log tells how each invocation ended.
  package init(
    configuration: Configuration = Configuration(),
    log: FunctionLogStore,
    journal: InvocationJournal? = nil,
    clock: some Clock<Duration> = ContinuousClock(),
    logger: Logger
  ) {
    context = FleetContext(configuration, time: PoolTime(clock), log: log, journal, logger: logger)
  }

  // MARK: Invocations

  package func invoke(_ request: InvocationRequest) async throws -> Response {
    let invocation = WorkerInvocation(request)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        start(invocation) { continuation.resume(with: $0) }
      }
    } onCancel: {
      invocation.abandon()
    }
  }

  package func begin(
    _ request: InvocationRequest,
    near eventLoop: any EventLoop,
    completion: @escaping @Sendable (Result<Response, any Error>) -> Void
  ) -> @Sendable () -> Void {
    let invocation = WorkerInvocation(request, near: eventLoop)
    start(invocation, completion)
    return { invocation.abandon() }
  }

  private func start(
    _ invocation: WorkerInvocation,
    _ completion: @escaping @Sendable (Result<Response, any Error>) -> Void
  ) {
    do {
      let version = try version(of: invocation.request.function)
      guard invocation.begin(completion) else { throw CancellationError() }
      version.submit(invocation)
    } catch {
      completion(.failure(error))
    }
  }

  private func version(of function: String) throws(InvocationError) -> FunctionVersion {
    let (version, isStopping, unserved) = state.withLock {
      ($0.current[function], $0.isStopping, $0.unserved)
    }
    if isStopping { throw InvocationError(.drained, "The server is stopping.") }
    if let version { return version }
    if let unserved { throw InvocationError(.unserved, unserved.reason) }
    throw InvocationError(.notFound, "No function named \(function) is deployed.")
  }

  // MARK: Functions

  /// The functions of the current deployment and of debugger processes, by name.
  ///
  /// They include those of an `unserved` deployment, and stay the same once the fleet stops: its
  /// functions exist, although they do not run. Computed at deployment, because the gateway reads
  /// them on every call.
  package var endpoints: [String: FunctionEndpoint] { state.withLock { $0.endpoints } }

  /// The status of each function that is currently served, ordered by name.
  package func statuses() -> [FunctionStatus] {
    let versions = state.withLock { Array($0.current.values) }
    return versions.map(\.status).sorted { $0.name < $1.name }
  }

  /// The figures of each function since the server started, by name, including removed functions.
  package var figures: [String: FunctionFigures] { context.figures }

  /// Replaces all functions at once, after a worker of each binary has answered.
  ///
  /// One worker proves that a binary works with a set of variables. Functions with `minInstances`,
  /// and those that have ready workers now, get their workers before the switch if places are left;
  /// the others start workers on first use. Running invocations finish in their old workers, within
  /// `Configuration.replacedTimeMax`, or within `replacedGrace` while a first worker waits for a
  /// place. Waiting invocations move to the new workers.
  ///
  /// Throws if a new worker does not start, if no place is left for a worker that proves a binary,
  /// or if another replacement is in progress. The old functions then stay in place.
  package func replaceFunctions(_ functions: [DeployedFunction]) async throws {
    try state.withLock { state in
      if state.isStopping { throw StatusError(.unavailable, "The server is stopping.") }
      if state.isReplacing {
        throw StatusError(.failedPrecondition, "Another deployment is under way.")
      }
      state.isReplacing = true
    }
    defer { state.withLock { $0.isReplacing = false } }
    let versions = functions.map { FunctionVersion($0, in: context) }
    let proving = proving(versions)
    for (version, _) in proving { version.warmUp() }
    do {
      for (version, isProof) in proving {
        do {
          try await version.firstWorkerReady()
        } catch let error as InvocationError where error.kind == .placesTaken && !isProof {
          // Another worker has proved the binary, so this one may start when there is a place.
          continue
        }
      }
    } catch {
      for version in versions { version.retire(successor: nil) }
      throw error
    }
    try switchOver(to: versions)
  }

  /// Returns the versions that get a worker before the switch, and whether each proves a binary.
  private func proving(
    _ versions: [FunctionVersion]
  ) -> [(version: FunctionVersion, isProof: Bool)] {
    struct Program: Hashable {
      var executable: String
      var environment: [String: String]
    }
    let old = state.withLock { $0.deployed }
    var proven: Set<Program> = []
    return versions.compactMap { version in
      let function = version.function
      let program = Program(executable: function.executable, environment: function.environment)
      let isProof = proven.insert(program).inserted
      let isWarm =
        (function.endpoint.minInstances ?? 0) > 0
        || (old[function.name]?.status.workersReady ?? 0) > 0
      return isProof || isWarm ? (version, isProof) : nil
    }
  }

  private func switchOver(to versions: [FunctionVersion]) throws {
    let new = Dictionary(versions.map { ($0.function.name, $0) }, uniquingKeysWith: { $1 })
    let old = state.withLock { state -> [String: FunctionVersion]? in
      if state.isStopping { return nil }
      defer { state.deployed = new }
      return state.deployed
    }
    guard let old else {
      for version in versions { version.retire(successor: nil) }
      throw StatusError(.unavailable, "The server is stopping.")
    }
    context.serve(versions)
    let drainAfter = context.configuration.replacedTimeMax
    for (name, version) in old {
      version.retire(successor: new[name], drainAfter: drainAfter)
    }
    // Workers may be waiting for the places of the versions replaced here.
    context.advance()
    context.logger.notice(
      "The functions were replaced",
      metadata: ["functions": "\(new.keys.sorted().joined(separator: " "))"]
    )
  }

  /// Waits until the log has the ends of all invocations that have ended by now.
  package func logEnds() async throws {
    guard let journal = context.journal, journal.isHolding else { return }
    let due = context.time.now() + InvocationJournal.holdTime
    try await context.time.sleep(due)
    // The alarm may come a moment later.
    _ = journal.writeDue(now: due)
  }

  // MARK: Lifecycle

  /// Runs the workers until graceful shutdown or cancellation.
  ///
  /// At shutdown, new invocations are refused. Running ones get `drainGrace` and are then
  /// cancelled, and the workers are ended. Returns when no worker process is left.
  package func run() async throws {
    _ = try context.makeSocketFolder()
    await withGracefulShutdownHandler {
      await withTaskCancellationHandler {
        await withDiscardingTaskGroup { group in
          group.addTask { await self.context.alarm.run { self.context.advance() } }
          await withDiscardingTaskGroup { workers in
            for await worker in self.context.launches {
              workers.addTask { await worker.execute() }
            }
          }
          group.cancelAll()
        }
      } onCancel: {
        self.stop(after: .zero)
        self.context.closeLaunches()
      }
    } onGracefulShutdown: {
      self.stop(after: self.context.configuration.drainGrace)
    }
    // No worker is left, so nothing more of its output can come.
    context.journal?.writeHeld(after: context.time.now())
    context.closeLaunches()
    for version in context.versions { version.abort() }
    context.removeSocketFolder()
  }

  /// Refuses new invocations, and ends the workers once they are done or `grace` is over.
  ///
  /// Graceful shutdown calls this itself; an earlier call starts the grace earlier.
  package func stop(after grace: Duration) {
    let current = state.withLock { state in
      state.isStopping = true
      defer {
        state.deployed = [:]
        state.attachments = []
      }
      return state.current
    }
    let versions = context.versions
    for version in versions { version.retire(successor: nil, drainAfter: grace) }
    context.closeLaunchesWhenEmpty()
    context.logger.debug(
      "The workers are being stopped",
      metadata: ["functions.count": "\(current.count)"]
    )
  }
}
