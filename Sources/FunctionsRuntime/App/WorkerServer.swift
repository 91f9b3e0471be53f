package import HTTPSupport
import HTTPTypes
import HummingbirdCore
import Invocation
package import Logging
import NIOCore

/// The HTTP server around a `FunctionHost`.
package enum WorkerServer {
  // Cloud Run kills ten seconds after SIGTERM; what runs on then is lost either way.
  private static let drainTimeMax: Duration = .seconds(9)

  /// A service that answers requests with the host's functions.
  ///
  /// When a client goes away, the task of its request is cancelled. `onListening` gets the address
  /// with the real port.
  package static func service(
    host: FunctionHost,
    address: ServerAddress,
    logger: Logger,
    onListening: @escaping @Sendable (ServerAddress) async -> Void = { _ in }
  ) -> HTTPService {
    HTTPService(
      address: address,
      configuration: HTTPService.Configuration(drainTimeMax: drainTimeMax),
      logger: logger,
      onListening: onListening
    ) { request, context in
      let body: ByteBuffer
      do {
        body = try await request.wholeBody(upTo: FunctionHost.bodyBytesMax)
      } catch is BodyTooLarge {
        return response(host.refuseTooLarge(request.head))
      }
      return response(
        await context.client.whileConnected {
          await host.respond(to: request.head, body: body)
        }
      )
    }
  }

  private static func response(_ reply: InvocationReply) -> Response {
    let body: ResponseBody =
      switch reply.body {
      case .whole(let buffer): ResponseBody(byteBuffer: buffer)
      case .stream(let chunks): ResponseBody(asyncSequence: chunks)
      }
    return Response(status: reply.head.status, headers: reply.head.headerFields, body: body)
  }
}
