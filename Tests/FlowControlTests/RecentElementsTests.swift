import FlowControl
import Testing

@Suite("Recent elements")
struct RecentElementsTests {
  @Test("The newest elements stay, up to their number")
  func number() {
    var elements = RecentElements<Int>(countMax: 3)
    for number in 0..<10 { elements.append(number) }

    #expect(Array(elements) == [7, 8, 9])
    #expect(elements.dropped == 7)
  }

  @Test("A flood of long or short elements keeps to the bound on bytes; the newest always stays")
  func bytes() {
    var elements = RecentElements<String>(countMax: .max, bytesMax: 10_000)
    for _ in 0..<1_000 { elements.append("x", bytes: 1_047) }
    let long = elements.count
    for _ in 0..<1_000 { elements.append("", bytes: 48) }
    let short = elements.count
    elements.append("y", bytes: 50_000)

    #expect(long == 9)
    #expect(short == 208)
    #expect(Array(elements) == ["y"])
    #expect(elements.bytes == 50_000)
  }

  @Test("An element can be changed in its place")
  func change() {
    var elements = RecentElements<Int>(countMax: 3)
    for number in 0..<4 { elements.append(number) }
    elements[1] = 20

    #expect(Array(elements) == [1, 20, 3])
  }
}
