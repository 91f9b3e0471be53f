import Testing

@testable import PsstBackend

@Suite("The sources of an answer")
struct AssistantSourcesTests {
  private static func hit(_ id: String, in chat: String = "c1") -> MessageSearch.Hit {
    MessageSearch.Hit(
      messageID: id,
      chatID: chat,
      senderID: "carl",
      senderName: "Carl",
      text: id,
      timestamp: 0,
      score: 1
    )
  }

  @Test("A message that is found again keeps its number, and further ones count on")
  func numbers() {
    var sources = AssistantSources()
    #expect(sources.add([Self.hit("a"), Self.hit("b")]).map(\.number) == [1, 2])
    #expect(sources.add([Self.hit("c"), Self.hit("a")]).map(\.number) == [3, 1])
    // A message ID is unique only within its chat.
    #expect(sources.add([Self.hit("a", in: "c2")]).map(\.number) == [4])
    #expect(sources.all.map(\.hit.messageID) == ["a", "b", "c", "a"])
  }

  @Test(
    "An answer's sources are those that it cites by their numbers, and all where it cites none",
    arguments: [
      ("Carl [2].", [2]), ("Carl [3], [1] and [3].", [1, 3]), ("Nobody.", [1, 2, 3]),
      ("See [9] and [0].", [1, 2, 3]), ("See [1,2], [x] and [1234].", [1, 2]),
    ]
  )
  func cited(text: String, numbers: [Int]) {
    var sources = AssistantSources()
    _ = sources.add([Self.hit("a"), Self.hit("b"), Self.hit("c")])
    #expect(sources.cited(in: text).map(\.number) == numbers)
  }
}
