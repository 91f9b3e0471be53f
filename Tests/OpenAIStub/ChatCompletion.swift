/// A chat completion in the API's two forms: a whole response, or the events of a stream.
struct ChatCompletion {
  let id: String
  let call: ChatCall
  let reply: ScriptedReply
  let hasUsage: Bool

  /// The number of characters in a stream fragment; small, so that clients must assemble fragments.
  private static let fragmentLength = 8
  /// A fixed creation time, so that responses do not depend on the clock.
  private static let created: JSON = 1_767_225_600

  var response: StubResponse {
    call.isStream ? StubResponse(events: events) : StubResponse(whole)
  }

  private var toolCalls: [(id: String, name: String, arguments: String)] {
    (reply.toolCalls ?? []).enumerated().map { index, call in
      (
        call.id ?? "call_\(id)_\(index + 1)", call.name,
        call.arguments.text ?? call.arguments.serialized
      )
    }
  }

  private var finishReason: JSON {
    .string(reply.finishReason ?? (toolCalls.isEmpty ? "stop" : "tool_calls"))
  }

  private var usage: JSON {
    let written = toolCalls.map(\.arguments) + [reply.text, reply.refusal].compactMap { $0 }
    let completion =
      reply.usage?["completion_tokens"] ?? written.reduce(0) { $0 + TokenCount.of($1) }
    let prompt = reply.usage?["prompt_tokens"] ?? call.promptTokens
    return [
      "prompt_tokens": JSON(prompt), "completion_tokens": JSON(completion),
      "total_tokens": JSON(prompt + completion),
      "prompt_tokens_details": ["cached_tokens": JSON(reply.usage?["cached_tokens"] ?? 0)],
      "completion_tokens_details": [
        "reasoning_tokens": JSON(reply.usage?["reasoning_tokens"] ?? 0)
      ],
    ]
  }

  private func frame(_ object: JSON, _ choices: [JSON]) -> [String: JSON] {
    [
      "id": .string("chatcmpl-\(id)"), "object": object, "created": Self.created,
      "model": .string(call.model), "choices": .array(choices),
    ]
  }

  private var whole: JSON {
    var message: [String: JSON] = [
      "role": "assistant", "content": reply.text.map { .string($0) } ?? .null,
      "refusal": reply.refusal.map { .string($0) } ?? .null,
    ]
    if !toolCalls.isEmpty {
      message["tool_calls"] = .array(
        toolCalls.map {
          [
            "id": .string($0.id), "type": "function",
            "function": ["name": .string($0.name), "arguments": .string($0.arguments)],
          ]
        }
      )
    }
    let choice: JSON = [
      "index": 0, "message": .object(message), "logprobs": nil, "finish_reason": finishReason,
    ]
    var body = frame("chat.completion", [choice])
    if hasUsage { body["usage"] = usage }
    return .object(body)
  }

  private var events: [JSON] {
    var deltas: [JSON] = [["role": "assistant", "content": reply.text == nil ? nil : ""]]
    deltas += Self.fragments(reply.text).map { ["content": .string($0)] }
    deltas += Self.fragments(reply.refusal).map { ["refusal": .string($0)] }
    for (index, call) in toolCalls.enumerated() {
      let start: JSON = [
        "index": JSON(index), "id": .string(call.id), "type": "function",
        "function": ["name": .string(call.name), "arguments": ""],
      ]
      deltas.append(["tool_calls": [start]])
      deltas += Self.fragments(call.arguments).map { fragment in
        let part: JSON = ["index": JSON(index), "function": ["arguments": .string(fragment)]]
        return ["tool_calls": [part]]
      }
    }
    var events = deltas.map { chunk($0, nil) }
    events.append(chunk([:], finishReason))
    if call.includesUsage, hasUsage {
      var last = frame("chat.completion.chunk", [])
      last["usage"] = usage
      events.append(.object(last))
    }
    return events
  }

  private func chunk(_ delta: JSON, _ finishReason: JSON) -> JSON {
    let choice: JSON = [
      "index": 0, "delta": delta, "logprobs": nil, "finish_reason": finishReason,
    ]
    var chunk = frame("chat.completion.chunk", [choice])
    if call.includesUsage { chunk["usage"] = .null }
    return .object(chunk)
  }

  private static func fragments(_ text: String?) -> [String] {
    var rest = Substring(text ?? "")
    var fragments: [String] = []
    while !rest.isEmpty {
      fragments.append(String(rest.prefix(fragmentLength)))
      rest = rest.dropFirst(fragmentLength)
    }
    return fragments
  }
}
