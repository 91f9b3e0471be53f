/// A printer for streamed chunks: text runs on, and other chunks get their own lines.
struct StreamedWords {
  private var isWithinLine = false

  /// Returns the text to print for a chunk, after the previous chunks.
  ///
  /// If the chunk is an object with a string `text`, that string is printed; otherwise `json` is.
  mutating func text(of chunk: Any, json: String) -> TerminalText {
    guard let words = (chunk as? [String: Any])?["text"] as? String else {
      return "\(end())\(TerminalText(json: json))\n"
    }
    if let last = words.unicodeScalars.last { isWithinLine = last != "\n" }
    return TerminalText(lines: words)
  }

  /// Returns the end of a text line; empty if no line has begun.
  mutating func end() -> TerminalText {
    defer { isWithinLine = false }
    return isWithinLine ? "\n" : ""
  }
}
