public import FirestoreClient

/// A conversation with the assistant, `users/{uid}/ai_conversations/{conversationId}`.
///
/// Its owner reads it, and only the server writes it.
public struct AIConversation: Codable, Sendable, Hashable {
  /// When it began.
  public var createdAt: Timestamp
  /// When something was last said.
  public var updatedAt: Timestamp
  /// What was said up to `summarizedUntil`, in short; nil while all turns are few enough.
  public var summary: String?
  /// The time of the last question that the summary covers, with its answer.
  public var summarizedUntil: Timestamp?
  /// Until when no summary is tried again, because the last one failed; nil otherwise.
  public var noSummaryBefore: Timestamp?

  /// A conversation.
  public init(createdAt: Timestamp, updatedAt: Timestamp) {
    self.createdAt = createdAt
    self.updatedAt = updatedAt
  }

  /// Where a user's conversations are stored, below the user.
  public static let collection = "ai_conversations"
}

/// What was said in a conversation with the assistant, `…/ai_conversations/{id}/messages/{id}`.
///
/// A turn has a question, `{turnId}-question`, and once it is answered an answer,
/// `{turnId}-answer`.
public struct AIMessage: Codable, Sendable, Hashable {
  /// Who said it.
  public var role: Role
  /// What was said.
  public var content: String
  /// When it was said.
  public var timestamp: Timestamp
  /// The question and its answer have the same.
  public var turnId: String
  /// The attempt that answers the question now; nil while none does, and for an answer.
  public var claim: AIClaim?
  /// The ids of the actions that the attempts at the question took or proposed; nil for none.
  public var actionIds: [String]?
  /// What comes with an answer; nil for a question.
  public var answer: AIAnswer?

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
    claim: AIClaim? = nil,
    actionIds: [String]? = nil,
    answer: AIAnswer? = nil
  ) {
    self.role = role
    self.content = content
    self.timestamp = timestamp
    self.turnId = turnId
    self.claim = claim
    self.actionIds = actionIds
    self.answer = answer
  }

  /// Where what was said is stored, below its conversation.
  public static let collection = "messages"
}

/// The claim of one attempt to answer a question.
public struct AIClaim: Codable, Sendable, Hashable {
  /// The attempt.
  public var attemptId: String
  /// When the claim ends unless it is renewed.
  public var until: Timestamp

  /// A claim.
  public init(attemptId: String, until: Timestamp) {
    self.attemptId = attemptId
    self.until = until
  }
}

/// What comes with an answer of the assistant, so that it can be given again.
public struct AIAnswer: Codable, Sendable, Hashable {
  /// The messages that the answer rests on.
  public var sources: [Source]
  /// The ids of the actions that the assistant took or proposed, in order.
  public var actionIds: [String]
  /// The tokens that the model read.
  public var promptTokens: Int
  /// The tokens that the model wrote.
  public var completionTokens: Int
  /// The model; nil where none answered.
  public var model: String?
  /// What the answer lacks; nil when it lacks nothing.
  public var note: String?

  /// The place of a message, without its words: those are read again for each reader.
  public struct Source: Codable, Sendable, Hashable {
    /// The number by which the answer cites the message.
    public var number: Int
    /// The chat that holds the message.
    public var chatId: String
    /// The message's id.
    public var messageId: String
    /// How close the message was to the question.
    public var score: Double

    /// A source.
    public init(number: Int, chatId: String, messageId: String, score: Double) {
      self.number = number
      self.chatId = chatId
      self.messageId = messageId
      self.score = score
    }
  }

  /// What comes with an answer.
  public init(
    sources: [Source],
    actionIds: [String],
    promptTokens: Int,
    completionTokens: Int,
    model: String? = nil,
    note: String? = nil
  ) {
    self.sources = sources
    self.actionIds = actionIds
    self.promptTokens = promptTokens
    self.completionTokens = completionTokens
    self.model = model
    self.note = note
  }
}
