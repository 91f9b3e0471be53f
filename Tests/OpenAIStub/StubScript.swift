/// The scripted replies of the stub.
package struct StubScript: Sendable, Hashable, Codable {
  /// Chat replies for calls that match no rule, used once each in order.
  package var chat: [ScriptedReply]?
  /// Permanent chat replies; the first rule that matches a call answers it.
  package var rules: [Rule]?
  /// The way the stub computes embeddings.
  package var embeddings: StubEmbedding?
  /// The models that exist; all others are unknown.
  package var models: [String]?
  /// The only accepted API key; every key is accepted if this is nil.
  package var key: String?
  /// The arguments of tools that a model words itself, such as the text of a message.
  ///
  /// If set, the book is closed: a reply must take all other texts in its tools' arguments from
  /// the request, as a real model must. Replies that are `unchecked` may break this.
  package var ownWords: [String]?

  /// Creates a script; members left out keep their current settings.
  package init(
    chat: [ScriptedReply]? = nil,
    rules: [Rule]? = nil,
    embeddings: StubEmbedding? = nil,
    models: [String]? = nil,
    key: String? = nil,
    ownWords: [String]? = nil
  ) {
    self.chat = chat
    self.rules = rules
    self.embeddings = embeddings
    self.models = models
    self.key = key
    self.ownWords = ownWords
  }

  /// A reply to calls whose last user message contains certain text.
  package struct Rule: Sendable, Hashable, Codable {
    /// The text to find in the last user message, ignoring case.
    package var contains: String
    /// True to match calls that end with a tool's result instead of a user message.
    package var afterTool: Bool?
    package var reply: ScriptedReply

    /// Creates a rule.
    package init(contains: String, afterTool: Bool? = nil, reply: ScriptedReply) {
      self.contains = contains
      self.afterTool = afterTool
      self.reply = reply
    }
  }

  /// The OpenAI models that tests use most.
  static let usualModels = [
    "gpt-4.1-mini", "gpt-4o", "gpt-4o-mini", "gpt-5-mini", "text-embedding-3-large",
    "text-embedding-3-small", "text-embedding-ada-002",
  ]

  /// Throws if a number is out of range.
  func validate() throws {
    guard (1...20_000).contains(embeddings?.dimension ?? 1) else {
      throw StubError("the dimension of embeddings must be from 1 to 20000")
    }
    let usages = ((chat ?? []) + (rules ?? []).map(\.reply)).compactMap(\.usage)
    for usage in usages where !usage.values.allSatisfy((0...1_000_000_000).contains) {
      throw StubError("a number of a reply's usage is out of range")
    }
  }

  /// Appends replies and rules, and replaces every other member that `other` sets.
  mutating func add(_ other: StubScript) {
    chat = (chat ?? []) + (other.chat ?? [])
    rules = (rules ?? []) + (other.rules ?? [])
    embeddings = other.embeddings ?? embeddings
    models = other.models ?? models
    key = other.key ?? key
    ownWords = other.ownWords ?? ownWords
  }

  /// Throws if a reply uses a text that no model could know from the messages of the request.
  func checkKnown(_ reply: ScriptedReply, in messages: JSON?) throws {
    guard let ownWords, reply.unchecked != true else { return }
    let known = (messages?.items ?? []).compactMap { message in
      message["role"] == "assistant" ? nil : message["content"]?.text
    }
    for call in reply.toolCalls ?? [] {
      for (name, value) in call.arguments.properties ?? [:] where !ownWords.contains(name) {
        guard let text = value.text, !known.contains(where: { $0.contains(text) }) else { continue }
        throw StubError.unscripted(
          "\(call.name) is called with \(name) \"\(text)\", which stood in no prompt or result"
        )
      }
    }
  }

  /// Removes and returns the reply for a call; nil if none is planned.
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

/// A reply of the chat model.
package struct ScriptedReply: Sendable, Hashable, Codable {
  /// The text of the reply.
  package var content: String?
  /// The text of the reply as a JSON value.
  package var json: JSON?
  /// The tool calls of the reply.
  package var toolCalls: [ToolCall]?
  /// The model's refusal text.
  package var refusal: String?
  /// The finish reason; by default `stop` or `tool_calls`.
  package var finishReason: String?
  /// The token usage; by default the stub counts it.
  package var usage: [String: Int]?
  /// True to send a reply that violates the request's schemas, as a faulty model would.
  package var unchecked: Bool?

  /// A call of a tool.
  package struct ToolCall: Sendable, Hashable, Codable {
    /// The ID; by default `call_1`, `call_2` and so on.
    package var id: String?
    package var name: String
    /// The arguments: an object, or a string that is sent verbatim.
    package var arguments: JSON

    /// Creates a tool call.
    package init(id: String? = nil, _ name: String, _ arguments: JSON) {
      self.id = id
      self.name = name
      self.arguments = arguments
    }
  }

  /// Creates a reply.
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

  /// The text to send, from `json` or `content`.
  var text: String? { json?.serialized ?? content }
}
