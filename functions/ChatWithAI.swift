public import FunctionsRuntime
public import PsstModels
public import PsstServices

extension MessageFunctions {
  /// Answers a trainer's question, and acts for the trainer where the question asks for it.
  ///
  /// Streams the model's words as it says them, and when tools begin and end. What speaks to others
  /// in the trainer's name is only proposed, and carried out by ``confirmAction``.
  public var chatWithAI: OnStreamingCall<ChatWithAIRequest, ChatWithAIReply, ChatWithAIChunk> {
    .init(
      "chatWithAI",
      callers: .users,
      options: .init(timeout: .seconds(120), secrets: Self.secrets)
    ) { request, stream in
      let uid = try request.requireUser()
      let question = try request.data.checked()
      try await countCall(of: uid)
      do {
        let answer = try await services.assistant.answer(
          .init(
            uid: uid,
            text: question.message,
            conversationID: question.conversationId,
            requestID: question.requestId
          )
        ) { event in
          try await stream.send(ChatWithAIChunk(event))
        }
        request.logger.info(
          "Question answered",
          metadata: [
            "conversation.id": "\(answer.conversationID)",
            "chat.model": "\(answer.model ?? "none")",
            "sources": "\(answer.sources.count)", "actions": "\(answer.actions.count)",
            "tokens.total": "\(answer.usage.totalTokens)",
          ]
        )
        return ChatWithAIReply(answer)
      } catch let failure as Assistant.Failure {
        request.logger.warning("Question not answered", metadata: ["reason": "\(failure)"])
        throw failure.callableError
      }
    }
  }
}

/// The request of `chatWithAI`.
public struct ChatWithAIRequest: Codable, Sendable, Hashable {
  /// The question.
  public var message: String
  /// The conversation that goes on; a new one begins unless given.
  public var conversationId: String?
  /// The client's id for this question, such as a UUID; the same when it is sent again.
  ///
  /// A question that was answered gets the same answer again, and does nothing twice.
  public var requestId: String?

  /// A request.
  public init(message: String, conversationId: String? = nil, requestId: String? = nil) {
    self.message = message
    self.conversationId = conversationId
    self.requestId = requestId
  }

  /// The request, if it makes sense; otherwise throws `invalid-argument` with what to change.
  func checked() throws -> ChatWithAIRequest {
    guard message.contains(where: { !$0.isWhitespace }) else {
      throw CallableError(.invalidArgument, "message must not be blank.")
    }
    guard message.unicodeScalars.count <= Assistant.questionCharactersMax else {
      throw CallableError(
        .invalidArgument,
        "message has more than \(Assistant.questionCharactersMax) characters."
      )
    }
    if let requestId {
      let isID = requestId.utf8.allSatisfy { byte in
        let scalar = Character(Unicode.Scalar(byte))
        return byte < 0x80 && (scalar.isLetter || scalar.isNumber || scalar == "-" || scalar == "_")
      }
      guard isID, requestId.isDocumentID, requestId.utf8.count <= Assistant.requestIDBytesMax
      else {
        throw CallableError(
          .invalidArgument,
          "requestId must be 1 to \(Assistant.requestIDBytesMax) letters, digits, - and _, such as "
            + "a UUID."
        )
      }
    }
    return self
  }
}

/// What `chatWithAI` streams before its reply.
public struct ChatWithAIChunk: Codable, Sendable, Hashable {
  /// What happens.
  public var type: Kind
  /// The words that the model adds; nil for a tool.
  public var text: String?
  /// The tool; nil for words.
  public var tool: String?

  /// What can happen.
  public enum Kind: String, Codable, Sendable, Hashable {
    case text, toolBegins, toolEnds
  }

  init(_ event: Assistant.Event) {
    switch event {
    case .text(let text): (type, self.text) = (.text, text)
    case .toolBegins(let tool): (type, self.tool) = (.toolBegins, tool)
    case .toolEnds(let tool): (type, self.tool) = (.toolEnds, tool)
    }
  }
}

/// The answer of `chatWithAI`.
public struct ChatWithAIReply: Codable, Sendable, Hashable {
  /// The conversation, for the next question.
  public var conversationId: String
  /// The answer.
  public var reply: String
  /// The messages that the answer rests on.
  public var sources: [Source]
  /// What was done, proposed or refused.
  public var actions: [Action]
  /// The tokens that the question used.
  public var usage: Usage
  /// The model that answered; null where none could be asked.
  @Nullable public var model: String?
  /// Whether the answer is not a whole one of the model.
  public var degraded: Bool
  /// What the answer lacks; null when it lacks nothing.
  @Nullable public var note: String?

  /// A message that the answer rests on.
  public struct Source: Codable, Sendable, Hashable {
    /// The number by which the answer cites the message, as in `[2]`.
    public var number: Int
    /// The message's id.
    public var messageId: String
    /// The chat that holds the message.
    public var chatId: String
    /// Who wrote it.
    public var senderId: String
    /// The sender's name as it is now; empty if unknown.
    public var senderName: String
    /// The message as it is now.
    public var text: String
    /// Milliseconds since 1970.
    public var timestamp: Int64
    /// How close the message is to the question; 1 at most.
    public var score: Double

    init(_ source: Assistant.Source) {
      let hit = source.hit
      number = source.number
      messageId = hit.messageID
      chatId = hit.chatID
      senderId = hit.senderID
      senderName = hit.senderName
      text = hit.text
      timestamp = hit.timestamp
      score = hit.score
    }
  }

  /// Something that the assistant did, or wants to do.
  public struct Action: Codable, Sendable, Hashable {
    /// The id, by which `confirmAction` finds a proposal.
    public var id: String
    /// The tool.
    public var action: String
    /// The tool's arguments.
    public var parameters: [String: String]
    /// The name of the person or the group that it is for; absent where it is for the caller.
    public var targetName: String?
    /// `proposed`, `done`, `refused` or `failed`.
    public var status: AIAction.Status
    /// The path of the document written, or why nothing was done.
    public var result: String?
    /// Until when a proposal can be confirmed, in milliseconds since 1970.
    public var expiresAt: Int64?

    init(id: String, _ record: AIAction) {
      self.id = id
      action = record.action
      parameters = record.parameters
      targetName = record.targetName
      status = record.status
      result = record.result
      expiresAt = record.expiresAt.map { $0.microseconds / 1000 }
    }
  }

  /// Tokens.
  public struct Usage: Codable, Sendable, Hashable {
    /// Tokens that the model read.
    public var promptTokens: Int
    /// Tokens that the model wrote.
    public var completionTokens: Int
    /// Both together.
    public var totalTokens: Int
  }

  init(_ answer: Assistant.Answer) {
    conversationId = answer.conversationID
    reply = answer.text
    sources = answer.sources.map(Source.init)
    actions = answer.actions.map { Action(id: $0.id, $0.record) }
    usage = Usage(answer.usage)
    model = answer.model
    degraded = answer.shortcoming != nil
    note = answer.shortcoming
  }
}
