import RuntimeSupport

/// Text whose foreign parts have been made safe for a terminal; only this type carries colors.
///
/// Literals stay as they are. An interpolated `String` is escaped and kept on one line.
struct TerminalText: ExpressibleByStringInterpolation, Equatable, Sendable {
  /// The text as it is written.
  private(set) var text: String

  init(stringLiteral value: String) { text = value }

  init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

  /// Foreign text with its line feeds and tabs.
  init(lines: String) { text = ControlCharacters.escapedLines(lines) }

  /// JSON, whose meaning stays.
  init(json: String) { text = ControlCharacters.escapedJSON(json) }

  private init(safe text: String) { self.text = text }

  /// Foreign text in a color, with its line feeds and tabs.
  func painted(_ colour: Terminal.Colour) -> TerminalText {
    TerminalText(safe: "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m")
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
  /// The text with its further lines indented, so that none looks like a line of its own.
  ///
  /// It is escaped first: `\r\n` would be one character, at which nothing splits.
  func indented(by width: Int) -> String {
    let lines = ControlCharacters.escapedLines(self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    return lines.joined(separator: "\n" + String(repeating: " ", count: width))
  }
}
