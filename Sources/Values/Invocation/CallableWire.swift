package import HTTPTypes
import JSONText
package import NIOCore
package import RuntimeSupport

/// The callable protocol's forms that more than one process writes: streams and errors.
///
/// The worker's answers have these forms, and the gateway's when no worker can answer.
package enum CallableWire {
  /// The type of a stream, which a client that reads one accepts.
  package static let streamType = "text/event-stream"

  /// Whether the caller reads a stream: only this exact text says so, as in Firebase's own servers.
  package static func wantsStream(_ head: HTTPRequest) -> Bool {
    head.headerFields[.accept] == streamType
  }

  /// One event of a stream: a line `data: {…}` and a blank line.
  ///
  /// It has nothing else, because the iOS clients take any other line for damage. `json` must have
  /// no line ends.
  package static func frame(_ json: [UInt8]) -> ByteBuffer {
    var frame = ByteBuffer()
    frame.reserveCapacity(json.count + 8)
    frame.writeStaticString("data: ")
    frame.writeBytes(json)
    frame.writeStaticString("\n\n")
    return frame
  }

  /// The envelope of an error: `{"error": {"details"?, "message", "status"}}`.
  ///
  /// `details` is JSON text.
  package static func error(
    _ code: StatusCode,
    _ message: String,
    details: [UInt8]? = nil
  ) -> [UInt8] {
    var json = Array(#"{"error":{"#.utf8)
    if let details {
      json += #""details":"#.utf8
      json += details
      json += ",".utf8
    }
    json += #""message":\#(jsonQuoted(message)),"status":"\#(code.name)"}}"#.utf8
    return json
  }
}
