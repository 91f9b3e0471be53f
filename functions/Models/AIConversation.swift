public import FirestoreClient

/// A conversation with the assistant, `users/{uid}/ai_conversations/{conversationId}`.
///
/// Its owner reads it, and only the server writes it.
public struct AIConversation: Codable, Sendable, Hashable {
  /// When it began.
  public var createdAt: Timestamp
  /// When somebody last said something.
  public var updatedAt: Timestamp
  /// What was said up to `summarizedUntil`, in short; nil while all turns are few enough.
  public var summary: String?
  /// The time of the last turn that the summary is about.
  public var summarizedUntil: Timestamp?

  /// A conversation.
  public init(createdAt: Timestamp, updatedAt: Timestamp) {
    self.createdAt = createdAt
    self.updatedAt = updatedAt
  }

  /// Where a user's conversations are stored, below the user.
  public static let collection = "ai_conversations"
}

/// What was said in a conversation with the assistant, `…/ai_conversations/{id}/messages/{id}`.
public struct AIMessage: Codable, Sendable, Hashable {
  /// Who said it.
  public var role: Role
  /// What was said.
  public var content: String
  /// When it was said.
  public var timestamp: Timestamp
  /// The question and its answer have the same.
  public var turnId: String
  /// The ids of the actions that the assistant took or proposed; nil for none.
  public var actionIds: [String]?
  /// The tokens that the answer used; nil for a question.
  public var tokens: Int?

  /// Who speaks in a conversation.
  public enum Role: String, Codable, Sendable, Hashable {
    case user, assistant, tool
  }

  /// Something that was said.
  public init(
    role: Role,
    content: String,
    timestamp: Timestamp,
    turnId: String,
    actionIds: [String]? = nil,
    tokens: Int? = nil
  ) {
    self.role = role
    self.content = content
    self.timestamp = timestamp
    self.turnId = turnId
    self.actionIds = actionIds
    self.tokens = tokens
  }

  /// Where what was said is stored, below its conversation.
  public static let collection = "messages"
}
