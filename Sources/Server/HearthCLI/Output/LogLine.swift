import JSONText
import ArgumentParser
import FunctionLogs
import Logging

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The format of the log that `start` writes to stderr.
enum LogFormat: String, ExpressibleByArgument, CaseIterable {
  /// For people: time, level, source and message, then the metadata.
  case text
  /// For programs: one JSON object per line.
  ///
  /// A function's line has the same members as in `/hearth/v1/logs`.
  case json
}

/// A log line of a function or of the suite itself.
struct LogLine: Encodable {
  /// The time in RFC 3339.
  var time: String
  var level: String
  /// The function that wrote the line; nil for lines of the suite.
  var function: String?
  /// The part of the suite that wrote the line; nil for lines of functions.
  var service: String?
  var message: String
  var invocation: String?
  var metadata: [String: String] = [:]
  /// The end of the invocation that the line reports.
  var end: InvocationEnd?

  /// Creates the line of a function.
  init(_ entry: FunctionLogEntry) {
    time = entry.time
    level = entry.level
    function = entry.function
    message = entry.message
    invocation = entry.invocation
    metadata = entry.metadata
    end = entry.end
  }

  /// Creates a line that a part of the suite writes now.
  init(service: String, level: Logger.Level, message: String, metadata: [String: String] = [:]) {
    time = Date().ISO8601Format(.init(includingFractionalSeconds: true))
    self.level = level.rawValue
    self.service = service
    self.message = message
    self.metadata = metadata
  }

  /// Formats the line for stderr.
  func formatted(_ format: LogFormat) -> TerminalText {
    format == .json ? TerminalText(json: json) : text(colored: Terminal.isColored)
  }

  private var json: String {
    // Encoding strings never fails.
    return (try? jsonBytes()).map { String(decoding: $0, as: UTF8.self) }
      ?? message
  }

  /// Formats the line for a person.
  ///
  /// The time is shortened to hours through milliseconds, with the date before it if that is not
  /// `today`, such as `2026-11-21`; nil leaves the date out. Further lines of the message are
  /// indented below the first. No part of the line can pass for another line.
  func text(colored: Bool, today: String? = nil) -> TerminalText {
    let date = String(time.prefix(10))
    let day = today == nil || today == date ? "" : "\(date) "
    let clock = day + String(time.dropFirst(11).prefix(12)).trimmingSuffix("Z")
    let source = function ?? service ?? ""
    var facts = metadata.sorted { $0.key < $1.key }.map {
      "\(Self.fact($0.key))=\(Self.fact($0.value))"
    }
    if let caller = end?.caller { facts.append("caller=\(Self.fact(caller))") }
    if let time = end?.suiteTime { facts.append("suite-time=\(Self.fact(time))") }
    if let invocation { facts.append("invocation=\(Self.fact(invocation))") }
    let trailer = facts.isEmpty ? "" : "  " + facts.joined(separator: " ")
    let indented = message.indented(by: 4)
    let end = indented.firstIndex(of: "\n") ?? indented.endIndex
    let first = TerminalText(lines: String(indented[..<end]))
    let rest = TerminalText(lines: String(indented[end...]))
    guard colored else {
      return "\(clock) \(level.uppercased()) \(source): \(first)\(trailer)\(rest)"
    }
    let color: Terminal.Color =
      switch level {
      case "critical", "error": .red
      case "warning": .yellow
      case "notice": .green
      default: .dim
      }
    func painted(_ text: String, _ color: Terminal.Color) -> TerminalText {
      let text: TerminalText = "\(text)"
      return text.painted(color)
    }
    let head: TerminalText =
      "\(painted(clock, .dim)) \(painted(level.uppercased(), color)) \(painted(source, .cyan))"
    return "\(head): \(first)\(painted(trailer, .dim))\(rest)"
  }

  /// Formats a metadata key or value; quoted if it would be ambiguous without quotes.
  private static func fact(_ text: String) -> String {
    let escaped = ControlCharacters.escapedLine(text)
    let isPlain = escaped == text && !text.isEmpty && !text.contains { " =\"".contains($0) }
    guard !isPlain else { return text }
    return "\"" + escaped.replacing("\"", with: "\\\"") + "\""
  }
}

extension String {
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}

/// The log handler that writes the suite's own lines to stderr.
struct TerminalLogHandler: LogHandler {
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = .info
  private let label: String
  private let format: LogFormat

  /// Creates a handler for the logger of one module.
  init(label: String, format: LogFormat) {
    self.label = label
    self.format = format
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let all = self.metadata.merging(event.metadata ?? [:]) { $1 }
    Terminal.note(
      safe: LogLine(
        service: label,
        level: event.level,
        message: "\(event.message)",
        metadata: all.mapValues { "\($0)" }
      ).formatted(format)
    )
  }
}
