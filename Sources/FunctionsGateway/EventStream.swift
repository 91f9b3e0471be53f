import HTTPSupport
import HummingbirdCore
import Invocation
import NIOCore

/// A callable's event stream on its way to the client.
enum EventStream {
  /// What is told when the stream breaks off.
  typealias Ending = @Sendable (any Error) -> OwnAnswer

  /// A body that passes whole events on, and ends with an error event where the function cannot.
  ///
  /// A function that crashes or runs out of time in mid-stream cannot say so itself, and a client
  /// would take the end of the connection for a network failure.
  static func body(
    of pieces: AsyncThrowingStream<ByteBuffer, any Error>,
    _ client: ClientWatch,
    _ ending: @escaping Ending
  ) -> ResponseBody {
    ResponseBody { writer in
      var frames = EventFrames()
      do {
        while let piece = try await client.whileConnected({ try await pieces.nextElement() }) {
          if let whole = frames.append(piece) { try await writer.write(whole) }
        }
        if let rest = frames.rest { try await writer.write(rest) }
      } catch let error as InvocationError {
        // Half an event is out already: nothing can follow it that a client would understand.
        guard frames.canEnd else { throw error }
        try await writer.write(ending(error).frame)
      }
      try await writer.finish(nil)
    }
  }
}

/// Lets events of a stream through once they are whole.
struct EventFrames {
  // An event beyond this is passed on as it comes, so that memory is bounded.
  static let heldBytesMax = 10 << 20

  private static let lineEnd = UInt8(ascii: "\n")
  private var held = ByteBuffer()
  private var isInPieces = false

  /// Whether all that was let through are whole events.
  var canEnd: Bool { !isInPieces }

  /// What is held, when no more comes.
  var rest: ByteBuffer? { held.readableBytes > 0 ? held : nil }

  /// Takes the next piece; returns what may be passed on.
  mutating func append(_ piece: ByteBuffer) -> ByteBuffer? {
    // An event's end may have begun in the last byte that is held.
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

  /// The length up to the end of the last event, or nil without one.
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
