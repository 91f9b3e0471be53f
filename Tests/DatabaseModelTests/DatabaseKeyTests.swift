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

  @Test("Two forms of a letter are two keys, two paths and two strings")
  func exactTexts() {
    let (one, two) = ("\u{E9}", "e\u{301}")
    #expect(DatabaseKey(one) != DatabaseKey(two))
    #expect(DatabasePath([one]) != DatabasePath([two]))
    #expect(!DatabasePath([one, "a"]).starts(with: DatabasePath([two])))
    #expect(DatabaseLeaf.string(one) != DatabaseLeaf.string(two))
    #expect(Set([DatabaseLeaf.string(one), .string(two), .string(two)]).count == 2)

    var node = DatabaseNode(
      DatabaseChildren([(one, DatabaseNode(.number(1))), (two, DatabaseNode(.number(2)))])
    )
    #expect(node.children.count == 2)
    #expect(node[one].leaf == .number(1))
    node.set(.empty, at: DatabasePath([two]))
    #expect(node.children.map(\.key.text) == [one])
    #expect(node[two].isEmpty)
  }
}
