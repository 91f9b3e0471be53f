import DocumentModel
import HTTPSupport
import Identity
public import Logging
import Manifests
public import ServiceLifecycle
import StatusCodes
import UnixSignals

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension FunctionsApp: Service {
  /// Serves the functions until the process receives a signal to end.
  ///
  /// Call it in the last line of a functions binary:
  ///
  /// ```swift
  /// let environment = await FunctionsApp.environment()
  /// let firestore = Firestore(environment: environment)
  /// await ChatFunctions(firestore: firestore).app.runService()
  /// ```
  ///
  /// Pass services that the functions need, such as a connection pool, as `services`. They start
  /// before the functions and stop after them, in reverse order. A process that only writes its
  /// manifest does not start them.
  ///
  /// These environment variables configure the process:
  ///
  /// - `FUNCTION_TARGET`: the only function to serve, at every path. Without it each function is
  ///   served below its name.
  /// - `HEARTH_SOCKET` or `PORT`: the Unix socket or the port to listen on.
  /// - `HEARTH_HUB`: the hub of a running suite to work for; see `environment()`.
  /// - `FUNCTIONS_EMULATOR`: with `true` tokens are accepted without verification, as emulators
  ///   issue them.
  /// - `GCLOUD_PROJECT`, `GOOGLE_CLOUD_PROJECT` or `FIREBASE_CONFIG`: the project whose tokens are
  ///   accepted otherwise.
  /// - `LOG_LEVEL`: the lowest level that is logged.
  /// - `FUNCTION_SIGNATURE_TYPE`: the signature that the platform uses for the target.
  /// - `CLOUD_RUN_TIMEOUT_SECONDS`: the time after which a request without a response gets 504.
  /// - `FUNCTIONS_MANIFEST_OUTPUT_PATH`: the path of a manifest to write. The process then ends at
  ///   once.
  /// - `FUNCTIONS_CONTROL_API`: with `true` the process ends when it receives a request for
  ///   `/__/quitquitquit`.
  ///
  /// The flags `--port`, `--target` and `--signature-type` take precedence over their variables.
  /// `--help` prints the functions and these variables and ends with status 0. Any other argument
  /// ends the process with status 2. A program with its own arguments can serve with `run()`, which
  /// ignores arguments that it does not know.
  ///
  /// On `SIGTERM` and `SIGINT` the app stops accepting requests, lets running invocations finish,
  /// and returns. An error ends the process with status 1 and a message on standard error that says
  /// what to change. Examples are an invalid declaration, setting or address, and a failed
  /// preparation.
  ///
  /// - Parameters:
  ///   - services: Services that run around the functions, in the order in which they start.
  ///   - bootstrapsLogging: True to set up swift-log with `logHandler(label:)`. Pass false if the
  ///     program sets up swift-log itself.
  public func runService(
    beside services: [any Service] = [],
    bootstrapsLogging: Bool = true
  ) async {
    answerArguments()
    do {
      if try writesManifest(WorkerSettings.ofProcess()) { return }
      let isLate = await Self.fetchesEnvironmentLate()
      // Problems with the functions are reported before anything starts.
      let served = try ServedApp(self, .ofProcess(), environmentIsLate: isLate)
      StandardStreams.bufferByLine()
      if bootstrapsLogging { LoggingSystem.bootstrap { Self.logHandler(label: $0) } }
      var configuration = ServiceGroupConfiguration(
        // When any service ends, the others stop in order, after running invocations have finished.
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
      StandardStreams.exit(reporting: StatusError.message(of: error))
    }
  }

  /// Serves the functions as one service of a program's own `ServiceGroup`.
  ///
  /// It reads the environment like `runService(beside:bootstrapsLogging:)`, but leaves signals,
  /// logging and the end of the process to the program. It returns after a graceful shutdown, once
  /// running invocations have finished. If only a manifest is requested, it returns as soon as the
  /// manifest is written. Give the service the `successTerminationBehavior`
  /// `.gracefullyShutdownGroup`, so that the group ends with it.
  ///
  /// Throws for invalid declarations, settings and addresses, and rethrows the error of a
  /// preparation.
  public func run() async throws {
    guard try !writesManifest(WorkerSettings.ofProcess()) else { return }
    let isLate = await Self.fetchesEnvironmentLate()
    try await ServedApp(self, .ofProcess(), environmentIsLate: isLate).run()
  }

  /// The time limit of a graceful shutdown, longer than draining takes.
  ///
  /// A service that has not stopped by then is cancelled.
  private static let shutdownTimeMax: Duration = .seconds(20)
  /// The time limit of cancellation.
  ///
  /// A service that ignores its cancellation ends with the process.
  private static let cancellationTimeMax: Duration = .seconds(5)

  /// Returns the log handler of a functions binary, whose output Hearth and Cloud Logging can read.
  ///
  /// The handler writes to standard output. `runService` installs it. A program that bootstraps
  /// swift-log itself can add it to its own handlers:
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

  /// The settings of the process, read once because every invocation creates a logger.
  ///
  /// Nil if the settings are invalid. The error is reported when the functions are served.
  private static let logSettings = try? WorkerSettings.ofProcess()

  /// Writes the manifest if the settings request it; returns true if it did.
  private func writesManifest(_ settings: WorkerSettings) throws -> Bool {
    guard let path = settings.manifestPath else { return false }
    let json = try manifest().json
    do {
      try Data(json.utf8).write(to: URL(filePath: path))
    } catch {
      throw InvalidSettingsError("The manifest cannot be written to \(path): \(error)")
    }
    return true
  }

  /// Fetches a suite's variables if this process works for a suite and `main` has not fetched them.
  private static func fetchesEnvironmentLate() async -> Bool {
    guard HubClient(environment: ProcessInfo.processInfo.environment) != nil else { return false }
    return await environmentIsLate()
  }
}

extension WorkerSettings {
  /// Reads the settings from the flags and the environment of this process.
  fileprivate static func ofProcess() throws(InvalidSettingsError) -> WorkerSettings {
    try WorkerSettings(
      environment: ProcessInfo.processInfo.environment,
      arguments: Array(CommandLine.arguments.dropFirst())
    )
  }
}

extension FunctionsApp: CustomStringConvertible {
  /// The name of the app in the log of a `ServiceGroup`.
  public var description: String { "functions" }
}

/// A checked app as one service of a process.
private struct ServedApp: Service, CustomStringConvertible {
  private let settings: WorkerSettings
  private let environmentIsLate: Bool
  private let host: FunctionHost
  private let manifest: FunctionManifest

  /// The name in the log of the process.
  ///
  /// The default description would contain all settings.
  var description: String { "functions" }

  /// Throws `InvalidFunctionsError` if the app is invalid or lacks the target.
  init(_ app: FunctionsApp, _ settings: WorkerSettings, environmentIsLate: Bool) throws {
    self.settings = settings
    self.environmentIsLate = environmentIsLate
    manifest = try app.manifest()
    if settings.credentialMode == .emulator { FailureRecorder.captureStacks() }
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
      // The process received a signal to end before it served any request.
      return
    }
    let wish = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let (ports, port) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
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

/// A service that ends when a client asks the process to end.
private struct WishToQuit: Service {
  let wishes: AsyncStream<Void>

  func run() async {
    for await _ in wishes.cancelOnGracefulShutdown() { return }
  }
}
