package import HTTPTypes
package import NIOCore

/// The event stream in which a callable sends its chunks, its result and its error.
///
/// The worker writes it, and the gateway where no worker can.
package enum ServerSentEvents {
  /// The type that a client accepts when it reads a stream, and the type of the stream.
  package static let mediaType = "text/event-stream"

  /// Whether the caller reads a stream: only this exact text says so, as in Firebase's own servers.
  package static func areWanted(by head: HTTPRequest) -> Bool {
    head.headerFields[.accept] == mediaType
  }

  /// One event: a line `data: {…}` and a blank line.
  ///
  /// It has no other lines, because the iOS client takes them for damage. `json` has no line ends.
  package static func frame(_ json: [UInt8]) -> ByteBuffer {
    var frame = ByteBuffer()
    frame.reserveCapacity(json.count + 8)
    frame.writeStaticString("data: ")
    frame.writeBytes(json)
    frame.writeStaticString("\n\n")
    return frame
  }
}
