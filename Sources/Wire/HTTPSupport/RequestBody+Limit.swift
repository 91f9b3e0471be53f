import HTTPTypes
package import HummingbirdCore
package import NIOCore
package import RuntimeSupport

/// A request's body is longer than the door accepts.
///
/// As it is, a client sees `INVALID_ARGUMENT` and 400, which no client retries; a door with another
/// answer (callables: 413) catches it.
package struct BodyTooLarge: StatusConvertible, CustomStringConvertible, Equatable {
  package var bytesMax: Int

  /// The error for a body longer than `bytesMax`.
  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  package var statusCode: StatusCode { .invalidArgument }
  package var statusMessage: String {
    "Request payload size exceeds the limit: \(bytesMax) bytes."
  }
  package var description: String { statusMessage }
}

extension Request {
  /// The announced length of the body, or nil.
  package var contentLength: Int? {
    headers[.contentLength].flatMap { Int($0) }
  }

  /// The whole body; throws `BodyTooLarge`, without reading if the announced length is too large.
  ///
  /// A body can be read only once.
  package func wholeBody(upTo bytesMax: Int) async throws -> ByteBuffer {
    if let announced = contentLength, announced > bytesMax {
      throw BodyTooLarge(bytesMax: bytesMax)
    }
    var collected = ByteBuffer()
    for try await var chunk in body {
      guard collected.readableBytes + chunk.readableBytes <= bytesMax else {
        throw BodyTooLarge(bytesMax: bytesMax)
      }
      if collected.readableBytes == 0 {
        collected = chunk
      } else {
        collected.writeBuffer(&chunk)
      }
    }
    return collected
  }
}
