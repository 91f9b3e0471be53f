import OpenAIStub
import OutboundHTTP
@testable import PsstBackend
import TestSupport
import Testing

@Suite("Structured answers of a chat model")
struct OpenAIChatTests {
  private let providers = StubbedProviders()

  private struct Facts: Decodable, Sendable, Hashable {
    struct Fact: Decodable, Sendable, Hashable {
      var category: String
      var text: String
    }
    var facts: [Fact]
  }

  private static let schema = JSONSchema(
    name: "facts",
    [
      "facts": .array(
        of: .object([
          "category": .string(enum: ["injuries", "goals"]),
          "text": .string.described("what was said, in a few words"),
        ])
      )
    ]
  )
  private static let knee: JSON = ["facts": [["category": "injuries", "text": "sore knee"]]]
  private static let messages = [
    ChatMessage(.system, "List the facts."), ChatMessage(.user, "My knee is sore"),
  ]

  private func ask() async throws -> ChatAnswer<Facts> {
    try await providers.chat().answer(Self.messages, as: Self.schema, Facts.self) { request in
      var usage = TokenUsage()
      return try await request(&usage)
    }
  }

  private func failure() async throws -> ServiceError? {
    do {
      _ = try await ask()
      return nil
    } catch let error as ServiceError {
      return error
    }
  }

  @Test("An answer is read and its tokens are counted; the request is what the API takes")
  func answer() async throws {
    // The stub rejects a schema that is not strict and a reply that violates the schema.
    try providers.stub.reply(
      ScriptedReply(json: Self.knee, usage: ["prompt_tokens": 40, "completion_tokens": 9])
    )
    let answer = try await ask()
    let request = providers.stub.journal.entries.first?.request

    #expect(answer.output.facts == [Facts.Fact(category: "injuries", text: "sore knee")])
    #expect(answer.usage == TokenUsage(promptTokens: 40, completionTokens: 9))
    #expect(request?["model"] == "gpt-4o-mini")
    #expect(request?["messages"]?.items?.map { $0["role"]?.text } == ["system", "user"])
    #expect(request?["response_format"]?["json_schema"]?["strict"] == true)
    #expect((request?["max_completion_tokens"]?.number ?? 0) > 0)
  }

  @Test(
    "An answer in another form is asked for once more, and both are paid for",
    arguments: [
      ScriptedReply(content: "My knee", unchecked: true),
      ScriptedReply(content: #"{"facts": [{"cat"#, unchecked: true),
      ScriptedReply(json: ["facts": [["category": "injuries"]]], unchecked: true),
    ]
  )
  func secondAttempt(wrong: ScriptedReply) async throws {
    var wrong = wrong
    wrong.usage = ["prompt_tokens": 40, "completion_tokens": 3]
    let right = ScriptedReply(
      json: Self.knee,
      usage: ["prompt_tokens": 40, "completion_tokens": 9]
    )
    try providers.stub.reply(wrong, right)
    let answer = try await ask()

    #expect(answer.output.facts.count == 1)
    #expect(answer.usage == TokenUsage(promptTokens: 80, completionTokens: 12))
    #expect(providers.waits.all.isEmpty)
  }

  @Test("The longest answer uses no more than a request reserves")
  func reservation() async throws {
    let longest = ScriptedReply(
      content: "My knee",
      usage: ["completion_tokens": 4096],
      unchecked: true
    )
    try providers.stub.reply(longest, longest)
    let usage = try #require(try await failure()).usage
    let most = try providers.chat().usageMax(of: Self.messages, as: Self.schema)
    #expect(usage.completionTokens == 8192 && most.completionTokens == 4096)
    #expect(usage.promptTokens > 0 && usage.promptTokens <= 2 * most.promptTokens)
  }

  @Test("Two answers in another form are an error that says nothing of what was written")
  func twiceWrong() async throws {
    let wrong = ScriptedReply(content: "My secret knee", unchecked: true)
    try providers.stub.reply(wrong, wrong, wrong)
    let error = try await failure()

    // A retry would most likely pay for the same reply again.
    #expect(error?.kind == .refused)
    #expect(error?.message.contains("secret") == false)
    #expect(providers.stub.repliesLeft == 1)
  }

  @Test(
    "A refusal, a cut response and a filter are distinguished from failures and not retried",
    arguments: [
      ScriptedReply(refusal: "I can't help with that."),
      ScriptedReply(content: #"{"facts": ["#, finishReason: "length"),
      ScriptedReply(content: "", finishReason: "content_filter"),
    ]
  )
  func refusals(reply: ScriptedReply) async throws {
    try providers.stub.reply(reply)

    #expect(try await failure()?.kind == .refused)
    #expect(providers.stub.journal.entries.count == 1)
  }

  @Test("A call without a scripted reply is refused and not retried")
  func unscripted() async throws {
    #expect(try await failure()?.kind == .refused)
    #expect(providers.stub.journal.entries.count == 1)
  }

  @Test(
    "What passes is tried again",
    arguments: [
      StubFault(.chat, status: 500), StubFault(.chat, status: 429),
      StubFault(.chat, delaySeconds: 600), StubFault(.chat, reset: true),
      StubFault(.chat, body: "<html>"), StubFault(.chat, body: ["choices": []]),
      StubFault(.chat, body: ["choices": [["message": ["content": nil]]]]),
      StubFault(.chat, alter: .halfJSON),
    ]
  )
  func transient(fault: StubFault) async throws {
    try providers.stub.reply(ScriptedReply(json: Self.knee), ScriptedReply(json: Self.knee))
    try providers.stub.fail(fault)

    #expect(try await ask().output.facts.count == 1)
    #expect(providers.stub.journal.entries.count == 2)
    #expect(providers.waits.all == [.milliseconds(500)])
  }

  @Test("Tokens that a server does not count are estimated and said to be")
  func estimate() async throws {
    try providers.stub.reply(ScriptedReply(json: Self.knee))
    try providers.stub.fail(StubFault(.chat, alter: .withoutUsage))
    let usage = try await ask().usage

    #expect(usage.isEstimated)
    #expect(usage.promptTokens > 0 && usage.completionTokens > 0)
  }

  @Test("Fields that are new or missing do not matter")
  func lenient() async throws {
    let reply: JSON = [
      "choices": [["message": ["content": .string(Self.knee.serialized), "mood": "good"]]],
      "usage": ["prompt_tokens": 1, "completion_tokens": 2, "cost": ["eur": 0.1]], "object": 7,
    ]
    try providers.stub.fail(StubFault(.chat, body: reply))

    #expect(try await ask().usage == TokenUsage(promptTokens: 1, completionTokens: 2))
  }

  @Test("A chat model needs a name, and a key or an address; none of them is guessed")
  func settings() throws {
    func chat(_ environment: [String: String]) throws -> ChatSettings {
      try PsstSettings(environment: environment).chat
    }
    #expect(try chat([:]) == .none)
    #expect(try chat(["OPENAI_API_KEY": "k"]) == .none)
    #expect(try chat(["PSST_CHAT_MODEL": "m"]) == .none)
    #expect(try chat(["PSST_CHAT_MODEL": "", "OPENAI_API_KEY": "k"]) == .none)
    #expect(
      try chat(["PSST_CHAT_MODEL": "m", "OPENAI_API_KEY": "k"])
        == .openAI(baseURL: "https://api.openai.com/v1", key: "k", model: "m")
    )
    #expect(
      try chat(["PSST_CHAT_MODEL": "m", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"])
        == .openAI(baseURL: "http://127.0.0.1:1/v1", key: nil, model: "m")
    )
  }
}
