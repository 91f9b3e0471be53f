import Foundation
import FunctionLogs
import Testing

@testable import HearthCLI

@Suite("Text for terminals")
struct LogLineTests {
  private static let attack =
    "x\r\n12:00:00.000 ERROR hub: forged\u{1B}[2J\u{202E}\u{9B}31m\u{2028}"
  private static let controls: Set<Unicode.Scalar> = [
    "\r", "\u{1B}", "\u{202E}", "\u{9B}", "\u{2028}",
  ]

  private func entry(
    function: String = "f",
    level: String = "info",
    message: String = "Done",
    invocation: String? = nil,
    metadata: [String: String] = [:]
  ) -> LogLine {
    LogLine(
      FunctionLogEntry(
        time: "2026-11-21T07:00:00.123Z",
        function: function,
        level: level,
        message: message,
        invocation: invocation,
        metadata: metadata
      )
    )
  }

  @Test("A line shows its time, level, source, message and details")
  func plain() {
    let line = entry(
      message: "First\nsecond",
      invocation: "i1",
      metadata: ["count": "2", "error": "HTTP 500", "empty": "", "quoted": #"a"b"#]
    )

    #expect(
      line.text(colored: false).text
        == #"07:00:00.123 INFO f: First  count=2 empty="" error="HTTP 500" quoted="a\"b" "#
        + "invocation=i1\n    second"
    )
  }

  @Test("A line of another day shows its date", arguments: ["2026-11-21", "2026-11-22", nil])
  func date(today: String?) {
    let text = entry().text(colored: false, today: today).text

    #expect(text.hasPrefix(today == "2026-11-22" ? "2026-11-21 07:00:00.123 " : "07:00:00.123 "))
  }

  @Test(
    "Nothing of a line can look like another line or steer the terminal",
    arguments: [true, false]
  )
  func forged(colored: Bool) {
    let attack = Self.attack
    let line = entry(
      function: attack,
      level: attack,
      message: attack,
      invocation: attack,
      metadata: [attack: attack]
    )
    let text = line.text(colored: colored).text

    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count == 2 && lines[1].hasPrefix("    12:00:00.000 ERROR"))
    var allowed = text
    if colored {
      for color in ["0", "2", "31", "32", "33", "36"] {
        allowed = allowed.replacing("\u{1B}[\(color)m", with: "")
      }
    }
    #expect(!allowed.unicodeScalars.contains { Self.controls.contains($0) }, "\(allowed)")
  }

  @Test("A line of JSON is one line and means what was logged")
  func json() throws {
    let line = entry(message: Self.attack, metadata: ["k": Self.attack]).formatted(.json).text

    #expect(!line.unicodeScalars.contains { Self.controls.contains($0) || $0 == "\n" })
    let decoded = try JSONDecoder().decode(FunctionLogEntry.self, from: Data(line.utf8))
    #expect(decoded.message == Self.attack && decoded.metadata["k"] == Self.attack)
  }

  @Test("A row of a table is one line, whatever its cells hold")
  func table() {
    let table = Terminal.table(["NAME", "TEXT"], [[Self.attack, Self.attack], ["a", "b"]])

    #expect(table.split(separator: "\n").count == 3)
    #expect(!table.unicodeScalars.contains { Self.controls.contains($0) })
  }

  @Test("Further lines of a text are indented after its controls are written out")
  func indented() {
    #expect("a\nb\r\nc".indented(by: 2) == "a\n  b\\r\n  c")
  }

  @Test("Interpolated text is escaped, literals and colors are not")
  func interpolation() {
    let name = "\u{1B}[31m\n"
    let text: TerminalText = "\u{1B}[2J\(name)\(TerminalText(lines: "a\u{7}\nb").painted(.red))"

    #expect(text.text == "\u{1B}[2J\\u{1B}[31m\\n\u{1B}[31ma\\u{7}\nb\u{1B}[0m")
  }
}
