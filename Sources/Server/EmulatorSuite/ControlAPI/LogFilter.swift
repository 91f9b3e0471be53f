import Foundation
import HTTPSupport
import Invocation
import Logging
import RuntimeSupport

/// Which lines of the functions' log a client wants.
struct LogFilter: Sendable {
  var function: String?
  /// The lowest level wanted; graver levels are included.
  var level: Logger.Level?
  /// The time from which lines are wanted, in the form of the log's own times.
  var since: String?

  /// Reads `function`, `level` and `since`; throws `INVALID_ARGUMENT` naming an invalid value.
  init(_ query: QueryParameters) throws {
    function = query["function"]
    if let name = query["level"] {
      guard let level = Logger.Level(rawValue: name) else {
        let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        throw StatusError.invalidArgument("\"\(name)\" is no level; the levels are \(names).")
      }
      self.level = level
    }
    if let text = query["since"] {
      // The time may or may not have a fraction of a second.
      guard
        let date = (try? Date(text, strategy: Self.style)) ?? (try? Date(text, strategy: .iso8601))
      else {
        throw StatusError.invalidArgument(
          "\"\(text)\" is no time; write one such as 2026-11-21T07:00:00Z."
        )
      }
      since = date.formatted(Self.style)
    }
  }

  /// Whether the function alone decides which lines are wanted.
  var takesAll: Bool { level == nil && since == nil }

  /// Whether a line of the chosen function is wanted.
  func takes(_ entry: FunctionLogEntry) -> Bool {
    if let level, (Logger.Level(rawValue: entry.level) ?? .info) < level { return false }
    if let since, entry.time < since { return false }
    return true
  }

  /// The log's own form of times, which compare as text.
  private static let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
}
