import Invocation
import NIOCore

/// A callable's event stream on its way to the client.
enum EventStream {
  /// The answer for a stream that breaks off.
  typealias Ending = @Sendable (any Error) -> OwnAnswer

  /// A body that passes on whole events, and ends with an error event when the function fails.
  ///
  /// A function that crashes or runs out of time in mid-stream cannot say so itself, and a client
  /// would take the end of the connection for a network failure.
  static func body(
    of pieces: AsyncThrowingStream<ByteBuffer, any Error>,
    _ ending: @escaping Ending
  ) -> InvocationReply.Body {
    .produced { write in
      var frames = EventFrames()
      do {
        for try await piece in pieces {
          if let whole = frames.append(piece) { try await write(whole) }
        }
        if let rest = frames.rest { try await write(rest) }
      } catch let error as InvocationError {
        // Half an event is already out: a client would understand nothing after it.
        guard frames.canEnd else { throw error }
        try await write(ending(error).frame)
      }
    }
  }
}

/// Passes on events of a stream once they are whole.
struct EventFrames {
  // The longest event held; a longer one is passed on as it comes, so that memory is bounded.
  static let heldBytesMax = InvocationLimits.bodyBytesMax

  private static let lineEnd = UInt8(ascii: "\n")
  private var held = ByteBuffer()
  private var isInPieces = false

  /// Whether everything passed on so far is whole events.
  var canEnd: Bool { !isInPieces }

  /// The held bytes, for when no more come.
  var rest: ByteBuffer? { held.readableBytes > 0 ? held : nil }

  /// Takes the next piece; returns what may be passed on.
  mutating func append(_ piece: ByteBuffer) -> ByteBuffer? {
    // An event's end may have begun in the last held byte.
    let searched = max(0, held.readableBytes - 1)
    if held.readableBytes == 0 { held = piece } else { held.writeImmutableBuffer(piece) }
    if let length = Self.wholeBytes(of: held.readableBytesView, after: searched) {
      isInPieces = false
      return held.readSlice(length: length)
    }
    guard isInPieces || held.readableBytes > Self.heldBytesMax else { return nil }
    isInPieces = true
    defer { held.clear() }
    return held
  }

  /// The length up to the end of the last whole event, or nil when there is none.
  private static func wholeBytes(of bytes: ByteBufferView, after searched: Int) -> Int? {
    let start = bytes.startIndex + searched
    var end = bytes.endIndex
    while let last = bytes[start..<end].lastIndex(of: lineEnd), last > start {
      if bytes[last - 1] == lineEnd { return last + 1 - bytes.startIndex }
      end = last
    }
    return nil
  }
}
