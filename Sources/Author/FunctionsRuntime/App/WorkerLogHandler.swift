import JSONText
package import DocumentModel
import FunctionLogs
package import Logging

/// A log handler that writes each message as a line of JSON, for Hearth or Cloud Logging.
///
/// Each line carries the id of the invocation in whose task the message was logged, regardless of
/// the logger. So the messages of a library can be found by invocation too.
package struct WorkerLogHandler: LogHandler {
  package var metadata: Logger.Metadata = [:]
  package var metadataProvider: Logger.MetadataProvider?
  package var logLevel: Logger.Level
  private let form: Form
  private let write: @Sendable ([UInt8]) -> Void

  /// The format of the lines, named after their reader.
  package enum Form: Sendable {
    /// Lines for Hearth's server, which adds the time and the function itself.
    case hearth
    /// Lines for Cloud Logging. Traces are included only if the project id is known.
    case cloudLogging(project: String?, now: @Sendable () -> Timestamp)
  }

  // The maximum length of a message. Log readers have limits of their own, and a longer message is
  // most likely a mistake.
  static let messageBytesMax = 32 * 1024

  /// Creates a handler that passes whole lines, including the newline, to `write`.
  package init(
    level: Logger.Level,
    form: Form = .hearth,
    write: @escaping @Sendable ([UInt8]) -> Void
  ) {
    self.logLevel = level
    self.form = form
    self.write = write
  }

  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  package func log(event: LogEvent) {
    var all = metadata
    if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
    if let own = event.metadata { all.merge(own) { $1 } }
    if let error = event.error { all["error"] = "\(error)" }
    var line = WorkerLogLine(
      severity: Self.severity(event.level),
      message: Self.bounded(event.message.description),
      executionID: RunningInvocation.current?.id,
      metadata: all.isEmpty ? nil : all.mapValues { Self.bounded($0.description) }
    )
    do {
      let trace = RunningInvocation.current?.trace
      if case .hearth = form { line.trace = trace?.traceID }
      let json =
        switch form {
        case .hearth: try line.jsonBytes()
        case .cloudLogging(let project, let now):
          try CloudLogLine(line, time: now().description, trace: trace, project: project)
            .jsonBytes()
        }
      write(json + [UInt8(ascii: "\n")])
    } catch {
      preconditionFailure("a log line holds only strings: \(error)")
    }
  }

  private static func bounded(_ text: String) -> String {
    guard text.utf8.count > messageBytesMax else { return text }
    return String(decoding: text.utf8.prefix(messageBytesMax), as: UTF8.self) + "…"
  }

  /// Returns Cloud Logging's name for a level.
  private static func severity(_ level: Logger.Level) -> String {
    switch level {
    case .trace, .debug: "DEBUG"
    case .info: "INFO"
    case .notice: "NOTICE"
    case .warning: "WARNING"
    case .error: "ERROR"
    case .critical: "CRITICAL"
    }
  }
}
