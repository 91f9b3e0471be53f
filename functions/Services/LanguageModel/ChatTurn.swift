/// One turn of a conversation with a model that may call tools.
public enum ChatTurn: Sendable, Hashable {
  /// What the author of the function wants of the model.
  case system(String)
  /// What the user of the function asks; other people's words are data and belong here or below.
  case user(String)
  /// What the model said, and which tools it called.
  case assistant(String, calls: [ToolCall])
  /// What a tool answered to a call, right behind the turn that has the call.
  case tool(String, callID: String)
}

/// A tool that the model wants to be called.
public struct ToolCall: Codable, Sendable, Hashable {
  /// The model's name for this call.
  public var id: String
  /// The tool.
  public var name: String
  /// The arguments, as the model wrote them: JSON, or not.
  public var arguments: String

  /// A call.
  public init(id: String, name: String, arguments: String) {
    self.id = id
    self.name = name
    self.arguments = arguments
  }
}

/// A tool as a model is offered it.
public struct ToolDescription: Sendable, Hashable {
  /// At most 64 letters, digits, `_` and `-`.
  public var name: String
  /// What the tool does and when to call it.
  public var summary: String
  /// The form of the arguments; an object.
  public var input: JSONType

  /// A tool.
  public init(name: String, summary: String, input: JSONType) {
    self.name = name
    self.summary = summary
    self.input = input
  }
}

/// What a model said in one turn.
public struct ChatReply: Sendable, Hashable {
  /// The text; empty when the model only calls tools.
  public var text: String
  /// The tools that the model calls, in its order.
  public var calls: [ToolCall]
  /// Whether the text was cut off at the most tokens it may have.
  public var isCutOff: Bool
  /// The tokens of the turn.
  public var usage: TokenUsage

  /// A turn of the model.
  public init(
    text: String = "",
    calls: [ToolCall] = [],
    isCutOff: Bool = false,
    usage: TokenUsage = TokenUsage()
  ) {
    self.text = text
    self.calls = calls
    self.isCutOff = isCutOff
    self.usage = usage
  }
}
