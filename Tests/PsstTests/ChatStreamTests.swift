import Testing

@testable import PsstBackend

@Suite("A model's turn as a stream")
struct ChatStreamTests {
  private func reply(_ lines: String...) throws -> (texts: [String], reply: ChatReply) {
    var stream = ChatStream(
      promptBytes: 40,
      usageMax: TokenUsage(promptTokens: 100, completionTokens: 4096)
    )
    let texts = try lines.compactMap { try stream.read($0) }
    return (texts, try stream.reply())
  }

  @Test("Text comes piece by piece, with its usage at the end")
  func text() throws {
    let (texts, reply) = try reply(
      #"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
      "",
      ": a comment",
      #"data: {"choices":[{"delta":{"content":"Carl "}}]}"#,
      #"data:{"choices":[{"delta":{"content":"is."},"finish_reason":null}]}"#,
      #"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
      #"data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
      "data: [DONE]"
    )
    #expect(texts == ["Carl ", "is."])
    #expect(
      reply
        == ChatReply(text: "Carl is.", usage: TokenUsage(promptTokens: 7, completionTokens: 2))
    )
  }

  @Test("Fragments of calls are joined by their index, in the order of the indexes")
  func calls() throws {
    let (texts, reply) = try reply(
      #"data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"two"}}]}}]}"#,
      #"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x"}}]}}]}"#,
      #"data: {"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":"\":1}"}}]}}]}"#,
      #"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
      "data: [DONE]"
    )
    #expect(texts.isEmpty)
    #expect(
      reply.calls == [
        ToolCall(id: "a", name: "one", arguments: #"{"x":1}"#),
        ToolCall(id: "b", name: "two", arguments: "{}"),
      ]
    )
    #expect(reply.usage.isEstimated && reply.usage.promptTokens == 10)
  }

  @Test("What is cut off says so")
  func cutOff() throws {
    let (_, reply) = try reply(
      #"data: {"choices":[{"delta":{"content":"Carl"},"finish_reason":"length"}]}"#
    )
    #expect(reply.isCutOff && reply.text == "Carl")
  }

  @Test(
    "A stream that breaks off, is garbage or has an error is no answer, and can be asked for again",
    arguments: [
      #"data: {"choices":[{"delta":{"content":"Carl"}}]}"#, "data: {", "data: 7", "data: ",
      #"data: {"error":{"message":"overloaded"}}"#,
    ]
  )
  func broken(line: String) {
    let error = #expect(throws: ServiceError.self) { try reply(line) }
    #expect(error?.kind == .unavailable)
  }

  @Test(
    "A refusal and a filtered answer are final",
    arguments: [
      #"data: {"choices":[{"delta":{"refusal":"No."},"finish_reason":"stop"}]}"#,
      #"data: {"choices":[{"delta":{"content":"Ca"},"finish_reason":"content_filter"}]}"#,
    ]
  )
  func refused(line: String) {
    let error = #expect(throws: ServiceError.self) { try reply(line) }
    #expect(error?.kind == .refused)
  }

  @Test("A turn without end is ended")
  func tooLong() {
    var stream = ChatStream(
      promptBytes: 40,
      usageMax: TokenUsage(promptTokens: 100, completionTokens: 4096)
    )
    let line =
      #"data: {"choices":[{"delta":{"content":"\#(String(repeating: "x", count: 60_000))"}}]}"#
    let error = #expect(throws: ServiceError.self) {
      for _ in 0..<100 { _ = try stream.read(line) }
    }
    #expect(error?.kind == .refused)
  }
}
