import HTTPMessages
import HTTPTypes
import Invocation
import LibC
import Logging
import Manifests
import NIOCore
import StatusCodes
import Subprocess
import Synchronization

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// A worker: its process, socket, idle connections and output.
final class WorkerProcess: Sendable {
  /// A command from the scheduler to a worker.
  enum Command: Sendable {
    /// Probe the worker until it answers.
    case probe
    case terminate
    /// Kill the worker's process group.
    case kill
  }

  struct IdleConnection {
    var connection: WorkerConnection
    var since: Duration
  }

  struct State {
    /// The idle connections; the last used is reused first, so that few stay open.
    var idle: [IdleConnection] = []
    var isOver = false
    /// True if the worker must not start, or must end.
    var isUnwanted = false
    var output: WorkerOutput
    /// True if the process was ever started.
    var hasRun = false
    /// True if the process has begun to write a crash report.
    var hasBegunReport = false
    /// The process ID while the process runs.
    var process: pid_t?
    /// The reason why the server ended the process; nil if it did not.
    var endDetail: String?
    var memory: MemoryWatch
  }

  let id: FunctionScheduler.WorkerID
  let version: FunctionVersion
  let state: Mutex<State>
  /// The counters of current and started invocations, for the memory watch.
  let load = Load()
  let watch = Mutex<Watch?>(nil)
  let socketPath = Mutex<String>("")
  private let commands: AsyncStream<Command>
  private let command: AsyncStream<Command>.Continuation

  /// Creates a worker that is not started yet.
  init(id: FunctionScheduler.WorkerID, of version: FunctionVersion) {
    self.id = id
    self.version = version
    state = Mutex(
      State(
        output: WorkerOutput(version.context.configuration),
        memory: MemoryWatch(
          limitBytes: (version.function.endpoint.availableMemoryMb
            ?? version.context.configuration.memoryMbDefault) << 20
        )
      )
    )
    // The stream stays short: the scheduler sends each command at most once per phase.
    (commands, command) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    command.yield(.probe)
  }

  var context: FleetContext { version.context }

  /// The last lines of the worker's output, for an error message; empty if there are none.
  var lastOutput: String {
    let lines = state.withLock { $0.output.tail }
    return lines.isEmpty ? "" : "\n" + lines.joined(separator: "\n")
  }

  /// Sends a command to the worker; a process that has ended ignores it.
  func send(_ command: Command) {
    if command != .probe { state.withLock { $0.isUnwanted = true } }
    self.command.yield(command)
    if command != .probe { wakeWatch() }
  }

  /// Sends an invocation over an idle connection, or over a new one.
  func run(_ invocation: WorkerInvocation) {
    if load.begin() { wakeWatch() }
    if let connection = idleConnection(near: invocation.eventLoop) {
      connection.send(invocation, for: self)
      return
    }
    connect(on: invocation.eventLoop).whenComplete { result in
      switch result {
      case .success(let connection): connection.send(invocation, for: self)
      case .failure: self.invocationNotSent(invocation)
      }
    }
  }

  /// The longest time that a connection stays idle.
  ///
  /// It is well below the time after which a worker closes an idle connection, so no request is
  /// sent on a connection that is being closed.
  private static let idleConnectionTimeMax = Duration.seconds(300)
  /// The maximum number of idle connections; a burst's additional ones are closed after use.
  private static let idleConnectionsMax = 64

  /// Returns the last used connection, restricted to the caller's event loop if it has one.
  private func idleConnection(near eventLoop: (any EventLoop)?) -> WorkerConnection? {
    let oldest = context.time.now() - Self.idleConnectionTimeMax
    return state.withLock { state in
      while let place = state.idle.lastIndex(where: { $0.connection.isOf(eventLoop) }) {
        let idle = state.idle.remove(at: place)
        if idle.connection.isActive && idle.since > oldest { return idle.connection }
        idle.connection.close()
      }
      return nil
    }
  }

  /// Records that the service ended before the worker was started.
  func neverRan() {
    version.workerExited(self, detail: "the server is stopping")
  }

  /// Starts the process and returns once it has exited.
  func execute() async {
    let detail: String
    version.workerLaunched(self)
    do {
      if state.withLock({ $0.isUnwanted }) { throw CancellationError() }
      if version.debugger != nil {
        detail = await followDebugger()
      } else {
        let path = try context.nextSocketPath()
        socketPath.withLock { $0 = path }
        detail = try await runProcess(socketPath: path)
      }
    } catch let error as any StatusConvertible {
      detail = error.statusMessage
    } catch is CancellationError {
      detail = "the server is stopping"
    } catch {
      detail = "it cannot be executed: \(error)"
    }
    let idle = state.withLock { state in
      state.isOver = true
      defer { state.idle = [] }
      return state.idle
    }
    for idle in idle { idle.connection.close() }
    command.finish()
    version.workerExited(self, detail: detail)
  }

  /// Returns once the debugger process is released; the server neither starts nor ends it.
  private func followDebugger() async -> String {
    await withDiscardingTaskGroup { group in
      for await command in commands {
        guard command == .probe else { break }
        group.addTask { await self.probe() }
      }
      group.cancelAll()
    }
    return endDetail ?? "its debugger's process has left"
  }

  private func runProcess(socketPath: String) async throws -> String {
    var options = PlatformOptions()
    // A new session gives the worker its own process group, and no terminal that could signal it.
    options.createSession = true
    options.teardownSequence = [
      .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)
    ]
    let result = try await Subprocess.run(
      .path(FilePath(version.function.executable)),
      // The name that `ps` shows.
      arguments: Arguments(
        executablePathOverride: "hearth-worker: \(version.function.name)",
        remainingValues: []
      ),
      environment: .custom(
        Dictionary(
          environment(socketPath).map { (Environment.Key(stringLiteral: $0.key), $0.value) },
          uniquingKeysWith: { $1 }
        )
      ),
      platformOptions: options,
      // The input is held open while the worker must live: the worker exits when it closes.
      input: .inputWriter,
      output: .sequence,
      error: .sequence
    ) { execution in
      let process = execution.processIdentifier.value
      let (exits, exit) = AsyncStream.makeStream(
        of: Void.self,
        bufferingPolicy: .bufferingNewest(1)
      )
      began(process) { exit.finish() }
      defer { ended() }
      await withTaskGroup(of: Event.self) { group in
        group.addTask {
          await self.read(execution.standardOutput, isError: false)
          return .outputEnded
        }
        group.addTask {
          await self.read(execution.standardError, isError: true)
          return .outputEnded
        }
        group.addTask {
          await self.follow { command in
            // Errors are ignored, because the process may already have exited.
            switch command {
            case .probe: break
            case .terminate: try? execution.send(signal: .terminate)
            case .kill: try? execution.send(signal: .kill, toProcessGroup: true)
            }
          }
          return .commandsEnded
        }
        group.addTask {
          for await _ in exits {}
          return .exited
        }
        await waitForTheEnd(of: process, &group)
        group.cancelAll()
        // The process has exited; the processes that it started are killed, too.
        try? execution.send(signal: .kill, toProcessGroup: true)
        await endStrays()
      }
    }
    if let detail = endDetail { return detail }
    switch result.terminationStatus {
    case .exited(0): return "it exited"
    case .exited(let code): return "it exited with code \(code)"
    case .signaled(SIGKILL):
      return "it was killed from outside, perhaps by the system because memory ran out"
    case .signaled(let signal): return "it was ended by signal \(signal)"
    }
  }

  private func environment(_ socketPath: String) -> [String: String] {
    WorkerEnvironment.variables(
      for: version.function,
      inherited: context.configuration.environment,
      socketPath: socketPath,
      memoryBytesMax: state.withLock { $0.memory.limitBytes }
    )
  }

  /// Executes commands until the task is cancelled.
  private func follow(signal: @Sendable (Command) -> Void) async {
    await withDiscardingTaskGroup { group in
      for await command in commands {
        switch command {
        case .probe: group.addTask { await self.probe() }
        case .terminate, .kill: signal(command)
        }
      }
      group.cancelAll()
    }
  }
}

// MARK: - Health

extension WorkerProcess {
  /// The first wait between two probes; each further wait is half as long again.
  private static let probeWaitMin = Duration.milliseconds(1)
  /// The longest wait between two probes.
  private static let probeWaitMax = Duration.milliseconds(50)

  /// Probes the worker until it answers or the task is cancelled.
  ///
  /// The scheduler limits the time, because it has a worker killed that does not answer soon
  /// enough.
  private func probe() async {
    var wait = Self.probeWaitMin
    while !Task.isCancelled {
      if await isHealthy() {
        version.workerReady(self)
        return
      }
      do { try await context.time.sleep(context.time.now() + wait) } catch { return }
      wait = min(wait * 3 / 2, Self.probeWaitMax)
    }
  }

  private func isHealthy() async -> Bool {
    // A failed connection and a missing response both mean that the worker is not ready yet.
    guard let connection = try? await connect().get() else { return false }
    let invocation = WorkerInvocation(
      InvocationRequest(
        id: "health",
        function: version.function.name,
        head: .init(method: .get, scheme: nil, authority: nil, path: "/__/health"),
        body: ByteBuffer()
      )
    )
    // A worker that does not reply is not healthy, whatever the error.
    let reply = try? await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard invocation.begin({ continuation.resume(with: $0) }) else {
          continuation.resume(throwing: CancellationError())
          return
        }
        connection.send(invocation, for: HealthProbe(self))
      }
    } onCancel: {
      invocation.abandon()
      connection.close()
    }
    return reply?.head.status == .ok
  }

  private func connect(
    on eventLoop: (any EventLoop)? = nil
  ) -> EventLoopFuture<WorkerConnection> {
    WorkerConnection.connect(
      to: version.debugger.map { .port($0.port) } ?? .socket(socketPath.withLock { $0 }),
      on: eventLoop ?? context.configuration.eventLoopGroup.any(),
      context.configuration
    )
  }

  private func keep(_ connection: WorkerConnection) {
    let now = context.time.now()
    let unwanted = state.withLock { state -> [WorkerConnection] in
      guard !state.isOver else { return [connection] }
      state.idle.append(IdleConnection(connection: connection, since: now))
      // The connections are ordered by age, oldest first.
      let outdated = state.idle.prefix { now - $0.since > Self.idleConnectionTimeMax }.count
      let count = max(outdated, state.idle.count - Self.idleConnectionsMax)
      guard count > 0 else { return [] }
      defer { state.idle.removeFirst(count) }
      return state.idle.prefix(count).map(\.connection)
    }
    for connection in unwanted { connection.close() }
  }

  /// The owner of one health check.
  private final class HealthProbe: InvocationOwner {
    private let worker: WorkerProcess

    init(_ worker: WorkerProcess) {
      self.worker = worker
    }

    func invocationEnded(
      _ invocation: WorkerInvocation,
      on connection: WorkerConnection,
      isReusable: Bool
    ) {
      // Each probe and each call opens its own connection, so this one is not reused.
      connection.close()
    }

    func invocationBroke(_ invocation: WorkerInvocation) { invocation.fail(CancellationError()) }
    func invocationNotSent(_ invocation: WorkerInvocation) { invocation.fail(CancellationError()) }
  }
}

extension WorkerProcess: InvocationOwner {
  func invocationEnded(
    _ invocation: WorkerInvocation,
    on connection: WorkerConnection,
    isReusable: Bool
  ) {
    load.end()
    if isReusable { keep(connection) }
    if let number = invocation.number { version.ended(number) }
  }

  func invocationBroke(_ invocation: WorkerInvocation) {
    load.end()
    if let number = invocation.number {
      version.broke(number, isStreaming: invocation.isStreaming)
    }
  }

  func invocationNotSent(_ invocation: WorkerInvocation) {
    load.end()
    if let number = invocation.number { version.notSent(number) }
  }
}
