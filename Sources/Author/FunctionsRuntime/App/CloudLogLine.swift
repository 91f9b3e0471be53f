import FunctionLogs

/// A log line in the JSON format of Cloud Logging, which a worker in production writes to stdout.
///
/// The keys are the ones that Cloud Logging defines. It groups the lines of one request by their
/// trace.
struct CloudLogLine: Encodable {
  var severity: String
  var message: String
  /// The time in RFC 3339 format.
  var time: String
  /// The full name of the trace, `projects/P/traces/T`.
  var trace: String?
  var spanID: String?
  var isSampled: Bool?
  var labels: [String: String]?
  var metadata: [String: String]?

  init(
    _ line: WorkerLogLine,
    time: String,
    trace: TraceContext?,
    project: String?
  ) {
    severity = line.severity
    message = line.message
    metadata = line.metadata
    self.time = time
    labels = line.executionID.map { ["execution_id": $0] }
    guard let trace, let project else { return }
    self.trace = "projects/\(project)/traces/\(trace.traceID)"
    spanID = trace.spanID
    isSampled = trace.isSampled
  }

  private enum CodingKeys: String, CodingKey {
    case severity, message, time, metadata
    case trace = "logging.googleapis.com/trace"
    case spanID = "logging.googleapis.com/spanId"
    case isSampled = "logging.googleapis.com/trace_sampled"
    case labels = "logging.googleapis.com/labels"
  }
}
