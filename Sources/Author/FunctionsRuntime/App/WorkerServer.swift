package import HTTPSupport
import HTTPTypes
import HummingbirdCore
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
      configuration: HTTPService.Configuration(drainTimeMax: drainTimeMax),
      logger: logger,
      onListening: onListening,
      short: host
    ) { request, context in
      if let onQuit, request.uri.path == "/__/quitquitquit" {
        onQuit()
        return Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "ok\n")))
      }
      var upload: RequestUpload?
      let reply: InvocationReply
      do {
        let body: InvocationRequest.Body
        if host.streamsBody(of: request.head) {
          (body, upload) = try await request.upload(upTo: InvocationLimits.uploadBytesMax)
        } else {
          body = .whole(try await request.wholeBody(upTo: InvocationLimits.bodyBytesMax))
        }
        reply = await context.client.whileConnected {
          await host.respond(to: request.head, body: body)
        }
      } catch is BodyTooLarge {
        reply = host.refuseTooLarge(request.head)
      }
      return Response(reply, for: context.client, on: context.channel.eventLoop)
        .closing(upload, context)
    }
  }
}
