import HTTPTypes
import Invocation
import Logging
import NIOCore
import RuntimeSupport
import Subprocess
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif
#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// One worker: the process, its socket, its idle connections and its output.
final class WorkerProcess: Sendable {
  /// A command of the scheduler to a worker.
  enum Command: Sendable {
    /// Ask the worker until it answers.
    case probe
    /// Ask the worker to finish and exit.
    case terminate
    /// End the worker's process group.
    case kill
  }

  struct IdleConnection {
    var connection: WorkerConnection
    var since: Duration
  }

  struct State {
    /// The idle connections; the last used is used first, so that few stay open.
    var idle: [IdleConnection] = []
    var isOver = false
    /// Set when the worker must not run, or not any longer.
    var isUnwanted = false
    var output: WorkerOutput
    /// Whether there has been a process.
    var hasRun = false
    /// The process while it runs.
    var process: pid_t?
    /// Why the server ended the process, if it did.
    var endDetail: String?
    var memory: MemoryWatch
  }

  let id: FunctionScheduler.WorkerID
  let version: FunctionVersion
  let state: Mutex<State>
  /// The exchanges that the worker carries, and how many it has ever carried.
  let load = Load()
  let watch = Mutex<Watch?>(nil)
  let socketPath = Mutex<String>("")
  private let commands: AsyncStream<Command>
  private let command: AsyncStream<Command>.Continuation

  /// A worker that has not been started.
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
    // The stream stays short: the scheduler sends each command at most once a phase.
    (commands, command) = AsyncStream.makeStream()
    command.yield(.probe)
  }

  var context: FleetContext { version.context }

  /// The last lines that the worker wrote, for an error message; empty when there are none.
  var lastOutput: String {
    let lines = state.withLock { $0.output.tail }
    return lines.isEmpty ? "" : "\n" + lines.joined(separator: "\n")
  }

  /// Passes a command on; a process that has ended ignores it.
  func send(_ command: Command) {
    if command != .probe { state.withLock { $0.isUnwanted = true } }
    self.command.yield(command)
    if command != .probe { wakeWatch() }
  }

  /// Sends the exchange over an idle connection, or a new one.
  func run(_ exchange: WorkerCall) {
    if load.begin() { wakeWatch() }
    if let connection = idleConnection(near: exchange.eventLoop) {
      connection.send(exchange, for: self)
      return
    }
    connect(on: exchange.eventLoop).whenComplete { result in
      switch result {
      case .success(let connection): connection.send(exchange, for: self)
      case .failure: self.exchangeNotSent(exchange)
      }
    }
  }

  /// The longest time a connection stays idle.
  ///
  /// It is well below the time after which a worker closes a silent connection, so that no request
  /// meets a closing one.
  private static let idleConnectionTimeMax = Duration.seconds(300)
  /// The most connections that stay idle: what a burst has opened beyond them is closed after it.
  private static let idleConnectionsMax = 64

  /// The last used connection, on the caller's event loop if it has one.
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

  /// Notes that the service ended before the worker was started.
  func neverRan() {
    version.workerExited(self, detail: "the server is stopping")
  }

  /// Starts the process and stays until it has exited.
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

  /// Stays until the debugger's process is given up; the server neither starts nor ends it.
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
    // A session of its own gives the worker its own process group, and no terminal to signal it.
    options.createSession = true
    options.teardownSequence = [
      .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .zero)
    ]
    let result = try await Subprocess.run(
      .path(FilePath(version.function.executable)),
      // What `ps` shows.
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
      // Held open while the worker must live: it exits when its standard input ends.
      input: .inputWriter,
      output: .sequence,
      error: .sequence
    ) { execution in
      let process = execution.processIdentifier.value
      let (exits, exit) = AsyncStream.makeStream(of: Void.self)
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
            // A process that has meanwhile exited needs no signal.
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
        // The process has exited; the processes that it started end with it.
        try? execution.send(signal: .kill, toProcessGroup: true)
        await endStrays()
      }
    }
    if let detail = endDetail { return detail }
    switch result.terminationStatus {
    case .exited(0): return "it exited"
    case .exited(let code): return "it exited with code \(code)"
    case .signaled(SIGKILL):
      return "it was killed from outside, perhaps by the system for want of memory"
    case .signaled(let signal): return "it was ended by signal \(signal)"
    }
  }

  /// The settings for a short backtrace: functions and lines of the crashed thread.
  ///
  /// Making it takes a second in a debug build.
  private static let backtrace =
    "enable=yes,symbolicate=fast,threads=crashed,images=none,registers=none,interactive=no,"
    + "color=no,limit=24,top=0"

  private func environment(_ socketPath: String) -> [String: String] {
    let function = version.function
    var values = context.configuration.environment
    values["SWIFT_BACKTRACE"] = Self.backtrace
    values.merge(function.environment) { $1 }
    values.merge([
      "FUNCTION_TARGET": function.name,
      "FUNCTION_SIGNATURE_TYPE": function.endpoint.eventTrigger == nil ? "http" : "cloudevent",
      "FUNCTIONS_EMULATOR": "true",
      "FIREBASE_DEBUG_MODE": "true",
      "FIREBASE_DEBUG_FEATURES": #"{"skipTokenVerification":true,"enableCors":true}"#,
      "K_SERVICE": function.name,
      "K_REVISION": function.deploymentID,
      StraySweep.mark: socketPath,
      "FUNCTION_MEMORY_MB": String(state.withLock { $0.memory.limitBytes } >> 20),
      "TZ": "UTC",
    ]) { $1 }
    return values
  }

  /// Carries out commands until the task is cancelled.
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
  /// The first wait before a worker is asked again; each next one is half as long again.
  private static let probeWaitMin = Duration.milliseconds(1)
  /// The longest wait before a worker is asked again.
  private static let probeWaitMax = Duration.milliseconds(50)

  /// Asks the worker whether it is well until it is, or until the task is cancelled.
  ///
  /// The scheduler bounds this: it has a worker killed that does not answer in time.
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
    // No connection and no answer mean the same: the worker is not ready yet.
    guard let connection = try? await connect().get() else { return false }
    let exchange = WorkerCall(
      InvocationRequest(
        id: "health",
        function: version.function.name,
        head: .init(method: .get, scheme: nil, authority: nil, path: "/__/health"),
        body: ByteBuffer()
      )
    )
    let reply = try? await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard exchange.begin({ continuation.resume(with: $0) }) else {
          continuation.resume(throwing: CancellationError())
          return
        }
        connection.send(exchange, for: HealthProbe(self))
      }
    } onCancel: {
      exchange.abandon()
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
      // The oldest come first.
      let outdated = state.idle.prefix { now - $0.since > Self.idleConnectionTimeMax }.count
      let count = max(outdated, state.idle.count - Self.idleConnectionsMax)
      guard count > 0 else { return [] }
      defer { state.idle.removeFirst(count) }
      return state.idle.prefix(count).map(\.connection)
    }
    for connection in unwanted { connection.close() }
  }

  /// Owns the exchange of one health check.
  private final class HealthProbe: ExchangeOwner {
    private let worker: WorkerProcess

    init(_ worker: WorkerProcess) {
      self.worker = worker
    }

    func exchangeEnded(_ exchange: WorkerCall, on connection: WorkerConnection, isReusable: Bool) {
      // There is one for each call that was given up; calls make their own.
      connection.close()
    }

    func exchangeBroke(_ exchange: WorkerCall) { exchange.fail(CancellationError()) }
    func exchangeNotSent(_ exchange: WorkerCall) { exchange.fail(CancellationError()) }
  }
}

extension WorkerProcess: ExchangeOwner {
  func exchangeEnded(_ exchange: WorkerCall, on connection: WorkerConnection, isReusable: Bool) {
    load.end()
    if isReusable { keep(connection) }
    if let number = exchange.number { version.ended(number) }
  }

  func exchangeBroke(_ exchange: WorkerCall) {
    load.end()
    if let number = exchange.number { version.broke(number) }
  }

  func exchangeNotSent(_ exchange: WorkerCall) {
    load.end()
    if let number = exchange.number { version.notSent(number) }
  }
}
