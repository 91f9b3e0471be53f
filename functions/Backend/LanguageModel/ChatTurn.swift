/// One turn of a conversation with a model that may call tools.
public enum ChatTurn: Sendable, Hashable {
  /// The instructions of the function's author.
  case system(String)
  /// The question of the function's user.
  ///
  /// Texts of other people are data and belong here or in `tool`.
  case user(String)
  /// The text of the model and the tools that it called.
  case assistant(String, calls: [ToolCall])
  /// The result of a tool call, directly after the turn with the call.
  case tool(String, callID: String)
}

/// A call of a tool that the model requests.
public struct ToolCall: Codable, Sendable, Hashable {
  /// The id that the model gave the call.
  public var id: String
  /// The name of the tool.
  public var name: String
  /// The arguments as the model wrote them, not necessarily valid JSON.
  public var arguments: String

  /// Creates a call of a tool.
  public init(id: String, name: String, arguments: String) {
    self.id = id
    self.name = name
    self.arguments = arguments
  }
}

/// The description of a tool that is offered to a model.
public struct ToolDescription: Sendable, Hashable {
  /// The name of the tool, of at most 64 letters, digits, `_` and `-`.
  public var name: String
  /// A sentence for the model on what the tool does and when to call it.
  public var summary: String
  /// The type of the arguments, an object.
  public var input: JSONType

  /// Creates a description of a tool.
  public init(name: String, summary: String, input: JSONType) {
    self.name = name
    self.summary = summary
    self.input = input
  }
}

/// The model's output in one turn.
public struct ChatReply: Sendable, Hashable {
  /// The text; empty if the model only calls tools.
  public var text: String
  /// The calls of tools, in the model's order.
  public var calls: [ToolCall]
  /// True if the text was cut off at the token limit.
  public var isCutOff: Bool
  /// The tokens used by the turn.
  public var usage: TokenUsage

  /// Creates the output of one turn.
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
