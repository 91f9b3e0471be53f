import Invocation
import Logging
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How log lines look on a terminal: time, level, who, what, then the facts.
enum LogFormat {
  /// A function's line.
  static func line(_ entry: FunctionLogEntry, coloured: Bool) -> String {
    var facts = entry.metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    if let invocation = entry.invocation { facts.append("invocation=\(invocation)") }
    return join(
      time: entry.time,
      level: entry.level,
      source: entry.function,
      message: entry.message,
      facts: facts,
      coloured: coloured
    )
  }

  /// Joins the parts of a line; the time shows hours to milliseconds only.
  static func join(
    time: String,
    level: String,
    source: String,
    message: String,
    facts: [String],
    coloured: Bool
  ) -> String {
    let clock = String(time.dropFirst(11).prefix(12)).trimmingSuffix("Z")
    let facts = facts.isEmpty ? "" : "  " + facts.joined(separator: " ")
    guard coloured else {
      return "\(clock) \(level.uppercased()) \(source): \(message)\(facts)"
    }
    let colour: Terminal.Colour =
      switch level {
      case "critical", "error": .red
      case "warning": .yellow
      case "notice": .green
      default: .dim
      }
    return Terminal.paint(clock, .dim) + " " + Terminal.paint(level.uppercased(), colour) + " "
      + Terminal.paint(source, .cyan) + ": " + message + Terminal.paint(facts, .dim)
  }
}

extension String {
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}

/// Writes the server's own log lines to stderr in the form of `LogFormat`.
struct TerminalLogHandler: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = .info
  private let label: String

  /// A handler for the logger of one room.
  init(label: String) {
    self.label = label
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let all = self.metadata.merging(event.metadata ?? [:]) { $1 }
    let facts = all.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    Terminal.note(
      LogFormat.join(
        time: Date().ISO8601Format(.init(includingFractionalSeconds: true)),
        level: event.level.rawValue,
        source: label,
        message: "\(event.message)",
        facts: facts,
        coloured: Terminal.isColoured
      )
    )
  }
}
