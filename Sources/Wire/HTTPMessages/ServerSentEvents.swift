package import HTTPTypes
package import NIOCore

/// The form of event streams: of a callable's chunks and of the Realtime Database's changes.
///
/// A callable's stream is usually written by the worker, and by the gateway if no worker can.
package enum ServerSentEvents {
  /// The media type of the stream, also in the `Accept` header of a client that reads it.
  package static let mediaType = "text/event-stream"

  /// Returns true if the caller wants a stream.
  ///
  /// The `Accept` header must be exactly `mediaType`, as in Firebase's own servers.
  package static func areWanted(by head: HTTPRequest) -> Bool {
    head.headerFields[.accept] == mediaType
  }

  /// Returns one event: a line with its name if it has one, a line `data: {…}` and a blank line.
  ///
  /// There are no other lines, because the iOS client treats them as corruption. `json` must not
  /// contain line breaks.
  package static func frame(_ json: [UInt8], event name: String? = nil) -> ByteBuffer {
    var frame = ByteBuffer()
    frame.reserveCapacity(json.count + 32)
    if let name { frame.writeString("event: \(name)\n") }
    frame.writeStaticString("data: ")
    frame.writeBytes(json)
    frame.writeStaticString("\n\n")
    return frame
  }
}
