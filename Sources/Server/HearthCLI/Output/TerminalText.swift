import FunctionLogs

/// Text whose untrusted parts are escaped for a terminal; only this type carries colors.
///
/// Literals stay unchanged. An interpolated `String` is escaped and kept on one line.
struct TerminalText: ExpressibleByStringInterpolation, Equatable, Sendable {
  private(set) var text: String

  init(stringLiteral value: String) { text = value }

  init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

  /// Creates escaped text that keeps its line feeds and tabs.
  init(lines: String) { text = ControlCharacters.escapedLines(lines) }

  /// Creates JSON text, escaped without changing its meaning.
  init(json: String) { text = ControlCharacters.escapedJSON(json) }

  private init(safe text: String) { self.text = text }

  /// Returns the text in a color.
  func painted(_ color: Terminal.Color) -> TerminalText {
    TerminalText(safe: "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m")
  }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var text = ""

    init(literalCapacity: Int, interpolationCount: Int) {}

    mutating func appendLiteral(_ literal: String) { text += literal }

    mutating func appendInterpolation(_ value: TerminalText) { text += value.text }

    mutating func appendInterpolation(_ value: String) {
      text += ControlCharacters.escapedLine(value)
    }
  }
}

extension String {
  /// Returns the escaped text with all lines but the first indented.
  ///
  /// No line of the text can therefore pass for a separate line of output. The text is escaped
  /// first, because `\r\n` is a single character that does not match a separator.
  func indented(by width: Int) -> String {
    let lines = ControlCharacters.escapedLines(self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    return lines.joined(separator: "\n" + String(repeating: " ", count: width))
  }
}
