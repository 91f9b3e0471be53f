import DatabaseModel
import Testing

@Suite("Keys of the Realtime Database")
struct DatabaseKeyTests {
  @Test("Integers come first by value, then other keys by UTF-16")
  func order() {
    let sorted = [
      "-2147483648", "-5", "-0", "0", "00", "1", "01", "9", "10", "2147483647", "-", "-2147483649",
      "2147483648", "a", "b", "é", "😀", "\u{E000}", "\u{FFFD}",
    ]
    let keys = sorted.shuffled().map { DatabaseKey($0) }.sorted().map(\.text)
    #expect(
      keys.filter { !["-0", "0", "00"].contains($0) }
        == sorted.filter { !["-0", "0", "00"].contains($0) }
    )
    #expect(DatabaseKey("0") < DatabaseKey("00"))
    #expect(DatabaseKey("0") < DatabaseKey("-0"))
  }
}
