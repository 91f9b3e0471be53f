public import FunctionsRuntime
import PsstBackend
public import PsstServices

extension AppFunctions {
  /// Finds earlier messages related to a message, in the chats of the caller.
  ///
  /// Only chats of which the caller is a member now are searched. No chat model is needed, and
  /// usually no embedding, because the message already has a vector. In all other respects it works
  /// like ``semanticSearch``.
  public var surfaceContext: OnCall<SurfaceContextRequest, SemanticSearchReply> {
    .init("surfaceContext", callers: .users, options: .init(secrets: Self.secrets)) { request in
      let uid = try request.requireUser()
      let data = request.data
      let chatID = try data.chatId.checkedID(of: "chat", "chatId")
      let messageID = try data.messageId.checkedID(of: "message", "messageId")
      let limit = data.limit ?? SemanticSearchQuery.limitDefault
      guard SemanticSearchQuery.limits.contains(limit) else {
        throw CallableError(.invalidArgument, "limit must be from 1 to 50.")
      }
      try await countCall(.quickActions, of: uid)
      let found = try await answering(request.logger) {
        try await services.quickActions.related(to: messageID, in: chatID, for: uid, limit: limit)
      }
      return reply(with: found, request.logger)
    }
  }
}
