public import FirestoreClient

/// A conversation with the assistant.
///
/// It is stored at `users/{uid}/ai_conversations/{conversationId}`. Its owner can read it, and only
/// the server writes it.
public struct AIConversation: Codable, Sendable, Hashable {
  /// The time at which the conversation began.
  public var createdAt: Timestamp
  /// The time of the latest question or answer.
  public var updatedAt: Timestamp
  /// The summary of the turns up to `summarizedUntil`; nil while there are few turns.
  public var summary: String?
  /// The time of the last question in the summary, which also covers its answer.
  public var summarizedUntil: Timestamp?
  /// The time before which no summary is attempted after a failure; nil otherwise.
  public var noSummaryBefore: Timestamp?

  /// Creates a conversation without a summary.
  public init(createdAt: Timestamp, updatedAt: Timestamp) {
    self.createdAt = createdAt
    self.updatedAt = updatedAt
  }

  /// The name of the collection of conversations below a user.
  public static let collection = "ai_conversations"
}

/// A question or an answer in a conversation with the assistant.
///
/// It is stored at `…/ai_conversations/{id}/messages/{id}`. A turn has a question with the id
/// `{turnId}-question` and, once answered, an answer with the id `{turnId}-answer`.
public struct AIMessage: Codable, Sendable, Hashable {
  /// The author of the message.
  public var role: Role
  /// The text of the message.
  public var content: String
  /// The time of the message.
  public var timestamp: Timestamp
  /// The id of the turn, the same for a question and its answer.
  public var turnId: String
  /// The claim of the attempt that answers the question now; nil if there is none.
  public var claim: AIClaim?
  /// The ids of the actions recorded by attempts at the question; nil if there are none.
  public var actionIds: [String]?
  /// The details of an answer; nil for a question.
  public var answer: AIAnswer?

  /// The authors of messages in a conversation.
  public enum Role: String, Codable, Sendable, Hashable {
    case user, assistant, tool
  }

  /// Creates a question or an answer.
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

  /// The name of the collection of messages below a conversation.
  public static let collection = "messages"
}

/// The claim of one attempt to answer a question.
public struct AIClaim: Codable, Sendable, Hashable {
  /// The id of the attempt.
  public var attemptId: String
  /// The time at which the claim ends unless it is renewed.
  public var until: Timestamp

  /// Creates a claim that ends at the given time.
  public init(attemptId: String, until: Timestamp) {
    self.attemptId = attemptId
    self.until = until
  }
}

/// The details of an answer, stored so that the answer can be returned again.
public struct AIAnswer: Codable, Sendable, Hashable {
  /// The messages that the answer is based on.
  public var sources: [Source]
  /// The ids of the actions that the assistant took or proposed, in order.
  public var actionIds: [String]
  /// The tool calls of the attempt that answered, in order; nil if there were none.
  public var toolCalls: [ToolCall]?
  /// The number of tokens that the model read.
  public var promptTokens: Int
  /// The number of tokens that the model wrote.
  public var completionTokens: Int
  /// The name of the model; nil if no model answered.
  public var model: String?
  /// The reason that the answer is incomplete; nil if it is complete.
  public var note: String?

  /// The location of a source.
  ///
  /// The text is not stored, but read again for each reader.
  public struct Source: Codable, Sendable, Hashable {
    /// The number by which the answer cites the message.
    public var number: Int
    /// The id of the chat that holds the message.
    public var chatId: String
    /// The message's id.
    public var messageId: String
    /// The similarity of the message to the question.
    public var score: Double

    /// Creates a source with its citation number.
    public init(number: Int, chatId: String, messageId: String, score: Double) {
      self.number = number
      self.chatId = chatId
      self.messageId = messageId
      self.score = score
    }
  }

  /// A tool call of the model.
  public struct ToolCall: Codable, Sendable, Hashable {
    /// The name of the tool, of which at most 64 bytes are stored.
    public var name: String
    /// The arguments as the model wrote them, of which at most 2000 bytes are stored.
    public var arguments: String

    /// Creates a tool call with the beginnings of its name and its arguments.
    public init(name: String, arguments: String) {
      self.name = name.prefix(bytesMax: Self.nameBytesMax)
      self.arguments = arguments.prefix(bytesMax: Self.argumentsBytesMax)
    }

    /// The length of the longest name that a provider accepts; a model can make up a longer one.
    private static let nameBytesMax = 64
    /// The size that keeps all calls of an answer far below the size limit of a document.
    private static let argumentsBytesMax = 2000
  }

  /// Creates the details of an answer.
  public init(
    sources: [Source],
    actionIds: [String],
    toolCalls: [ToolCall]? = nil,
    promptTokens: Int,
    completionTokens: Int,
    model: String? = nil,
    note: String? = nil
  ) {
    self.sources = sources
    self.actionIds = actionIds
    self.toolCalls = toolCalls
    self.promptTokens = promptTokens
    self.completionTokens = completionTokens
    self.model = model
    self.note = note
  }
}
