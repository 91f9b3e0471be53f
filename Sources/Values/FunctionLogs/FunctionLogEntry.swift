/// One log line from a function or its worker.
package struct FunctionLogEntry: Sendable, Codable, Hashable {
  /// The time at which the server read the line, in RFC 3339.
  package var time: String
  package var function: String
  /// The name of a log level, such as `info` or `error`.
  package var level: String
  package var message: String
  /// The id of the invocation that the line belongs to, if the line contains one.
  package var invocation: String?
  /// The id of the invocation's trace, if the line contains one.
  package var trace: String?
  package var metadata: [String: String]
  /// The end of the invocation that the line reports; nil for lines of functions and workers.
  package var end: InvocationEnd?

  package init(
    time: String,
    function: String,
    level: String,
    message: String,
    invocation: String? = nil,
    trace: String? = nil,
    metadata: [String: String] = [:],
    end: InvocationEnd? = nil
  ) {
    self.trace = trace
    self.time = time
    self.function = function
    self.level = level
    self.message = message
    self.invocation = invocation
    self.metadata = metadata
    self.end = end
  }
}
