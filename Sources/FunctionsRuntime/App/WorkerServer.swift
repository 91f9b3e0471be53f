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
  /// with the real port. `onQuit` is called when a client asks the process to end, at the address
  /// that Firebase's deploying tool uses; nil takes no such wish.
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
        if host.streamsBody(of: request.head) {
          let body = try await request.upload(upTo: FunctionHost.uploadBytesMax)
          upload = body.stream
          let pieces = body.stream.map { InvocationRequest.Body.stream($0.pieces) }
          reply = await context.client.whileConnected {
            await host.respond(to: request.head, body: pieces ?? .whole(body.whole))
          }
        } else {
          let body = try await request.wholeBody(upTo: FunctionHost.bodyBytesMax)
          reply = await context.client.whileConnected {
            await host.respond(to: request.head, body: body)
          }
        }
      } catch is BodyTooLarge {
        reply = host.refuseTooLarge(request.head)
      }
      return response(reply, context.client, on: context.channel.eventLoop)
        .closing(upload, context)
    }
  }

  static func response(
    _ reply: InvocationReply,
    _ client: ClientWatch,
    on eventLoop: (any EventLoop)? = nil
  ) -> Response {
    let body: ResponseBody =
      switch reply.body {
      case .whole(let buffer): ResponseBody(byteBuffer: buffer)
      case .stream(let chunks): ResponseBody(asyncSequence: chunks)
      case .produced(let produce): ResponseBody(producing: produce, for: client, on: eventLoop)
      }
    return Response(status: reply.head.status, headers: reply.head.headerFields, body: body)
  }
}
