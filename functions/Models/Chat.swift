public import FirestoreClient

/// A conversation of two or more, `chats/{chatId}`.
public struct Chat: StoredDocument, Hashable {
  /// The uids of the members.
  public var members: [String]
  /// Whether the chat is a group, whatever the number of members.
  public var isGroupChat: Bool
  /// A group's name.
  public var groupName: String?
  /// When the chat began.
  public var createdAt: Timestamp?
  /// The members and fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []
  private var areMembersComplete = true

  /// A conversation.
  public init(members: [String], isGroupChat: Bool = false, groupName: String? = nil) {
    self.members = members
    self.isGroupChat = isGroupChat
    self.groupName = groupName
  }

  /// Reads a stored chat; without `isGroupChat` it is not a group.
  ///
  /// Throws when there is no list of members, and when `isGroupChat` is neither true nor false:
  /// taking a group for a talk of two would show more than its members want.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    let uids: [StoredUID] = try fields.elements(.members)
    members = uids.map(\.text)
    areMembersComplete = fields.unreadable.isEmpty
    isGroupChat = try fields.container.decodeIfPresent(Bool.self, forKey: .isGroupChat) ?? false
    groupName = try fields.optional(.groupName)
    createdAt = try fields.optional(.createdAt)
    unreadable = fields.unreadable
  }

  /// Whether exactly two people talk here; false when there may be others who cannot be read.
  public var isOneToOne: Bool {
    !isGroupChat && areMembersComplete && Set(members).count == 2
  }

  /// Where chats are stored.
  public static let collection = "chats"

  private enum CodingKeys: String, CodingKey {
    case members, isGroupChat, groupName, createdAt
  }
}
