import DocumentModel
import HTTPSupport
import Identity
import Invocation
import Logging
import RuntimeSupport
import ServiceLifecycle
import UnixSignals

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension FunctionsApp {
  /// Serves the functions until the process is told to end; the last line of a functions binary.
  ///
  /// The one place that reads the environment: `FUNCTION_TARGET` picks one function for every path
  /// (without it each is served below its name), `HEARTH_SOCKET` or `PORT` says where to listen,
  /// `HEARTH_HUB` which running suite to work for (see `environment()`),
  /// `FUNCTIONS_EMULATOR=true` that tokens are the emulator's, `GCLOUD_PROJECT`,
  /// `GOOGLE_CLOUD_PROJECT` or `FIREBASE_CONFIG` whose tokens are accepted otherwise, `LOG_LEVEL`
  /// what is logged, `FUNCTION_SIGNATURE_TYPE` what the platform takes the target for,
  /// `CLOUD_RUN_TIMEOUT_SECONDS` when a request without an answer gets 504. With
  /// `FUNCTIONS_MANIFEST_OUTPUT_PATH` it writes the manifest there and ends at once, with
  /// `FUNCTIONS_CONTROL_API=true` it ends when `/__/quitquitquit` is asked for.
  ///
  /// On `SIGTERM` and `SIGINT` it stops accepting, lets running invocations finish and returns. Bad
  /// declarations, settings and addresses end the process with status 1 and say on standard error
  /// what to change. It sets up swift-log for the process, so no one else may.
  public func run() async throws {
    do {
      let hub = HubClient(environment: ProcessInfo.processInfo.environment)
      let isLate = hub == nil ? false : await FunctionsApp.environmentIsLate()
      try await run(
        WorkerSettings(environment: ProcessInfo.processInfo.environment),
        hub,
        environmentIsLate: isLate
      )
    } catch let error as any StartUpError {
      StandardStreams.exit(reporting: "\(error)")
    } catch let error as ListenError {
      StandardStreams.exit(reporting: error.statusMessage)
    }
  }

  private func run(
    _ settings: WorkerSettings,
    _ hub: HubClient?,
    environmentIsLate: Bool
  ) async throws {
    if let path = settings.manifestPath {
      let json = try manifest().json
      do {
        try Data(json.utf8).write(to: URL(filePath: path))
      } catch {
        throw InvalidSettings("The manifest cannot be written to \(path): \(error)")
      }
      return
    }
    StandardStreams.bufferByLine()
    LoggingSystem.bootstrap { _ in
      WorkerLogHandler(
        level: settings.logLevel,
        form: settings.credentialMode == .emulator
          ? .hearth
          : .cloudLogging(project: settings.project) { .ofWallClock },
        write: StandardStreams.writeToOutput
      )
    }
    let host = try FunctionHost(
      app: self,
      target: settings.target,
      signature: settings.signature,
      requestTimeMax: settings.requestTimeMax,
      credentials: CredentialReader(settings),
      tasks: CloudTasksEnqueuer(environment: ProcessInfo.processInfo.environment),
      debugFeatures: settings.debugFeatures
    )
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
    if let hub {
      let registration = DebuggerRegistration(
        hub: hub,
        target: settings.target,
        manifest: try manifest(),
        ports: ports,
        logger: logger
      )
      services.append(.init(service: registration))
    }
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: services,
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: logger
      )
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

/// An error that is told on standard error instead of as a crash.
private protocol StartUpError: Error {}

extension InvalidFunctions: StartUpError {}
extension InvalidSettings: StartUpError {}
