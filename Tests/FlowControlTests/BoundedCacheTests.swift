import FlowControl
import Testing

@Suite("Bounded cache")
struct BoundedCacheTests {
  private struct OddError: Error {}

  @Test("A value is made once, and again after the full cache was emptied")
  func full() {
    let cache = BoundedCache<Int, Int>(countMax: 2)
    var made: [Int] = []
    for key in [1, 2, 1, 2, 3, 3, 1, 1] {
      let value = cache.value(of: key) {
        made.append(key)
        return key * 10
      }
      #expect(value == key * 10)
    }

    #expect(made == [1, 2, 3, 1])
  }

  @Test("A failure is rethrown and not kept")
  func failure() throws {
    let cache = BoundedCache<Int, Int>(countMax: 2)

    #expect(throws: OddError.self) { try cache.value(of: 1) { throw OddError() } }
    #expect(cache[1] == nil)
    #expect(cache.value(of: 1) { 5 } == 5)
  }

  @Test("A new value of a known key empties nothing")
  func known() {
    let cache = BoundedCache<Int, String>(countMax: 2)
    cache[1] = "a"
    cache[2] = "b"
    cache[2] = "c"

    #expect(cache[1] == "a" && cache[2] == "c")
  }
}
