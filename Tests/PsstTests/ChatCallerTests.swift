import OpenAIStub
@testable import PsstFunctions
@testable import PsstBackend
import Synchronization
import Testing

@Suite("Callers of a chat model", .timeLimit(.minutes(5)))
struct ChatCallerTests {
  @Test("Slow listeners delay no other listener and miss nothing")
  func slowListeners() async throws {
    try await UsageFixture.run { fixture in
      let chat = try #require(fixture.services.chat)
      let (listening, begin) = AsyncStream<Void>.makeStream()
      let gate = SharedResult<Void>()
      try await withThrowingTaskGroup(of: String.self) { group in
        for _ in 0..<16 {
          try fixture.model.reply(ScriptedReply(content: "One two three four five six seven."))
          group.addTask {
            let heard = Heard()
            let reply = try await chat.reply(to: [.user("Hi")], tools: [], for: .user("tom")) {
              begin.yield()
              try await gate.value()
              heard.add($0)
            }
            #expect(heard.text == reply.text)
            return reply.text
          }
        }
        for await _ in listening.prefix(16) {}
        try fixture.model.reply(ScriptedReply(content: "Hello."))
        let reply = try await chat.reply(to: [.user("Hi")], tools: [], for: .user("carl")) { _ in }
        #expect(reply.text == "Hello.")

        gate.finish(.success(()))
        for try await text in group { #expect(text == "One two three four five six seven.") }
      }
    }
  }

  private struct Left: Error {}

  @Test("Who leaves an answer has what was thrown, and does not get it for nothing")
  func leaves() async throws {
    try await UsageFixture.run { fixture in
      let chat = try #require(fixture.services.chat)
      try fixture.model.reply(ScriptedReply(content: "One two three."))
      await #expect(throws: Left.self) {
        _ = try await chat.reply(to: [.user("Hi")], tools: [], for: .user("tom")) { _ in
          throw Left()
        }
      }
      let tokens = try #require(try await fixture.day("tom")?.tokens)
      #expect(tokens > 0)
    }
  }

  @Test("A failure comes after the words that were said before it")
  func failure() async throws {
    try await ProfileFixture.run { fixture in
      let chat = try #require(fixture.functions.services.chat)
      try fixture.model.reply(ScriptedReply(content: "One two three."))
      try fixture.model.fail(StubFault(.chat, truncateAfter: 3))
      let heard = Heard()
      let error = await #expect(throws: ServiceError.self) {
        _ = try await chat.reply(to: [.user("Hi")], tools: [], for: .user("tom")) { heard.add($0) }
      }
      #expect(error?.kind == .unavailable)
      #expect(!heard.text.isEmpty && "One two three.".hasPrefix(heard.text))
    }
  }

  @Test(
    "A server's count is believed only where it can be right",
    arguments: [0, 1_000_000_000]
  )
  func statedUsage(tokens: Int) async throws {
    try await UsageFixture.run { fixture in
      let chat = try #require(fixture.services.chat)
      let usage = ["prompt_tokens": tokens, "completion_tokens": tokens]
      try fixture.model.reply(
        ScriptedReply(content: "Hello.", usage: usage),
        ScriptedReply(json: ["word": "Hello."], usage: usage)
      )
      let turns = [ChatTurn.user("Hi")]
      let reply = try await chat.reply(to: turns, tools: [], for: .user("tom")) { _ in }
      let streamed = try #require(try await fixture.day("tom")?.tokens)
      let answer = try await chat.answer(
        [ChatMessage(.user, "Hi")],
        as: JSONSchema(name: "word", ["word": .string]),
        [String: String].self,
        for: .user("tom")
      )
      let both = try #require(try await fixture.day("tom")?.tokens)

      for usage in [reply.usage, answer.usage] {
        // No more than the bytes of the request, and the longest answer.
        #expect((1...1000).contains(usage.promptTokens))
        #expect((2...4096).contains(usage.completionTokens))
        #expect(usage.isEstimated == (tokens == 0))
      }
      #expect(streamed == reply.usage.totalTokens)
      #expect(both - streamed == answer.usage.totalTokens)
    }
  }
}

/// What a model was heard to say.
private final class Heard: Sendable {
  private let all = Mutex("")
  var text: String { all.withLock { $0 } }
  func add(_ piece: String) { all.withLock { $0 += piece } }
}
