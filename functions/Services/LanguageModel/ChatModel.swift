/// A language model that answers in a requested form.
public protocol ChatModel: Sendable {
  /// The model's name, for logs and answers.
  var name: String { get }
  /// What the model's tokens cost; nil when it is not known.
  var price: ModelPrice? { get }

  /// Throws `ServiceError` where a call would, as far as it is known without asking anybody.
  ///
  /// For work before a call that would be for nothing.
  func check(for payer: Payer) throws

  /// One answer of the model to the messages, in the form that the schema describes.
  ///
  /// Charges the call to the payer. Throws `ServiceError`: `refused` when the model will not
  /// answer, its answer was cut off, or does not have the requested form, even if tried once more;
  /// `limitReached` when the payer or all together have used their day's share.
  func answer<Output: Decodable & Sendable>(
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    _ type: Output.Type,
    for payer: Payer
  ) async throws -> ChatAnswer<Output>

  /// The model's next turn of a conversation, in which it may call the tools; none may be called
  /// where there are none.
  ///
  /// Calls `onText` with the text as the model says it, and throws what `onText` throws. Charges the
  /// turn to the payer. Throws `ServiceError` as `answer` does.
  func reply(
    to turns: [ChatTurn],
    tools: [ToolDescription],
    for payer: Payer,
    onText: @escaping @Sendable (String) async throws -> Void
  ) async throws -> ChatReply
}

/// One turn of a conversation with a model.
public struct ChatMessage: Sendable, Hashable, Encodable {
  /// Who speaks.
  public var role: Role
  /// What is said.
  public var content: String

  /// Who can speak.
  public enum Role: String, Sendable, Hashable, Encodable {
    /// The author of the function, saying what the model must do.
    case system
    /// The user of the function; the words of other people are data and belong here too.
    case user
    /// An earlier answer of the model.
    case assistant
  }

  /// A turn.
  public init(_ role: Role, _ content: String) {
    self.role = role
    self.content = content
  }
}

/// A model's answer and what it cost.
public struct ChatAnswer<Output: Sendable>: Sendable {
  /// The answer.
  public var output: Output
  /// The tokens of all calls that led to the answer.
  public var usage: TokenUsage

  /// An answer.
  public init(output: Output, usage: TokenUsage) {
    self.output = output
    self.usage = usage
  }
}
