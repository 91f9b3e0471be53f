#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension OpenAIChat {
  /// The maximum number of tokens that a turn can use.
  ///
  /// Each token of the request is at least one byte of it.
  func usageMax(of turns: [ChatTurn], _ tools: [ToolDescription]) throws -> TokenUsage {
    TokenUsage(
      promptTokens: try JSONEncoder().encode(TurnRequest(self, turns, tools)).count,
      completionTokens: answerTokensMax
    )
  }

  /// Estimates the usage of a turn that was given up.
  func usage(of turns: [ChatTurn], saidBytes: Int) -> TokenUsage {
    TokenUsage(
      promptTokens: TokenUsage.estimate(turns.reduce(0) { $0 + $1.textBytes }),
      completionTokens: TokenUsage.estimate(saidBytes),
      isEstimated: true
    )
  }

  /// Requests the model's next turn, with retries only until its first text.
  ///
  /// `onText` is called while the response is read and must not block. Throws as `ChatModel.reply`
  /// does.
  func reply(
    to turns: [ChatTurn],
    _ tools: [ToolDescription],
    onText: @escaping @Sendable (String) -> Void
  ) async throws -> ChatReply {
    let promptBytes = turns.reduce(0) { $0 + $1.textBytes }
    let most = try usageMax(of: turns, tools)
    return try await server.stream(
      ["chat", "completions"],
      TurnRequest(self, turns, tools),
      silence: silence
    ) {
      ChatStream(promptBytes: promptBytes, usageMax: most)
    } read: { line, stream in
      if let text = try stream.read(line) { onText(text) }
    } hasSpoken: { stream in
      stream.hasText
    } used: { stream in
      stream.used
    } end: { stream in
      try stream.reply()
    }
  }
}

/// The request of a turn, for a stream that ends with its usage.
private struct TurnRequest: Encodable {
  struct StreamOptions: Encodable {
    var include_usage = true
  }

  struct Tool: Encodable {
    struct Function: Encodable {
      var name: String
      var description: String
      var strict = true
      var parameters: JSONType
    }
    var type = "function"
    var function: Function

    init(_ tool: ToolDescription) {
      function = Function(name: tool.name, description: tool.summary, parameters: tool.input)
    }
  }

  var model: String
  var messages: [ChatTurn]
  var max_completion_tokens: Int
  var stream = true
  var stream_options = StreamOptions()
  var tools: [Tool]?

  init(_ chat: OpenAIChat, _ turns: [ChatTurn], _ tools: [ToolDescription]) {
    model = chat.name
    messages = turns
    max_completion_tokens = chat.answerTokensMax
    self.tools = tools.isEmpty ? nil : tools.map(Tool.init)
  }
}

extension ChatTurn: Encodable {
  private enum CodingKeys: String, CodingKey {
    case role, content, tool_calls, tool_call_id
  }

  private struct Call: Encodable {
    struct Function: Encodable {
      var name: String
      var arguments: String
    }
    var id: String
    var type = "function"
    var function: Function
  }

  /// Encodes the turn as a message of a chat completion.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .system(let text):
      try container.encode("system", forKey: .role)
      try container.encode(text, forKey: .content)
    case .user(let text):
      try container.encode("user", forKey: .role)
      try container.encode(text, forKey: .content)
    case .assistant(let text, let calls):
      try container.encode("assistant", forKey: .role)
      try container.encode(text, forKey: .content)
      if !calls.isEmpty {
        let calls = calls.map { call in
          Call(id: call.id, function: .init(name: call.name, arguments: call.arguments))
        }
        try container.encode(calls, forKey: .tool_calls)
      }
    case .tool(let text, let callID):
      try container.encode("tool", forKey: .role)
      try container.encode(text, forKey: .content)
      try container.encode(callID, forKey: .tool_call_id)
    }
  }

  /// The size of the turn's texts in bytes.
  fileprivate var textBytes: Int {
    switch self {
    case .system(let text), .user(let text), .tool(let text, _): text.utf8.count
    case .assistant(let text, let calls):
      text.utf8.count + calls.reduce(0) { $0 + $1.arguments.utf8.count }
    }
  }
}
