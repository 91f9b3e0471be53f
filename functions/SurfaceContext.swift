public import FunctionsRuntime
import PsstServices

extension MessageFunctions {
  /// Finds earlier messages that are related to one, in the chats whose member the caller is now.
  ///
  /// Needs no chat model, and usually no embedding: the message has its vector already. Everything
  /// else is as with ``semanticSearch``.
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
      try await countCall(of: uid)
      let found = try await assisting(request.logger) {
        try await services.quickActions.related(to: messageID, in: chatID, for: uid, limit: limit)
      }
      return reply(with: found, request.logger)
    }
  }
}

/// The request of `surfaceContext`.
public struct SurfaceContextRequest: Codable, Sendable, Hashable {
  /// A chat of the caller.
  public var chatId: String
  /// A message of the chat.
  public var messageId: String
  /// The most messages to return; 10 unless given, at most 50.
  public var limit: Int?

  /// A request.
  public init(chatId: String, messageId: String, limit: Int? = nil) {
    self.chatId = chatId
    self.messageId = messageId
    self.limit = limit
  }
}
