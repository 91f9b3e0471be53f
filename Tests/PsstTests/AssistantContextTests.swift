import FirestoreClient
import Foundation
import PsstModels
import Testing

@testable import PsstBackend

@Suite("What a model is given with a question")
struct AssistantContextTests {
  private static func context(
    texts: [String] = [],
    history: [String] = [],
    summary: String? = nil
  ) -> AssistantContext {
    AssistantContext(
      question: "Who has a sore knee?",
      hits: texts.enumerated().map { index, text in
        MessageSearch.Hit(
          messageID: "m\(index)",
          chatID: "c1",
          senderID: "carl",
          senderName: text,
          text: text,
          timestamp: 0,
          score: 1
        )
      },
      history: history.enumerated().map { index, text in
        AIMessage(
          role: index.isMultiple(of: 2) ? .user : .assistant,
          content: text,
          timestamp: Timestamp(microseconds: Int64(index)),
          turnId: "\(index / 2)"
        )
      },
      summary: summary,
      preferences: AssistantPreferences(),
      caller: AssistantCaller(uid: "tina", now: Timestamp(microseconds: 0), zone: .init(nil))
    )
  }

  private static func turns(of context: AssistantContext) -> [ChatTurn] {
    var sources = AssistantSources()
    return context.turns(offering: sources.add(context.best))
  }

  private static func bytes(of turns: [ChatTurn]) throws -> Int {
    try JSONEncoder().encode(turns).count
  }

  @Test(
    "Whatever the characters of messages are, a question stays within its bytes",
    arguments: ["x", "\u{1}", "\"", "\\", "\n", "é", "🏋️"]
  )
  func bounded(character: String) throws {
    let text = String(repeating: character, count: 50_000)
    let turns = Self.turns(
      of: Self.context(texts: Array(repeating: text, count: 20), history: [text, text, text, text])
    )
    // JSON within JSON: escaped characters are escaped again.
    #expect(try Self.bytes(of: turns) < 2 * 28_000 + 5000)
    #expect(turns.count == 4)
  }

  @Test("Earlier messages count as many bytes as they take in JSON")
  func history() throws {
    let text = String(repeating: "\u{1}", count: 1000)
    let turns = Self.turns(of: Self.context(history: [text, text, text, text]))
    #expect(turns.count == 4)
  }

  @Test("The beginning of a text takes no more bytes in JSON than it may")
  func beginning() throws {
    for text in ["abc", "\u{1}\u{2}\u{1F}\u{7F}", "\"\\\n\r\t\u{8}\u{C}/", "äöü€🏋️"] {
      let whole = AssistantContext.json(text).utf8.count - 2
      #expect(text.prefix(jsonBytesMax: whole) == text)
      #expect(text.prefix(jsonBytesMax: whole - 1) != text)
      for bytes in 0..<whole {
        let json = AssistantContext.json(text.prefix(jsonBytesMax: bytes))
        #expect(json.utf8.count - 2 <= bytes)
      }
    }
  }

  @Test("What was said earlier is data, apart from the instructions")
  func summary() {
    let turns = Self.turns(of: Self.context(summary: "They spoke of knees."))
    guard case .system(let instructions) = turns[0], case .user(let earlier) = turns[1] else {
      Issue.record("\(turns)")
      return
    }
    #expect(!instructions.contains("knees") && earlier.contains("knees"))
    #expect(turns.count == 3)
  }
}
