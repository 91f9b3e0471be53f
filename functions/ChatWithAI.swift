public import FunctionsRuntime
import PsstModels
import PsstBackend
public import PsstServices

extension AppFunctions {
  /// Answers a user's question, and performs the actions that a trainer asks for.
  ///
  /// Streams the model's words as they arrive, and the beginning and end of each tool call. Actions
  /// that address other people in the trainer's name are only proposed, unless the question itself
  /// asks for them and the trainer's preferences allow it. ``confirmAction`` carries out a
  /// proposal.
  public var chatWithAI: OnStreamingCall<ChatWithAIRequest, ChatWithAIReply, ChatWithAIChunk> {
    .init(
      "chatWithAI",
      callers: .users,
      options: .init(timeout: .seconds(120), secrets: Self.secrets)
    ) { request, stream in
      let uid = try request.requireUser()
      let question = try request.data.checked()
      try await countCall(.assistant, of: uid)
      let answer = try await answering(request.logger) {
        try await services.assistant.answer(
          .init(
            uid: uid,
            text: question.message,
            conversationID: question.conversationId,
            requestID: question.requestId
          )
        ) { event in
          try await stream.send(ChatWithAIChunk(event))
        }
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
    }
  }
}

extension ChatWithAIRequest {
  /// Returns the request if it is valid.
  ///
  /// Otherwise throws `invalid-argument` with the reason.
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
