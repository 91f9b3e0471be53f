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
  /// `FUNCTIONS_EMULATOR=true` that tokens are the emulator's, `LOG_LEVEL` what is logged. With
  /// `FUNCTIONS_MANIFEST_OUTPUT_PATH` it writes the manifest there and ends at once.
  ///
  /// On `SIGTERM` and `SIGINT` it stops accepting, lets running invocations finish and returns. Bad
  /// declarations, settings and addresses end the process with status 1 and say on standard error
  /// what to change. It sets up swift-log for the process, so no one else may.
  public func run() async throws {
    do {
      try await run(WorkerSettings(environment: ProcessInfo.processInfo.environment))
    } catch let error as any StartUpError {
      StandardStreams.exit(reporting: "\(error)")
    } catch let error as ListenError {
      StandardStreams.exit(reporting: error.statusMessage)
    }
  }

  private func run(_ settings: WorkerSettings) async throws {
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
      WorkerLogHandler(level: settings.logLevel, write: StandardStreams.writeToOutput)
    }
    let host = try FunctionHost(
      app: self,
      target: settings.target,
      credentials: CredentialReader(mode: settings.credentialMode)
    )
    if settings.endsWithStandardInput { StandardStreams.exitWhenInputEnds() }
    let logger = Logger(label: "worker")
    let server = WorkerServer.service(host: host, address: settings.address, logger: logger) {
      logger.debug("The worker listens", metadata: ["address": "\($0)"])
    }
    let group = ServiceGroup(
      services: [server],
      gracefulShutdownSignals: [.sigterm, .sigint],
      logger: logger
    )
    try await group.run()
  }
}

/// An error that is told on standard error instead of as a crash.
private protocol StartUpError: Error {}

extension InvalidFunctions: StartUpError {}
extension InvalidSettings: StartUpError {}
