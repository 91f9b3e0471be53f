/// The request of `createChat`.
public struct CreateChatRequest: Codable, Sendable, Hashable {
  /// The uids of the members, among them the caller; two unless the chat is a group.
  public var members: [String]
  /// True for a group; false if nil.
  public var isGroupChat: Bool?
  /// The name of a group, at most 100 characters.
  public var groupName: String?
  /// The app's id for this request, such as a UUID.
  ///
  /// An app that creates a group again, because no response came, reuses the id of the first
  /// attempt and gets the same group.
  public var requestId: String?

  /// Creates a request, by default for a chat of two.
  public init(
    members: [String],
    isGroupChat: Bool? = nil,
    groupName: String? = nil,
    requestId: String? = nil
  ) {
    self.members = members
    self.isGroupChat = isGroupChat
    self.groupName = groupName
    self.requestId = requestId
  }
}

/// The result of `createChat`.
public struct CreateChatReply: Codable, Sendable, Hashable {
  /// The id of the chat.
  public var chatId: String
  /// True if the chat was created, false if it existed already.
  public var created: Bool

  /// Creates the result for a chat.
  public init(chatId: String, created: Bool) {
    self.chatId = chatId
    self.created = created
  }
}
