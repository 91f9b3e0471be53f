import HTTPMessages
import Invocation
import Manifests
import NIOCore

/// The forwarding of a callable's event stream to the client.
enum EventStream {
  /// Creates the response that ends a broken stream.
  typealias Ending = @Sendable (any Error) -> GatewayErrorResponse

  /// Returns a body that forwards whole events, and reports a failure as an error event.
  ///
  /// A function that crashes or times out in the middle of a stream cannot report the error itself.
  /// The client would mistake the end of the connection for a network failure.
  static func body(
    of pieces: AsyncThrowingStream<ByteBuffer, any Error>,
    _ ending: @escaping Ending
  ) -> Response.Body {
    .produced { write in
      var frames = EventFrames()
      do {
        for try await piece in pieces {
          if let events = frames.append(piece) { try await write(events) }
        }
        if let rest = frames.rest { try await write(rest) }
      } catch let error as InvocationError {
        // After part of an event, the client could not parse an error event.
        guard frames.canEnd else { throw error }
        try await write(ending(error).frame)
      }
    }
  }
}

/// A buffer that forwards the events of a stream once they are complete.
struct EventFrames {
  /// The size of the largest event that is held back until it is complete.
  ///
  /// A larger event is forwarded as it arrives, so that memory is bounded.
  static let heldBytesMax = FunctionLimits.bodyBytesMax

  private static let lineEnd = UInt8(ascii: "\n")
  private var held = ByteBuffer()
  /// True if the beginning of an event has been forwarded, but not its end.
  private var isMidEvent = false

  /// True if everything forwarded so far consists of complete events.
  var canEnd: Bool { !isMidEvent }

  /// The held bytes, to be forwarded at the end of the stream; nil if there are none.
  var rest: ByteBuffer? { held.readableBytes > 0 ? held : nil }

  /// Processes the next piece; returns the bytes that may be forwarded.
  mutating func append(_ piece: ByteBuffer) -> ByteBuffer? {
    // The end of an event may begin in the last held byte.
    let searched = max(0, held.readableBytes - 1)
    if held.readableBytes == 0 { held = piece } else { held.writeImmutableBuffer(piece) }
    if let length = Self.completeLength(of: held.readableBytesView, after: searched) {
      isMidEvent = false
      return held.readSlice(length: length)
    }
    guard isMidEvent || held.readableBytes > Self.heldBytesMax else { return nil }
    isMidEvent = true
    defer { held.clear() }
    return held
  }

  /// Returns the length up to the end of the last complete event; nil if there is none.
  private static func completeLength(of bytes: ByteBufferView, after searched: Int) -> Int? {
    let start = bytes.startIndex + searched
    var end = bytes.endIndex
    while let last = bytes[start..<end].lastIndex(of: lineEnd), last > start {
      if bytes[last - 1] == lineEnd { return last + 1 - bytes.startIndex }
      end = last
    }
    return nil
  }
}
