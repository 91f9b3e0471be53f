import HTTPMessages
package import HTTPSupport
import HTTPTypes
package import Logging
import Manifests
import NIOCore

/// The HTTP server around a `FunctionHost`.
package enum WorkerServer {
  // Cloud Run kills the process ten seconds after SIGTERM. Work that takes longer is lost either
  // way.
  private static let drainTimeMax: Duration = .seconds(9)

  /// Returns a service that responds to requests with the host's functions.
  ///
  /// When a client disconnects, the task of its request is cancelled. `onListening` receives the
  /// address with the actual port. `onQuit` is called when a client requests `/__/quitquitquit`.
  /// Firebase's deployment tool ends the process this way. With nil the process does not end on
  /// such requests.
  package static func service(
    host: FunctionHost,
    address: ServerAddress,
    logger: Logger,
    onListening: @escaping @Sendable (ServerAddress) async -> Void = { _ in },
    onQuit: (@Sendable () -> Void)? = nil
  ) -> HTTPService {
    HTTPService(
      address: address,
      configuration: HTTPService.Configuration(
        // The Hearth server enforces its own rate limit on the bodies that it passes on.
        bodyRateMin: 0,
        // The Hearth server sends nothing more on a connection whose call it has abandoned.
        halfCloseTimeMax: nil,
        drainTimeMax: drainTimeMax
      ),
      logger: logger,
      onListening: onListening
    ) { request, context in
      if let onQuit, request.path == "/__/quitquitquit" {
        onQuit()
        return .text("ok\n")
      }
      let body: RequestBody
      do {
        if host.streamsBody(of: request.head) {
          body = try request.boundedBody(upTo: FunctionLimits.uploadBytesMax).body
        } else {
          body = .whole(try await request.wholeBody(upTo: FunctionLimits.bodyBytesMax))
        }
      } catch is BodyTooLargeError {
        return host.refuseTooLarge(request.head)
      }
      return await context.client.whileConnected {
        await host.respond(to: request.head, body: body)
      }
    }
  }
}
