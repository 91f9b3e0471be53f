public import FirestoreClient

/// The presence of a user, stored at `presence/{uid}`.
///
/// The app writes it to the Realtime Database, and the server copies it to Firestore.
public struct UserPresence: StoredDocument, Hashable {
  /// True while the user's app is connected.
  public var online: Bool
  /// The time at which the user was last seen; nil if unknown.
  public var lastSeen: Timestamp?
  /// The fields that could not be read.
  public private(set) var unreadable: [ValueCodingError] = []

  /// Creates the presence of a user.
  public init(online: Bool, lastSeen: Timestamp? = nil) {
    self.online = online
    self.lastSeen = lastSeen
  }

  /// Decodes a stored presence; a user without a readable one is offline.
  ///
  /// In the Realtime Database a user with a device that is connected is online, although another
  /// device that has gone has just said otherwise.
  public init(from decoder: any Decoder) throws {
    var fields = try TolerantFields<CodingKeys>(decoder)
    online = try fields.optional(.online) ?? false
    lastSeen = try fields.optional(.lastSeen)
    unreadable = fields.unreadable
    if try decoder.container(keyedBy: DeviceKeys.self).contains(.devices) { online = true }
  }

  /// The name of the collection of presences.
  public static let collection = "presence"

  private enum CodingKeys: String, CodingKey {
    case online, lastSeen
  }

  private enum DeviceKeys: String, CodingKey {
    case devices
  }
}

/// The presences of the members of a group.
public struct GroupPresence: Sendable, Hashable {
  /// The presences by uid; a member without an entry has never been seen.
  public var members: [String: UserPresence]

  /// Creates the presence of a group.
  public init(_ members: [String: UserPresence]) {
    self.members = members
  }

  /// The number of members who are online.
  public var onlineCount: Int { members.values.count(where: \.online) }
  /// The uids of the members who are online, in order.
  public var onlineIDs: [String] { members.filter(\.value.online).keys.sorted() }
}

/// The typing of a user in a chat, stored at `typing/{chatId}/{uid}` of the Realtime Database.
public struct TypingStatus: Codable, Sendable, Hashable {
  /// True while the user types.
  public var isTyping: Bool
  /// The time of the last change, by which a forgotten status expires.
  public var timestamp: Timestamp

  /// Creates a status.
  public init(isTyping: Bool, timestamp: Timestamp) {
    self.isTyping = isTyping
    self.timestamp = timestamp
  }
}
