import JSONText
package import StatusCodes

/// The response body that reports an error to a callable's client.
package enum CallableErrorEnvelope {
  /// Returns the text `{"error": {"details"?, "message", "status"}}`; `details` is JSON text.
  package static func json(
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
