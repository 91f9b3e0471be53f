/// The request of `surfaceContext`.
public struct SurfaceContextRequest: Codable, Sendable, Hashable {
  /// The id of a chat of which the caller is a member.
  public var chatId: String
  /// The id of a message in the chat.
  public var messageId: String
  /// The maximum number of messages to return; 10 if nil, at most 50.
  public var limit: Int?

  /// Creates a request for the messages related to one message.
  public init(chatId: String, messageId: String, limit: Int? = nil) {
    self.chatId = chatId
    self.messageId = messageId
    self.limit = limit
  }
}
