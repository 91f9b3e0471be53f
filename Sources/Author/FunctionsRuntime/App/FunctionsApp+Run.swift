import DocumentModel
import HTTPSupport
import Identity
import Invocation
public import Logging
import RuntimeSupport
public import ServiceLifecycle
import UnixSignals

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension FunctionsApp: Service {
  /// Serves the functions until the process is told to end; the last line of a functions binary.
  ///
  /// ```swift
  /// let environment = await FunctionsApp.environment()
  /// let firestore = Firestore(environment: environment)
  /// await ChatFunctions(firestore: firestore).app.runService()
  /// ```
  ///
  /// `services` are what the functions need and run as long as the functions do, such as a
  /// connection pool: they are started before the functions and stopped after them, in reverse
  /// order. They are not started in a process that only writes its manifest.
  ///
  /// The environment says what to do: `FUNCTION_TARGET` picks one function for every path (without
  /// it each is served below its name), `HEARTH_SOCKET` or `PORT` says where to listen,
  /// `HEARTH_HUB` which running suite to work for (see `environment()`), `FUNCTIONS_EMULATOR=true`
  /// that tokens are the emulator's, `GCLOUD_PROJECT`, `GOOGLE_CLOUD_PROJECT` or `FIREBASE_CONFIG`
  /// whose tokens are accepted otherwise, `LOG_LEVEL` what is logged, `FUNCTION_SIGNATURE_TYPE`
  /// what the platform takes the target for, `CLOUD_RUN_TIMEOUT_SECONDS` when a request without an
  /// answer gets 504. With `FUNCTIONS_MANIFEST_OUTPUT_PATH` it writes the manifest there and ends
  /// at once, with `FUNCTIONS_CONTROL_API=true` it ends when `/__/quitquitquit` is asked for. The
  /// flags `--port`, `--target` and `--signature-type` come before their variables. `--help` prints
  /// the functions and these variables and ends with status 0; any other argument ends with status
  /// 2. A program with arguments of its own serves with `run()`, which leaves them alone.
  ///
  /// On `SIGTERM` and `SIGINT` it stops accepting, lets running invocations finish and returns. An
  /// error, such as a bad declaration, setting or address or a failed preparation, ends the process
  /// with status 1 and says on standard error what to change.
  ///
  /// - Parameters:
  ///   - services: What runs around the functions, in the order of starting.
  ///   - bootstrapsLogging: Whether to set up swift-log with `logHandler(label:)`; false when the
  ///     program has done it itself.
  public func runService(
    beside services: [any Service] = [],
    bootstrapsLogging: Bool = true
  ) async {
    answerArguments()
    do {
      if try writesManifest(WorkerSettings.ofProcess()) { return }
      let isLate = await Self.fetchesEnvironmentLate()
      // What cannot be served is reported before anything starts.
      let served = try ServedApp(self, .ofProcess(), environmentIsLate: isLate)
      StandardStreams.bufferByLine()
      if bootstrapsLogging { LoggingSystem.bootstrap { Self.logHandler(label: $0) } }
      var configuration = ServiceGroupConfiguration(
        // Whichever service ends, the others stop in order, and running invocations finish first.
        services: (services + [served]).map {
          .init(
            service: $0,
            successTerminationBehavior: .gracefullyShutdownGroup,
            failureTerminationBehavior: .gracefullyShutdownGroup
          )
        },
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: Logger(label: "worker")
      )
      configuration.maximumGracefulShutdownDuration = Self.shutdownTimeMax
      configuration.maximumCancellationDuration = Self.cancellationTimeMax
      let group = ServiceGroup(configuration: configuration)
      try await group.run()
    } catch {
      StandardStreams.exit(reporting: Self.text(error))
    }
  }

  /// Serves the functions as one service of a program's own `ServiceGroup`.
  ///
  /// Reads the environment as `runService(beside:bootstrapsLogging:)` does, but leaves signals,
  /// logging and the end of the process to the program. Returns after a graceful shutdown, once
  /// running invocations have finished, and at once where only a manifest is asked for: let the
  /// group end with it, by the `successTerminationBehavior` `.gracefullyShutdownGroup`. Throws for
  /// bad declarations, settings and addresses, and what a preparation throws.
  public func run() async throws {
    guard try !writesManifest(WorkerSettings.ofProcess()) else { return }
    let isLate = await Self.fetchesEnvironmentLate()
    try await ServedApp(self, .ofProcess(), environmentIsLate: isLate).run()
  }

  /// Longer than draining takes; a service that has not stopped by then is cancelled.
  private static let shutdownTimeMax: Duration = .seconds(20)
  /// After this a service that ignores its cancellation ends with the process.
  private static let cancellationTimeMax: Duration = .seconds(5)

  /// The log handler of a functions binary, whose output Hearth and Cloud Logging can read.
  ///
  /// It writes to standard output. `runService` sets it up; a program that bootstraps swift-log
  /// itself can add it to its own handlers:
  ///
  /// ```swift
  /// LoggingSystem.bootstrap { label in
  ///   MultiplexLogHandler([FunctionsApp.logHandler(label: label), MyLogHandler(label: label)])
  /// }
  /// ```
  public static func logHandler(label: String) -> any LogHandler {
    WorkerLogHandler(
      level: logSettings?.logLevel ?? .info,
      form: logSettings?.credentialMode == .production
        ? .cloudLogging(project: logSettings?.project) { .ofWallClock } : .hearth,
      write: StandardStreams.writeToOutput
    )
  }

  /// The process's settings as of its first logger, because every invocation has a logger of its own.
  ///
  /// Nil for invalid settings, which are reported when the functions are served.
  private static let logSettings = try? WorkerSettings.ofProcess()

  /// Writes the manifest if one is asked for; returns whether it did.
  private func writesManifest(_ settings: WorkerSettings) throws -> Bool {
    guard let path = settings.manifestPath else { return false }
    let json = try manifest().json
    do {
      try Data(json.utf8).write(to: URL(filePath: path))
    } catch {
      throw InvalidSettings("The manifest cannot be written to \(path): \(error)")
    }
    return true
  }

  /// Gets a suite's variables if this process works for one and `main` has not asked for them.
  private static func fetchesEnvironmentLate() async -> Bool {
    guard HubClient(environment: ProcessInfo.processInfo.environment) != nil else { return false }
    return await environmentIsLate()
  }

  private static func text(_ error: any Error) -> String {
    (error as? any StatusConvertible)?.statusMessage ?? "\(error)"
  }
}

extension WorkerSettings {
  /// The settings from this process's environment.
  fileprivate static func ofProcess() throws(InvalidSettings) -> WorkerSettings {
    try WorkerSettings(
      environment: ProcessInfo.processInfo.environment,
      arguments: Array(CommandLine.arguments.dropFirst())
    )
  }
}

extension FunctionsApp: CustomStringConvertible {
  /// What the log of a `ServiceGroup` calls the app.
  public var description: String { "functions" }
}

/// A checked app, as one service of a process.
private struct ServedApp: Service, CustomStringConvertible {
  private let settings: WorkerSettings
  private let environmentIsLate: Bool
  private let host: FunctionHost
  private let manifest: FunctionManifest

  /// What the log of the process calls it; without one it would hold all settings.
  var description: String { "functions" }

  /// Throws `InvalidFunctions`, also when the app lacks the target.
  init(_ app: FunctionsApp, _ settings: WorkerSettings, environmentIsLate: Bool) throws {
    self.settings = settings
    self.environmentIsLate = environmentIsLate
    manifest = try app.manifest()
    host = try FunctionHost(
      app: app,
      target: settings.target,
      signature: settings.signature,
      requestTimeMax: settings.requestTimeMax,
      credentials: CredentialReader(settings),
      tasks: CloudTasksEnqueuer(environment: ProcessInfo.processInfo.environment),
      debugFeatures: settings.debugFeatures
    )
  }

  func run() async throws {
    if settings.endsWithStandardInput { StandardStreams.exitWhenInputEnds() }
    if let mebibytes = settings.memoryMb { MemoryBound.set(mebibytes: mebibytes) }
    let logger = Logger(label: "worker")
    if environmentIsLate {
      logger.warning(
        """
        The suite's variables came after this binary's main had begun; what it has made before \
        does not know them. Let its first line be: let environment = await FunctionsApp.environment()
        """
      )
    }
    do {
      try await cancelWhenGracefulShutdown { try await host.prepare() }
    } catch is CancellationError {
      // The process was told to end before it served anything.
      return
    }
    let wish = AsyncStream<Void>.makeStream()
    let (ports, port) = AsyncStream.makeStream(of: Int.self)
    let server = WorkerServer.service(
      host: host,
      address: settings.address,
      logger: logger,
      onListening: {
        logger.debug("The worker listens", metadata: ["address": "\($0)"])
        port.yield($0.port ?? 0)
      },
      onQuit: settings.hasControlAPI ? { @Sendable in _ = wish.continuation.yield() } : nil
    )
    var services: [ServiceGroupConfiguration.ServiceConfiguration] = [
      .init(service: server),
      .init(
        service: WishToQuit(wishes: wish.stream),
        successTerminationBehavior: .gracefullyShutdownGroup
      ),
    ]
    if let hub = HubClient(environment: ProcessInfo.processInfo.environment) {
      let registration = DebuggerRegistration(
        hub: hub,
        target: settings.target,
        manifest: manifest,
        ports: ports,
        logger: logger
      )
      services.append(.init(service: registration))
    }
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(services: services, logger: logger)
    )
    try await group.run()
  }
}

/// Ends when a client has asked the process to end.
private struct WishToQuit: Service {
  let wishes: AsyncStream<Void>

  func run() async {
    for await _ in wishes.cancelOnGracefulShutdown() { return }
  }
}
