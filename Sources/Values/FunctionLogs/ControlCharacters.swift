/// An escaper for characters with which foreign text could control a terminal or reorder a line.
///
/// These are the controls of ASCII and Latin-1 (C0, DEL, C1), the bidirectional controls, and
/// Unicode's line and paragraph separators. All other text is unchanged.
package enum ControlCharacters {
  /// Returns the text as one line: `\n`, `\r` and `\t` are escaped too.
  package static func escapedLine(_ text: String) -> String {
    escaped(text, keeping: []) { named[$0] ?? code($0) }
  }

  /// Returns the escaped text with line feeds and tabs kept.
  package static func escapedLines(_ text: String) -> String {
    escaped(text, keeping: ["\n", "\t"]) { named[$0] ?? code($0) }
  }

  /// Returns equivalent JSON; in valid JSON the escaped characters occur only inside strings.
  package static func escapedJSON(_ json: String) -> String {
    escaped(json, keeping: ["\n", "\r", "\t"]) { scalar in
      let digits = String(scalar.value, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
  }

  private static func escaped(
    _ text: String,
    keeping kept: Set<Unicode.Scalar>,
    _ replacement: (Unicode.Scalar) -> String
  ) -> String {
    guard !text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return text }
    var result = ""
    result.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      if isControl(scalar), !kept.contains(scalar) {
        result += replacement(scalar)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  private static let named: [Unicode.Scalar: String] = ["\n": "\\n", "\r": "\\r", "\t": "\\t"]

  private static func code(_ scalar: Unicode.Scalar) -> String {
    "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
  }
}
