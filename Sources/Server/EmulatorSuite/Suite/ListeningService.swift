import HTTPSupport
import Logging
import ServiceLifecycle
import StatusCodes

/// A service with a port; if the port is taken, the error names the flag to choose another.
struct ListeningService: Service {
  let name: SuiteService
  let body: HTTPService
  /// The service to run if the port is taken; nil if no other port may be used.
  let elsewhere: HTTPService?
  let logger: Logger

  func run() async throws {
    do {
      try await body.run()
    } catch let error as ListenError where error.reason == .inUse {
      if let elsewhere {
        logger.notice(
          "An address is in use, so its service takes a free port",
          metadata: ["address": "\(error.address)", "service": "\(name.title)"]
        )
        return try await elsewhere.run()
      }
      throw StatusError(
        error.statusCode,
        "\(error.address) is in use by another program, so \(name.title) cannot listen there; "
          + "stop that program, or choose another port with --\(name.rawValue)-port (0 takes a "
          + "free one)."
      )
    }
  }
}
