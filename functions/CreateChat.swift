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
      let reply = try await answering(request.logger) {
        try await services.chats.create(request.data, by: uid)
      }
      request.logger.info(
        "Chat requested",
        metadata: ["chat.id": "\(reply.chatId)", "chat.created": "\(reply.created)"]
      )
      return reply
    }
  }
}
