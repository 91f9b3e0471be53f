/// Chunks of a stream for a person: words run on as text, other chunks have lines of their own.
struct StreamedWords {
  private var isWithinLine = false

  /// The text to print for a chunk, after that of the chunks before it.
  ///
  /// Words are the string `text` of an object; `json` is printed for any other chunk.
  mutating func text(of chunk: Any, json: String) -> TerminalText {
    guard let words = (chunk as? [String: Any])?["text"] as? String else {
      return "\(end())\(TerminalText(json: json))\n"
    }
    if let last = words.unicodeScalars.last { isWithinLine = last != "\n" }
    return TerminalText(lines: words)
  }

  /// The text that ends a line of words; empty where none has begun.
  mutating func end() -> TerminalText {
    defer { isWithinLine = false }
    return isWithinLine ? "\n" : ""
  }
}
