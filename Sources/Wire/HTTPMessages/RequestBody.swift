package import NIOCore

/// The body of a request: whole if its length was announced and small, streamed otherwise.
package enum RequestBody: Sendable {
  case whole(ByteBuffer)
  /// A body for one reader, once; throws if the client disconnects or sends too much.
  case stream(AsyncThrowingStream<ByteBuffer, any Error>)
}
