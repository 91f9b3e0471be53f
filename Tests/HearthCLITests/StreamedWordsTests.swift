import Testing

@testable import HearthCLI

@Suite("Streamed words")
struct StreamedWordsTests {
  private func words(_ text: String) -> (Any, String) { (["type": "text", "text": text], "") }

  /// Returns everything that is printed for the chunks and the end of the stream.
  private func text(of chunks: [(chunk: Any, json: String)]) -> String {
    var words = StreamedWords()
    return chunks.map { words.text(of: $0.chunk, json: $0.json).text }.joined() + words.end().text
  }

  @Test("Words run on in one line, which ends with the stream")
  func wordsRunOn() {
    #expect(text(of: [words("Two of "), words("them.")]) == "Two of them.\n")
  }

  @Test("Other chunks have lines of their own, also between words")
  func othersHaveLines() {
    let tool = (["tool": "setReminder"] as Any, #"{"tool":"setReminder"}"#)
    let string = ("knees" as Any, #""knees""#)

    #expect(
      text(of: [tool, words("Do"), words("ne"), tool, string, words("Yes\n"), tool])
        == """
        {"tool":"setReminder"}
        Done
        {"tool":"setReminder"}
        "knees"
        Yes
        {"tool":"setReminder"}

        """
    )
  }

  @Test("A text that is none is JSON, and no words are no line")
  func noWords() {
    let chunk = (["text": 7] as Any, #"{"text":7}"#)

    #expect(text(of: [chunk, words("")]) == "{\"text\":7}\n")
    #expect(text(of: []) == "")
  }

  @Test("Words cannot steer the terminal")
  func wordsAreEscaped() {
    #expect(text(of: [words("\u{1B}[2J\tred\r")]) == "\\u{1B}[2J\tred\\r\n")
  }
}
