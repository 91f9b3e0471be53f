import FirestoreClient
public import PsstModels

/// The request of `chatWithAI`.
public struct ChatWithAIRequest: Codable, Sendable, Hashable {
  /// The text of the question.
  public var message: String
  /// The id of the conversation to continue; a new conversation begins if nil.
  public var conversationId: String?
  /// The client's id for this question, such as a UUID.
  ///
  /// A client that sends a question again must reuse the id of the first attempt. A question that
  /// was already answered gets its stored answer, and its actions are not repeated.
  public var requestId: String?

  /// Creates a request; without a conversation's id it begins a new conversation.
  public init(message: String, conversationId: String? = nil, requestId: String? = nil) {
    self.message = message
    self.conversationId = conversationId
    self.requestId = requestId
  }
}

/// An event that `chatWithAI` streams before its reply.
public struct ChatWithAIChunk: Codable, Sendable, Hashable {
  /// The kind of the event.
  public var type: Kind
  /// The text to append to the answer; nil for an event of a tool.
  public var text: String?
  /// The name of the tool; nil for text.
  public var tool: String?

  /// The kinds of events.
  public enum Kind: String, Codable, Sendable, Hashable {
    case text, toolBegins, toolEnds
  }

  /// Creates an event.
  public init(type: Kind, text: String? = nil, tool: String? = nil) {
    self.type = type
    self.text = text
    self.tool = tool
  }
}

/// The result of `chatWithAI`.
public struct ChatWithAIReply: Codable, Sendable, Hashable {
  /// The id of the conversation, to continue it with another question.
  public var conversationId: String
  /// The text of the answer.
  public var reply: String
  /// The messages that the answer is based on.
  public var sources: [Source]
  /// The actions that were done, proposed, refused or failed.
  public var actions: [Action]
  /// The tokens that this question used.
  public var usage: Usage
  /// The name of the model that answered; null if no model answered.
  @Nullable public var model: String?
  /// True if the answer is incomplete or does not come from the model.
  public var degraded: Bool
  /// The reason that the answer is incomplete; null if it is complete.
  @Nullable public var note: String?

  /// A message that the answer is based on.
  public struct Source: Codable, Sendable, Hashable {
    /// The number by which the answer cites the message, as in `[2]`.
    public var number: Int
    /// The message's id.
    public var messageId: String
    /// The id of the chat that holds the message.
    public var chatId: String
    /// The id of the user who wrote the message.
    public var senderId: String
    /// The sender's current name; empty if unknown.
    public var senderName: String
    /// The message's current text.
    public var text: String
    /// The time of the message in milliseconds since 1970.
    public var timestamp: Int64
    /// The similarity of the message to the question; at most 1.
    public var score: Double

    /// Creates a source.
    public init(
      number: Int,
      messageId: String,
      chatId: String,
      senderId: String,
      senderName: String,
      text: String,
      timestamp: Int64,
      score: Double
    ) {
      self.number = number
      self.messageId = messageId
      self.chatId = chatId
      self.senderId = senderId
      self.senderName = senderName
      self.text = text
      self.timestamp = timestamp
      self.score = score
    }
  }

  /// An action that the assistant performed or proposed, or that was refused or failed.
  public struct Action: Codable, Sendable, Hashable, Identifiable {
    /// The id of the action; `confirmAction` takes the id of a proposal.
    public var id: String
    /// The name of the tool.
    public var action: String
    /// The arguments of the tool, by name.
    public var parameters: [String: String]
    /// The name of the person or group addressed; absent if it is the caller.
    public var targetName: String?
    /// The state of the action: `proposed`, `done`, `refused` or `failed`.
    public var status: AIAction.Status
    /// The path of the document written, or the reason that nothing was done.
    public var result: String?
    /// The time at which a proposal expires, in milliseconds since 1970.
    public var expiresAt: Int64?

    /// Creates the result's form of an action.
    public init(id: String, _ record: AIAction) {
      self.id = id
      action = record.action
      parameters = record.parameters
      targetName = record.targetName
      status = record.status
      result = record.result
      expiresAt = record.expiresAt.map { $0.microseconds / 1000 }
    }
  }

  /// The numbers of tokens used.
  public struct Usage: Codable, Sendable, Hashable {
    /// The number of tokens that the model read.
    public var promptTokens: Int
    /// The number of tokens that the model wrote.
    public var completionTokens: Int
    /// The sum of `promptTokens` and `completionTokens`.
    public var totalTokens: Int

    /// Creates the numbers of one call.
    public init(promptTokens: Int, completionTokens: Int, totalTokens: Int) {
      self.promptTokens = promptTokens
      self.completionTokens = completionTokens
      self.totalTokens = totalTokens
    }
  }

  /// Creates a result.
  public init(
    conversationId: String,
    reply: String,
    sources: [Source],
    actions: [Action],
    usage: Usage,
    model: String?,
    degraded: Bool,
    note: String?
  ) {
    self.conversationId = conversationId
    self.reply = reply
    self.sources = sources
    self.actions = actions
    self.usage = usage
    self.model = model
    self.degraded = degraded
    self.note = note
  }
}
