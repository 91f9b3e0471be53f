/// What the stub answers.
package struct StubScript: Sendable, Hashable, Codable {
  /// Chat replies, one for each call that no rule takes, in order.
  package var chat: [ScriptedReply]?
  /// Chat replies that stand; the first rule that takes a call answers it.
  package var rules: [Rule]?
  /// How texts become vectors.
  package var embeddings: StubEmbedding?
  /// The models that exist; others are unknown.
  package var models: [String]?
  /// The only key that is taken; any unless given.
  package var key: String?

  /// A script; what is left out stays as it was.
  package init(
    chat: [ScriptedReply]? = nil,
    rules: [Rule]? = nil,
    embeddings: StubEmbedding? = nil,
    models: [String]? = nil,
    key: String? = nil
  ) {
    self.chat = chat
    self.rules = rules
    self.embeddings = embeddings
    self.models = models
    self.key = key
  }

  /// A reply to calls whose last user message has certain words.
  package struct Rule: Sendable, Hashable, Codable {
    /// Words of the last user message; capitals do not matter.
    package var contains: String
    /// Takes calls that end with a tool's result instead of those that end with the user.
    package var afterTool: Bool?
    package var reply: ScriptedReply

    /// A rule.
    package init(contains: String, afterTool: Bool? = nil, reply: ScriptedReply) {
      self.contains = contains
      self.afterTool = afterTool
      self.reply = reply
    }
  }

  /// The models of OpenAI that tests name most.
  static let usualModels = [
    "gpt-4.1-mini", "gpt-4o", "gpt-4o-mini", "gpt-5-mini", "text-embedding-3-large",
    "text-embedding-3-small", "text-embedding-ada-002",
  ]

  /// Throws where a number makes no sense.
  func validate() throws {
    guard (1...20_000).contains(embeddings?.dimension ?? 1) else {
      throw StubRefusal("the dimension of embeddings must be from 1 to 20000")
    }
    let usages = ((chat ?? []) + (rules ?? []).map(\.reply)).compactMap(\.usage)
    for usage in usages where !usage.values.allSatisfy((0...1_000_000_000).contains) {
      throw StubRefusal("a number of a reply's usage is out of range")
    }
  }

  /// Adds replies and rules, and replaces the rest where it is given.
  mutating func add(_ other: StubScript) {
    chat = (chat ?? []) + (other.chat ?? [])
    rules = (rules ?? []) + (other.rules ?? [])
    embeddings = other.embeddings ?? embeddings
    models = other.models ?? models
    key = other.key ?? key
  }

  /// Takes the reply for a call, or nil where none is planned.
  mutating func takeReply(lastUserText: String, endsWithTool: Bool) -> ScriptedReply? {
    let text = lastUserText.lowercased()
    let rule = rules?.first {
      ($0.afterTool ?? false) == endsWithTool && text.contains($0.contains.lowercased())
    }
    if let rule { return rule.reply }
    guard let first = chat?.first else { return nil }
    chat?.removeFirst()
    return first
  }
}

/// One answer of the chat model.
package struct ScriptedReply: Sendable, Hashable, Codable {
  /// The text.
  package var content: String?
  /// The text, given as the JSON that it is.
  package var json: JSON?
  /// The tools that are called.
  package var toolCalls: [ToolCall]?
  /// Words with which the model refuses.
  package var refusal: String?
  /// `stop` or `tool_calls` unless given.
  package var finishReason: String?
  /// Usage instead of what the stub counts.
  package var usage: [String: Int]?
  /// Lets pass what the schemas of the request forbid, as a bad model would.
  package var unchecked: Bool?

  /// A call of a tool.
  package struct ToolCall: Sendable, Hashable, Codable {
    /// `call_1` and so on unless given.
    package var id: String?
    package var name: String
    /// An object; or a string that is sent as it stands.
    package var arguments: JSON

    /// A call.
    package init(id: String? = nil, _ name: String, _ arguments: JSON) {
      self.id = id
      self.name = name
      self.arguments = arguments
    }
  }

  /// A reply.
  package init(
    content: String? = nil,
    json: JSON? = nil,
    toolCalls: [ToolCall]? = nil,
    refusal: String? = nil,
    finishReason: String? = nil,
    usage: [String: Int]? = nil,
    unchecked: Bool? = nil
  ) {
    self.content = content
    self.json = json
    self.toolCalls = toolCalls
    self.refusal = refusal
    self.finishReason = finishReason
    self.usage = usage
    self.unchecked = unchecked
  }

  /// The text as it is sent.
  var text: String? { json?.serialized ?? content }
}
