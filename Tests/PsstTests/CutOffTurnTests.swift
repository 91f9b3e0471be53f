import FirestoreClient
import Foundation
import FunctionsTesting
import OpenAIStub
import PsstFunctions
@testable import PsstBackend
import PsstServices
import Testing

@Suite("Turns of a model that are cut off")
struct CutOffTurnTests {
  private static let arguments = #"{"text": "Ask \"Carl\" {1} [2]", "dueDate": "2100-05-01T09:00"}"#

  @Test("No beginning of a call's arguments is taken for the whole")
  func beginnings() throws {
    for count in 0..<Self.arguments.utf8.count {
      let half = Data(Self.arguments.utf8.prefix(count))
      #expect(throws: DecodingError.self) { try JSONDecoder().decode(SetReminder.self, from: half) }
    }
    for tail in ["}", "{}", "x", Self.arguments] {
      let more = Data((Self.arguments + tail).utf8)
      #expect(throws: DecodingError.self) { try JSONDecoder().decode(SetReminder.self, from: more) }
    }
    let whole = try JSONDecoder().decode(SetReminder.self, from: Data(Self.arguments.utf8))
    #expect(whole.text == #"Ask "Carl" {1} [2]"#)
  }

  @Test("Whole calls before the cut are carried out, and the one that is cut is an error")
  func halfCall() async throws {
    try await AssistantFixture.run { fixture in
      let half = Self.arguments.dropLast(1)
      try fixture.model.reply(
        ScriptedReply(
          toolCalls: [
            .init(
              "setReminder",
              .object(["text": "Call Carl", "dueDate": .string(fixture.text(hours: 24))])
            ), .init("setReminder", .string(String(half))),
          ],
          finishReason: "length",
          unchecked: true
        ),
        ScriptedReply(content: "Done.")
      )
      let reply = try await fixture.ask("Remind me tomorrow to call Carl")

      #expect(reply.actions.map { $0.parameters["text"] } == ["Call Carl"])
      let results = try #require(try fixture.requests().last?["messages"]?.items)
        .filter { $0["role"] == "tool" }.compactMap { $0["content"]?.text }
      #expect(results.count == 2 && results.last?.contains("error") == true)
      let reminders = try await fixture.suite.firestore.collection("reminders").get()
      #expect(reminders.count == 1)
    }
  }
}
