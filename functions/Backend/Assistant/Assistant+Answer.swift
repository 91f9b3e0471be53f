public import PsstModels

extension Assistant {
  /// A question that a user asks the assistant.
  public struct Question: Sendable {
    /// The id of the user.
    public var uid: String
    /// The text of the question, not blank.
    public var text: String
    /// The id of the conversation to continue; a new conversation begins if nil.
    public var conversationID: String?
    /// The client's id for this question, valid as a document's id.
    ///
    /// A client that sends a question again uses the id of the first attempt.
    public var requestID: String?

    /// Creates a question; without a conversation's id it begins a new conversation.
    public init(
      uid: String,
      text: String,
      conversationID: String? = nil,
      requestID: String? = nil
    ) {
      self.uid = uid
      self.text = text
      self.conversationID = conversationID
      self.requestID = requestID
    }
  }

  /// An event that is reported while a question is answered.
  public enum Event: Sendable, Hashable {
    /// The model has added this text.
    case text(String)
    /// The tool with this name begins.
    case toolBegins(String)
    /// The tool with this name has ended.
    case toolEnds(String)
  }

  /// The answer to a question.
  public struct Answer: Sendable, Hashable {
    /// The id of the conversation, to continue it with another question.
    public var conversationID: String
    /// The text of the answer.
    public var text: String
    /// The messages that the answer cites.
    ///
    /// If it cites none, all messages that the model was given.
    public var sources: [Source]
    /// The actions that were done, proposed, refused or failed.
    public var actions: [Action]
    /// The tool calls of the attempt that answered, in order.
    public var toolCalls: [AIAnswer.ToolCall] = []
    /// The tokens used by all calls of the model.
    public var usage: TokenUsage
    /// The name of the model; nil if no model answered.
    public var model: String?
    /// The reason that the answer is incomplete or not the model's; nil if there is none.
    public var limitation: String?
  }

  /// A message that an answer can be based on.
  public struct Source: Sendable, Hashable {
    /// The number by which an answer cites the message, starting at 1.
    public var number: Int
    /// The message as the search found it.
    public var hit: MessageSearch.Hit
  }

  /// An action that the assistant performed, proposed or was refused.
  public struct Action: Sendable, Hashable {
    /// The id of the action, by which a proposal is confirmed.
    public var id: String
    /// The stored record of the action.
    public var record: AIAction
  }

  /// The reason that a question has no answer.
  public enum AnswerError: Error, Sendable, Hashable {
    /// The user has no conversation with the given id.
    case unknownConversation
    /// The request's id belongs to a question with other words.
    case otherQuestion
    /// Another attempt is answering the question.
    ///
    /// Its claim lasts for at most the given time.
    case inProgress(for: Duration)
    /// No model is configured.
    case notConfigured
    /// The model cannot be asked because of the given error.
    case unavailable(ServiceError)
  }
}

extension Assistant.AnswerError {
  /// The text shown to the user.
  var note: String {
    switch self {
    case .unknownConversation: "There is no such conversation."
    case .otherQuestion: "The request's id belongs to another question."
    case .inProgress: "The question is being answered already."
    case .notConfigured: "The assistant is unavailable, because no chat model is configured."
    case .unavailable: "The assistant is unavailable at the moment."
    }
  }
}
