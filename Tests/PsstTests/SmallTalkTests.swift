import FunctionsTesting
import OpenAIStub
import PsstModels
@testable import PsstBackend
import Testing

@Suite("Small talk")
struct SmallTalkTests {
  private static let trivialTexts = [
    "ok", "OK!", "👍", "👍🏽🙏", "Hi Tina", "Good morning", "good morning Tina!", "Thank you so much",
    "thanks", "See you tomorrow", "Knee", "12345", "3 x 12", "?!", "你好", "", "Hello there",
    "Thanks Tina", "Thank you Tina", "ok, great, thanks",
  ]

  @Test("Greetings, single words, numbers and signs are small talk", arguments: trivialTexts)
  func trivial(text: String) {
    #expect(SmallTalk.matches(text))
  }

  @Test(
    "A text that may state a fact is not",
    arguments: [
      "sore knee", "No sleep", "no gluten", "My knee hurts", "Hi Tina, my knee hurts",
      "我的膝盖很疼", "膝が痛いです", "เข่าของฉันเจ็บ", "Колено болит", "ok, no gluten", "I'm injured",
      // A courtesy and another word.
      "Thanks, asthma", "thanks asthma", "Thanks. Asthma", "Danke, Asthma", "Yes, asthma",
      "ok Asthma", "So tired", "See you Monday", "Morgen Rom", "Morning Pilates", "你好，膝盖很疼",
      "Good, Rome tomorrow", "Asthma, thanks",
    ]
  )
  func content(text: String) {
    #expect(!SmallTalk.matches(text))
  }

  @Test("Through the trigger, a text without content never reaches the chat model")
  func trigger() async throws {
    try await ProfileFixture.run { fixture in
      try await fixture.contact("carl", of: "tina")
      for (number, text) in Self.trivialTexts.enumerated() {
        try await fixture.write("m\(number)", text)
      }
      try await fixture.suite.settle()
      #expect(fixture.model.journal.entries.isEmpty)

      try fixture.find((.injuries, "Asthma"), in: "asthma")
      try await fixture.write("last", "Thanks, asthma")
      try await fixture.suite.settle()
      #expect(fixture.model.journal.entries.count == 1)
      #expect(try await fixture.profile()?.totalItems == 1)
    }
  }
}
