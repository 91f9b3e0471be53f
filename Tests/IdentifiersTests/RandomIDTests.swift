import Identifiers
import Testing
import TestSupport

@Suite("Random ids")
struct RandomIDTests {
  @Test("Random ids have the length and letters asked for, and a seed repeats them")
  func randomIDs() {
    var random = SeededGenerator(seed: 7)
    var again = SeededGenerator(seed: 7)
    let id = RandomID.make(using: &random)

    #expect(id.utf8.count == 20)
    #expect(
      id.utf8.allSatisfy {
        (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
      }
    )
    #expect(RandomID.make(using: &again) == id)
    #expect(RandomID.make(length: 0, using: &random) == "")
    #expect(RandomID.make() != RandomID.make())
  }
}
