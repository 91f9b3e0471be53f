/// The JSON line that a worker's `FunctionsRuntime` writes to stdout as a log entry for the server.
///
/// A line in any other form is the function's own output and is logged unchanged.
package struct WorkerLogLine: Codable, Sendable, Hashable {
  /// Google Cloud's severity: `DEBUG`, `INFO`, `NOTICE`, `WARNING`, `ERROR`, `CRITICAL`.
  package var severity: String
  package var message: String
  /// The invocation's id, under the label that Cloud Logging displays.
  package var executionID: String?
  /// The id of the invocation's trace, for Hearth's server.
  package var trace: String?
  package var metadata: [String: String]?

  /// Creates a line, to be encoded as JSON and followed by a newline.
  package init(
    severity: String,
    message: String,
    executionID: String?,
    trace: String? = nil,
    metadata: [String: String]? = nil
  ) {
    self.trace = trace
    self.severity = severity
    self.message = message
    self.executionID = executionID
    self.metadata = metadata
  }

  private enum CodingKeys: String, CodingKey {
    case severity, message, trace, metadata
    case executionID = "execution_id"
  }
}
