extension JSONSyntaxError {
  /// Returns the line and the column of the error in its text, both counted from 1.
  package func place(in text: [UInt8]) -> (line: Int, column: Int) {
    let before = text.prefix(offset)
    let line = before.count { $0 == UInt8(ascii: "\n") } + 1
    return (line, String(decoding: before[lineStart(in: text)...], as: UTF8.self).count + 1)
  }

  /// Returns the error for a person: its place, the reason, and the line with a caret below it.
  package func explanation(in text: [UInt8]) -> String {
    let (line, column) = place(in: text)
    let start = lineStart(in: text)
    let end = text[start...].firstIndex(of: UInt8(ascii: "\n")) ?? text.endIndex
    // Long lines are cut on both sides of the place.
    let shown = Array(String(decoding: text[start..<end], as: UTF8.self))
    let first = max(0, column - 1 - Self.shownMax / 2)
    let excerpt = shown.dropFirst(first).prefix(Self.shownMax)
      .map { $0 == "\t" || $0 == "\r" ? " " : $0 }
    let caret = String(repeating: " ", count: column - 1 - first) + "^"
    return "line \(line), column \(column): \(reason)\(advice(in: text))\n"
      + "  \(String(excerpt))\n  \(caret)"
  }

  private func lineStart(in text: [UInt8]) -> Int {
    let before = text.prefix(offset)
    return before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? text.startIndex
  }

  /// Returns what was expected, as the end of a sentence; empty if that is not clear.
  private func advice(in text: [UInt8]) -> String {
    guard reason.hasPrefix("an unexpected") else { return "" }
    let before = text.prefix(offset).last { !" \n\r\t".utf8.contains($0) }
    guard offset < text.count else {
      return before == nil ? "; there is no text" : #"; a }, ] or " is missing"#
    }
    switch (text[offset], before) {
    case (UInt8(ascii: "'"), _): return #"; JSON has " around names and texts"#
    case (UInt8(ascii: "}"), UInt8(ascii: ",")), (UInt8(ascii: "]"), UInt8(ascii: ",")):
      return "; the comma before it is too many"
    case (_, UInt8(ascii: "{")), (_, UInt8(ascii: ",")):
      return #"; a name or a value is expected, and names and texts stand in "quotes""#
    case (_, UInt8(ascii: ":")), (_, UInt8(ascii: "[")), (_, nil):
      return #"; a value is expected, and texts stand in "quotes""#
    default: return "; a comma, a colon or the end is expected"
    }
  }

  /// The maximum number of characters of a line that are shown.
  private static let shownMax = 72
}
