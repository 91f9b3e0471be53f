/// A conversation of two or more, `chats/{chatId}`.
public struct Chat: Codable, Sendable, Hashable {
  /// The uids of the members.
  public var members: [String]
  /// Whether the chat is a group, whatever the number of members.
  public var isGroupChat: Bool
  /// A group's name.
  public var groupName: String?

  /// A conversation.
  public init(members: [String], isGroupChat: Bool = false, groupName: String? = nil) {
    self.members = members
    self.isGroupChat = isGroupChat
    self.groupName = groupName
  }

  /// Reads a stored chat; without the field it is not a group.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    members = try container.decode([String].self, forKey: .members)
    isGroupChat = try container.decodeIfPresent(Bool.self, forKey: .isGroupChat) ?? false
    groupName = try container.decodeIfPresent(String.self, forKey: .groupName)
  }

  /// Whether exactly two people talk here.
  public var isOneToOne: Bool { !isGroupChat && Set(members).count == 2 }

  /// Where chats are stored.
  public static let collection = "chats"
}
