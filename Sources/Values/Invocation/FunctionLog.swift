/// One line that a function or its worker wrote.
package struct FunctionLogEntry: Sendable, Codable, Hashable {
  /// The time at which the server read the line, in RFC 3339.
  package var time: String
  package var function: String
  /// The name of a log level, such as `info` or `error`.
  package var level: String
  package var message: String
  /// The invocation that the line belongs to, if the line says so.
  package var invocation: String?
  /// The id of the trace that the invocation belongs to, if the line says so.
  package var trace: String?
  package var metadata: [String: String]

  /// A line as the log keeps it.
  package init(
    time: String,
    function: String,
    level: String,
    message: String,
    invocation: String? = nil,
    trace: String? = nil,
    metadata: [String: String] = [:]
  ) {
    self.trace = trace
    self.time = time
    self.function = function
    self.level = level
    self.message = message
    self.invocation = invocation
    self.metadata = metadata
  }
}

/// The JSON line by which a worker's `FunctionsRuntime` reports to the server on stdout.
///
/// A line without this form is the function's own output and is logged as it stands.
package struct WorkerLogLine: Codable, Sendable, Hashable {
  /// Google Cloud's severity: `DEBUG`, `INFO`, `NOTICE`, `WARNING`, `ERROR`, `CRITICAL`.
  package var severity: String
  package var message: String
  /// The invocation's id, under the label that Cloud Logging shows.
  package var executionID: String?
  /// The id of the trace that the invocation belongs to, for Hearth's server.
  package var trace: String?
  package var metadata: [String: String]?

  /// A line to be encoded with `JSONEncoder` and followed by a newline.
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
