public import FunctionsRuntime
import PsstBackend
public import PsstServices

extension AppFunctions {
  /// Creates a chat for its members, or returns the one that two people have already.
  ///
  /// Members who do not exist are `not-found`. While `relationship_validation_enabled` covers the
  /// caller, people who are joined neither by a contact nor by a group get `failed-precondition`.
  public var createChat: OnCall<CreateChatRequest, CreateChatReply> {
    .init("createChat", callers: .users) { request in
      let uid = try request.requireUser()
      try await countCall(.chats, of: uid)
      do {
        let reply = try await services.chats.create(request.data, by: uid)
        request.logger.info(
          "Chat requested",
          metadata: ["chat.id": "\(reply.chatId)", "chat.created": "\(reply.created)"]
        )
        return reply
      } catch let error as ChatCreationError {
        request.logger.info("Chat refused", metadata: ["reason": "\(error)"])
        throw error.callableError
      }
    }
  }
}

extension ChatCreationError {
  fileprivate var callableError: CallableError {
    switch self {
    case .invalid(let reason): CallableError(.invalidArgument, reason)
    case .notMember:
      CallableError(.permissionDenied, "You must be one of the members of a chat that you create.")
    case .userNotFound(let uid): CallableError(.notFound, "There is no user with the uid \(uid).")
    case .relationshipNotFound:
      CallableError(.failedPrecondition, ChatError.relationshipNotFound.text)
    case .groupNotShared: CallableError(.failedPrecondition, ChatError.groupNotShared.text)
    }
  }
}
