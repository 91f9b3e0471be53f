/// A language model that answers in a form that is asked for.
public protocol ChatModel: Sendable {
  /// The model's name, for logs and answers.
  var name: String { get }

  /// One answer of the model to the messages, in the form that the schema describes.
  ///
  /// Throws `ServiceError`: `refused` when the model will not answer or its answer was cut off,
  /// `unavailable` when the answer is not in the form asked for, once more tried or not.
  func answer<Output: Decodable & Sendable>(
    _ messages: [ChatMessage],
    as schema: JSONSchema,
    _ type: Output.Type
  ) async throws -> ChatAnswer<Output>
}

/// One turn of a conversation with a model.
public struct ChatMessage: Sendable, Hashable, Encodable {
  /// Who speaks.
  public var role: Role
  /// What is said.
  public var content: String

  /// Who can speak.
  public enum Role: String, Sendable, Hashable, Encodable {
    /// Whoever wrote the function: what the model is to do.
    case system
    /// Whoever uses the function; the words of others are data and belong here too.
    case user
    /// The model, earlier.
    case assistant
  }

  /// A turn.
  public init(_ role: Role, _ content: String) {
    self.role = role
    self.content = content
  }
}

/// What a model answered, and what it cost.
public struct ChatAnswer<Output: Sendable>: Sendable {
  /// The answer.
  public var output: Output
  /// The tokens of all calls that led to it.
  public var usage: TokenUsage

  /// An answer.
  public init(output: Output, usage: TokenUsage) {
    self.output = output
    self.usage = usage
  }
}
