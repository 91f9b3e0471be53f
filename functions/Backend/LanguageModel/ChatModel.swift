/// A language model whose answers can be required to follow a schema.
public protocol ChatModel: Sendable {
  /// The model's name, for logs and answers.
  var name: String { get }
  /// The price of the model's tokens; nil if unknown.
  var price: ModelPrice? { get }

  /// Throws the `ServiceError` that a call would throw, as far as known without a request.
  ///
  /// Call this before work that is only useful if the model can be called.
  func check(for payer: Payer) throws

  /// Requests one answer to the messages, in the form that the schema describes.
  ///
  /// Charges the call to the payer. Throws `ServiceError`: `refused` if the model refuses, or if
  /// its answer was cut off or does not follow the schema even after a second attempt;
  /// `limitReached` if the payer, or all payers together, have used up the limit of the day.
  func answer<Output: Decodable & Sendable>(
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    _ type: Output.Type,
    for payer: Payer
  ) async throws -> ChatAnswer<Output>

  /// Requests the model's next turn of a conversation, in which it may call the given tools.
  ///
  /// If `tools` is empty, the model cannot call any. `onText` gets the text as it arrives, and its
  /// errors are rethrown. Charges the turn to the payer. Throws `ServiceError` as `answer` does.
  func reply(
    to turns: [ChatTurn],
    tools: [ToolDescription],
    for payer: Payer,
    onText: @escaping @Sendable (String) async throws -> Void
  ) async throws -> ChatReply
}

/// A message in a conversation with a model.
public struct ChatMessage: Sendable, Hashable, Encodable {
  /// The author of the message.
  public var role: Role
  /// The text of the message.
  public var content: String

  /// The possible authors of a message.
  public enum Role: String, Sendable, Hashable, Encodable {
    /// The author of the function, who gives the model its instructions.
    case system
    /// The user of the function.
    ///
    /// Texts of other people are data and belong here too.
    case user
    /// An earlier answer of the model.
    case assistant
  }

  /// Creates a message of the given author.
  public init(_ role: Role, _ content: String) {
    self.role = role
    self.content = content
  }
}

/// A model's answer and the tokens it used.
public struct ChatAnswer<Output: Sendable>: Sendable {
  /// The decoded answer.
  public var output: Output
  /// The tokens used by all calls that led to the answer.
  public var usage: TokenUsage

  /// Creates an answer with the tokens it used.
  public init(output: Output, usage: TokenUsage) {
    self.output = output
    self.usage = usage
  }
}
