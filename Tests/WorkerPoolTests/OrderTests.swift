import Testing

@testable import WorkerPool

@Suite("Ordered values of the pool")
struct OrderTests {
  @Test("A sorted list keeps its order whatever is added and removed")
  func sortedList() {
    var list = SortedList<Int>()
    #expect(list.first == nil)
    for value in [5, 1, 9, 3, 7] { list.insert(value) }

    #expect(list.first == 1)
    #expect(list.first(from: 4) == 5)
    #expect(list.first(from: 5) == 5)
    #expect(list.first(from: 10) == nil)
    list.remove(1)
    list.remove(4)
    list.remove(5)
    list.remove(10)
    #expect(list.first == 3)
    #expect(list.first(from: 4) == 7)
  }

  @Test("Of each key only its last time counts, and a dropped one not at all")
  func deadlines() {
    var deadlines = Deadlines<String>()
    deadlines.set("a", .seconds(1))
    deadlines.set("b", .seconds(2))
    deadlines.set("c", .seconds(3))
    deadlines.set("a", .seconds(4))
    deadlines.set("c", .seconds(1))
    deadlines.remove("b")

    #expect(deadlines.first == .seconds(1))
    #expect(deadlines["a"] == .seconds(4))
    #expect(deadlines.popDue(.milliseconds(999)) == nil)
    #expect(deadlines.popDue(.seconds(1)) == "c")
    #expect(deadlines.popDue(.seconds(3)) == nil)
    #expect(deadlines.first == .seconds(4))
    #expect(deadlines.popDue(.seconds(4)) == "a")
    #expect(deadlines.first == nil)
  }

  @Test("Times that no longer count take no more room than those that do")
  func outdated() {
    var deadlines = Deadlines<Int>()
    deadlines.set(0, .zero)
    for second in 1...10_000 {
      deadlines.set(1, .seconds(second))
      #expect(deadlines.storedCount <= 70)
    }
    #expect(deadlines.popDue(.zero) == 0)
    #expect(deadlines.first == .seconds(10_000))
  }
}
