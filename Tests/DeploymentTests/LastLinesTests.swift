import Testing

@testable import Deployment

@Suite("Last lines of a program")
struct LastLinesTests {
  @Test("The last lines stay, up to their number")
  func number() {
    var lines = LastLines(linesMax: 3, bytesMax: 1_000_000)
    for number in 0..<10 { lines.append("\(number)") }

    #expect(lines.lines == ["7", "8", "9"])
  }

  @Test("A flood of long or empty lines keeps to the bound on bytes; the last line always stays")
  func bytes() {
    var lines = LastLines(linesMax: .max, bytesMax: 10_000)
    for _ in 0..<1_000 { lines.append(String(repeating: "x", count: 999)) }
    let long = lines.lines.count
    for _ in 0..<1_000 { lines.append("") }
    let empty = lines.lines.count
    lines.append(String(repeating: "y", count: 50_000))

    #expect(long == 9)
    #expect(empty < 300)
    #expect(lines.lines.map(\.count) == [50_000])
  }
}
