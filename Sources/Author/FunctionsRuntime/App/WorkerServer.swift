package import HTTPSupport
import HTTPTypes
import Invocation
package import Logging
import NIOCore

/// The HTTP server around a `FunctionHost`.
package enum WorkerServer {
  // Cloud Run kills ten seconds after SIGTERM; work that lasts longer is lost either way.
  private static let drainTimeMax: Duration = .seconds(9)

  /// A service that answers requests with the host's functions.
  ///
  /// When a client goes away, the task of its request is cancelled. `onListening` gets the address
  /// with the real port. `onQuit` is called when a client asks the process to end, at the address
  /// that Firebase's deploying tool uses; with nil the process ignores such requests.
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
        // The server has its own limit for the bodies that it passes on.
        bodyRateMin: 0,
        // The server sends no more on a connection whose call it has given up.
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
      let body: InvocationRequest.Body
      do {
        if host.streamsBody(of: request.head) {
          body = try request.boundedBody(upTo: InvocationLimits.uploadBytesMax).body
        } else {
          body = .whole(try await request.wholeBody(upTo: InvocationLimits.bodyBytesMax))
        }
      } catch is BodyTooLarge {
        return host.refuseTooLarge(request.head)
      }
      return await context.client.whileConnected {
        await host.respond(to: request.head, body: body)
      }
    }
  }
}
