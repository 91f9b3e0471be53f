import Foundation
import FunctionLogs
import HTTPSupport
import Logging
import StatusCodes

/// A filter for the functions' log lines.
struct LogFilter: Sendable {
  var function: String?
  /// The lowest level that passes; nil for all levels.
  var level: Logger.Level?
  /// The earliest time that passes, in the format of the log's own times.
  var since: String?
  /// The trace of the lines; nil for all lines.
  var trace: String?

  /// True if the lines about ended invocations are left out.
  var isQuiet: Bool

  /// Parses `function`, `level`, `since`, `trace` and `quiet`.
  ///
  /// Throws `INVALID_ARGUMENT` naming an invalid value.
  init(_ query: QueryParameters) throws {
    function = query["function"]
    trace = query["trace"]
    isQuiet = query["quiet"] == "true"
    if let name = query["level"] {
      guard let level = Logger.Level(rawValue: name) else {
        let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        throw StatusError.invalidArgument("\"\(name)\" is not a level; the levels are \(names).")
      }
      self.level = level
    }
    if let text = query["since"] {
      // The time may or may not include fractional seconds.
      guard
        let date = (try? Date(text, strategy: Self.style)) ?? (try? Date(text, strategy: .iso8601))
      else {
        throw StatusError.invalidArgument(
          "\"\(text)\" is not a time; write one such as 2026-11-21T07:00:00Z."
        )
      }
      since = date.formatted(Self.style)
    }
  }

  /// True if nothing but the function restricts the lines.
  var takesAll: Bool { level == nil && since == nil && trace == nil && !isQuiet }

  /// True if a line passes everything but the function, which is not checked.
  func takes(_ entry: FunctionLogEntry) -> Bool {
    if isQuiet, entry.end != nil { return false }
    if let level, (Logger.Level(rawValue: entry.level) ?? .info) < level { return false }
    if let since, entry.time < since { return false }
    if let trace, entry.trace != trace { return false }
    return true
  }

  /// The log's own format of times, which sort correctly as text.
  private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
}
