import FunctionLogs
import Testing

@Suite("Control characters")
struct ControlCharactersTests {
  @Test(
    "What could steer a terminal is written out",
    arguments: zip(
      [
        "\u{1B}[2J", "\u{7}", "\u{7F}", "\u{9B}31m", "\u{85}", "\u{061C}", "\u{200E}\u{200F}",
        "\u{202A}\u{202E}", "\u{2066}\u{2069}", "\u{2028}\u{2029}", "\u{0}",
      ],
      [
        #"\u{1B}[2J"#, #"\u{7}"#, #"\u{7F}"#, #"\u{9B}31m"#, #"\u{85}"#, #"\u{61C}"#,
        #"\u{200E}\u{200F}"#, #"\u{202A}\u{202E}"#, #"\u{2066}\u{2069}"#, #"\u{2028}\u{2029}"#,
        #"\u{0}"#,
      ]
    )
  )
  func escaped(text: String, expected: String) {
    #expect(ControlCharacters.escapedLine(text) == expected)
    #expect(ControlCharacters.escapedLines(text) == expected)
  }

  @Test("One line stays one line, whatever line ends it has")
  func line() {
    #expect(ControlCharacters.escapedLine("a\nb\r\nc\rd\te") == #"a\nb\r\nc\rd\te"#)
  }

  @Test("Lines keep their line feeds and tabs, but no carriage return")
  func lines() {
    #expect(ControlCharacters.escapedLines("a\nb\r\nc\td") == "a\nb\\r\nc\td")
  }

  @Test("All other text stays", arguments: ["plain", "Zoë 👩‍👩‍👧 日本 עברית", "", "a\u{A0}b\u{200D}"])
  func untouched(text: String) {
    #expect(ControlCharacters.escapedLine(text) == text)
    #expect(ControlCharacters.escapedJSON(text) == text)
  }

  @Test("JSON means the same afterwards")
  func json() {
    #expect(
      ControlCharacters.escapedJSON("{\n\t\"a\": \"\u{9B}x\u{202E}\u{7F}\"\r\n}")
        == "{\n\t\"a\": \"\\u009bx\\u202e\\u007f\"\r\n}"
    )
  }
}
