package import HTTPTypes
package import NIOCore
import StatusCodes
import Synchronization

/// An HTTP response: of an endpoint, or of a function.
package struct Response: Sendable {
  package var head: HTTPResponse
  package var body: Body
  /// The bytes that a produced body keeps in memory until its end, if they are worth counting.
  package var heldBytes = 0

  package init(head: HTTPResponse, body: Body) {
    self.head = head
    self.body = body
  }

  /// The body: whole if it is small and its length was announced, streamed otherwise.
  package enum Body: Sendable {
    case whole(ByteBuffer)
    /// A body that arrives in pieces; of a function, it throws if the worker dies or
    /// time runs out.
    case stream(AsyncThrowingStream<ByteBuffer, any Error>)
    /// A body produced while it is written: the closure runs the function in the writer's task.
    case produced(@Sendable (_ write: @escaping Write) async throws -> Void)

    /// A function that accepts the next piece of a body and returns when there is room for more.
    package typealias Write = @Sendable (ByteBuffer) async throws -> Void

    /// Returns the whole body; throws `ResponseTooLargeError` if it is longer than `bytesMax`.
    package func collect(upTo bytesMax: Int) async throws -> ByteBuffer {
      switch self {
      case .whole(let buffer): return buffer
      case .stream(let chunks):
        let collected = Collected(bytesMax: bytesMax)
        for try await chunk in chunks { try collected.append(chunk) }
        return collected.bytes
      case .produced(let produce):
        let collected = Collected(bytesMax: bytesMax)
        try await produce { try collected.append($0) }
        return collected.bytes
      }
    }

    private final class Collected: Sendable {
      private let bytesMax: Int
      private let buffer = Mutex(ByteBuffer())

      init(bytesMax: Int) {
        self.bytesMax = bytesMax
      }

      var bytes: ByteBuffer { buffer.withLock { $0 } }

      func append(_ chunk: ByteBuffer) throws {
        try buffer.withLock { buffer in
          guard buffer.readableBytes + chunk.readableBytes <= bytesMax else {
            throw ResponseTooLargeError(bytesMax: bytesMax)
          }
          buffer.writeImmutableBuffer(chunk)
        }
      }
    }
  }
}
