import HTTPTypes
package import HummingbirdCore
package import Invocation
package import NIOCore

extension Response {
  /// A function's reply as the server sends it.
  ///
  /// The invocation is cancelled when the client goes away, even while the function is silent. With
  /// `eventLoop`, each piece of a produced body is with the system before the next is asked for: a
  /// process that dies then has still sent the piece.
  package init(
    _ reply: InvocationReply,
    for client: ClientWatch,
    on eventLoop: (any EventLoop)? = nil
  ) {
    let head = reply.head
    let length = head.headerFields[.contentLength].flatMap(Int.init)
    let body: ResponseBody =
      switch reply.body {
      case .whole(let buffer): ResponseBody(byteBuffer: buffer)
      case .produced(let produce):
        ResponseBody(contentLength: length, producing: produce, for: client, on: eventLoop)
      case .stream(let pieces):
        ResponseBody(contentLength: length) { writer in
          // Only the watch notices that a client has left while the function is silent.
          while let piece = try await client.whileConnected({ try await pieces.nextElement() }) {
            try await writer.write(piece)
          }
          try await writer.finish(nil)
        }
      }
    self.init(status: head.status, headers: head.headerFields, body: body)
  }
}

extension AsyncThrowingStream where Element: Sendable, Failure == any Error {
  /// The next element; every iterator of such a stream takes from the same source.
  package func nextElement() async throws -> Element? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }
}
