public import FirestoreClient

/// A chat of two or more users, stored at `chats/{chatId}`.
public struct Chat: StoredDocument, Hashable, Identifiable {
  /// The chat's id; empty if missing.
  public var id: String
  /// The uids of the members.
  public var members: [String]
  /// The beginning of the last message, or `Photo`; empty if there is none.
  public var lastMessage: String
  /// The time of the last message; that of the chat's creation if there is none.
  public var lastMessageTimestamp: Timestamp?
  /// True if the chat is a group, regardless of the number of members.
  public var isGroupChat: Bool
  /// The name of a group.
  public var groupName: String?
  /// The time at which the chat began.
  public var createdAt: Timestamp?
  /// The time of the last change, apart from messages.
  public var updatedAt: Timestamp?
  /// The uid of the user for whom the server created the chat; nil in older chats.
  public var createdBy: String?
  /// The members and fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []
  private var areMembersComplete = true

  /// Creates a chat of the given members, without messages.
  public init(
    id: String = "",
    members: [String],
    isGroupChat: Bool = false,
    groupName: String? = nil,
    createdAt: Timestamp? = nil
  ) {
    self.id = id
    self.members = members
    lastMessage = ""
    lastMessageTimestamp = createdAt
    self.isGroupChat = isGroupChat
    self.groupName = groupName
    self.createdAt = createdAt
    updatedAt = createdAt
  }

  /// Decodes a stored chat; without `isGroupChat` it is not a group.
  ///
  /// Throws if there is no list of members, or if `isGroupChat` is not a Boolean. Treating a group
  /// as a one-to-one chat would reveal more than its members want.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    let uids: [StoredUID] = try fields.elements(.members)
    members = uids.map(\.text)
    areMembersComplete = fields.unreadable.isEmpty
    isGroupChat = try fields.container.decodeIfPresent(Bool.self, forKey: .isGroupChat) ?? false
    id = try fields.optional(.id) ?? ""
    lastMessage = try fields.optional(.lastMessage) ?? ""
    lastMessageTimestamp = try fields.optional(.lastMessageTimestamp)
    groupName = try fields.optional(.groupName)
    createdAt = try fields.optional(.createdAt)
    updatedAt = try fields.optional(.updatedAt)
    createdBy = try fields.optional(.createdBy)
    unreadable = fields.unreadable
  }

  /// True if the chat has exactly two members and is not a group.
  ///
  /// False if some members could not be read.
  public var isOneToOne: Bool {
    !isGroupChat && areMembersComplete && Set(members).count == 2
  }

  /// The name of the collection of chats.
  public static let collection = "chats"

  private enum CodingKeys: String, CodingKey {
    case id, members, lastMessage, lastMessageTimestamp, isGroupChat, groupName, createdAt
    case updatedAt, createdBy
  }
}
