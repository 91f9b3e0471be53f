import DocumentModel
import TestSupport
import Testing

@Suite("Maps of values")
struct MapValueTests {
  private let composed = "caf\u{E9}"
  private let decomposed = "cafe\u{301}"

  @Test("Names that differ only in their Unicode form are two fields, in the order of their bytes")
  func unicodeForms() {
    var fields: MapValue = [composed: .integer(1), decomposed: .integer(2)]

    #expect(fields.count == 2)
    #expect(fields[composed] == .integer(1))
    #expect(fields[decomposed] == .integer(2))
    #expect(fields.keys.map { Array($0.utf8) } == [Array(decomposed.utf8), Array(composed.utf8)])

    fields[composed] = nil
    #expect(fields == [decomposed: .integer(2)])
    #expect(fields != [composed: .integer(2)])
    #expect(FirestoreValue.map(fields) != .map([composed: .integer(2)]))
  }

  @Test("Of two fields with one name the later counts")
  func repeatedNames() {
    let fields = MapValue([
      ("b", .integer(1)), ("a", .integer(2)), ("b", .integer(3)), ("b", .null),
    ])

    #expect(fields == ["a": .integer(2), "b": .null])
    #expect(fields.count == 2)
  }

  @Test("It does what a dictionary does, in the order of names")
  func likeADictionary() {
    var generator = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<200 {
      var dictionary: [String: FirestoreValue] = [:]
      var map = MapValue()
      for _ in 0..<20 {
        let key = ["a", "b", "aa", "z", "ab", "\u{10000}", "\u{FFFD}", ""].randomElement(
          using: &generator.random
        )!
        let value: FirestoreValue? =
          Bool.random(using: &generator.random) ? generator.value() : nil
        switch Int.random(in: 0..<3, using: &generator.random) {
        case 0:
          dictionary[key] = value
          map[key] = value
        case 1:
          dictionary[key] = value ?? .null
          map.append(key, value ?? .null)
        default: #expect(map.removeValue(forKey: key) == dictionary.removeValue(forKey: key))
        }
      }
      #expect(map == MapValue(dictionary))
      #expect(map.count == dictionary.count)
      for key in map.keys { #expect(map[key] == dictionary[key]) }
      #expect(
        map.keys == dictionary.keys.sorted { Array($0.utf8).lexicographicallyPrecedes($1.utf8) }
      )
    }
  }
}
