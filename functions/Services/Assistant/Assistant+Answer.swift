public import PsstModels

extension Assistant {
  /// A question of a user.
  public struct Question: Sendable {
    /// The user.
    public var uid: String
    /// The words, not blank.
    public var text: String
    /// The conversation that goes on; nil begins one.
    public var conversationID: String?
    /// The client's id for this question, a document's id; the same when it is sent again.
    public var requestID: String?

    /// A question.
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

  /// What happens while a question is answered.
  public enum Event: Sendable, Hashable {
    /// The model has said more.
    case text(String)
    /// A tool begins.
    case toolBegins(String)
    /// A tool has ended.
    case toolEnds(String)
  }

  /// An answer.
  public struct Answer: Sendable, Hashable {
    /// The conversation, in which the next question can be asked.
    public var conversationID: String
    /// The words.
    public var text: String
    /// The messages that the answer cites; all that it could rest on, where it cites none.
    public var sources: [Source]
    /// What was done, proposed and refused.
    public var actions: [Action]
    /// The tokens of all calls of the model.
    public var usage: TokenUsage
    /// The model; nil where none answered.
    public var model: String?
    /// Why the answer is not a whole one of the model; nil for one that is.
    public var shortcoming: String?
  }

  /// A message that an answer can rest on.
  public struct Source: Sendable, Hashable {
    /// The number by which an answer cites the message, from 1 on.
    public var number: Int
    /// The message.
    public var hit: MessageSearch.Hit
  }

  /// Something that the assistant did, or wants to do.
  public struct Action: Sendable, Hashable {
    /// The id, by which a proposal is confirmed.
    public var id: String
    /// What it is.
    public var record: AIAction
  }

  /// Why a question has no answer.
  public enum Failure: Error, Sendable, Hashable {
    /// The user has no such conversation.
    case unknownConversation
    /// The request's id belongs to a question with other words.
    case otherQuestion
    /// The same question is being answered, for this time at most.
    case inProgress(for: Duration)
    /// No model is configured.
    case notConfigured
    /// The model cannot be asked, for this reason.
    case unavailable(ServiceError)
  }
}

extension Assistant.Failure {
  /// What a user may read.
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
