@testable import PsstServices
import Testing

@Suite("Small talk")
struct SmallTalkTests {
  @Test(
    "Greetings, single words, numbers and signs are small talk",
    arguments: [
      "ok", "OK!", "👍", "👍🏽🙏", "Hi Tina", "Good morning", "good morning Tina!", "Thank you so much",
      "thanks", "See you tomorrow", "Knee", "12345", "3 x 12", "?!", "你好", "", "Hello there",
    ]
  )
  func trivial(text: String) {
    #expect(SmallTalk.matches(text))
  }

  @Test(
    "A text that may state a fact is not",
    arguments: [
      "sore knee", "No sleep", "no gluten", "My knee hurts", "So tired", "Hi Tina, my knee hurts",
      "我的膝盖很疼", "膝が痛いです", "เข่าของฉันเจ็บ", "Колено болит", "ok, no gluten", "I'm injured",
    ]
  )
  func content(text: String) {
    #expect(!SmallTalk.matches(text))
  }
}
