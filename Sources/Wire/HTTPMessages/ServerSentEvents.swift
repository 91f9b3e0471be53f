package import HTTPTypes
package import NIOCore

/// The event stream in which a callable sends its chunks, its result and its error.
///
/// Usually the worker writes the stream; the gateway writes it if no worker can.
package enum ServerSentEvents {
  /// The media type of the stream, also in the `Accept` header of a client that reads it.
  package static let mediaType = "text/event-stream"

  /// Returns true if the caller wants a stream.
  ///
  /// The `Accept` header must be exactly `mediaType`, as in Firebase's own servers.
  package static func areWanted(by head: HTTPRequest) -> Bool {
    head.headerFields[.accept] == mediaType
  }

  /// Returns one event: a line `data: {…}` and a blank line.
  ///
  /// There are no other lines, because the iOS client treats them as corruption. `json` must not
  /// contain line breaks.
  package static func frame(_ json: [UInt8]) -> ByteBuffer {
    var frame = ByteBuffer()
    frame.reserveCapacity(json.count + 8)
    frame.writeStaticString("data: ")
    frame.writeBytes(json)
    frame.writeStaticString("\n\n")
    return frame
  }
}
