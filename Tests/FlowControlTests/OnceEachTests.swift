import FlowControl
import Testing

@Suite("Once each")
struct OnceEachTests {
  @Test("A name is new once, and past the bound none is")
  func once() {
    let once = OnceEach(namesMax: 2)

    #expect(once.isNew("a"))
    #expect(!once.isNew("a"))
    #expect(once.isNew("b"))
    #expect(!once.isNew("c"))
  }
}
