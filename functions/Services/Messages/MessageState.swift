import FirestoreClient
import PsstModels

/// Where a message is.
struct MessagePlace: Hashable, Sendable {
  var chatID: String
  var messageID: String
}

/// A message with all that its vector's metadata rests on, as it is now.
struct MessageSource: Equatable, Sendable {
  var chatID: String
  var messageID: String
  var message: Message
  var chat: Chat
  var senderName: String?
  var trainerID: String?

  var place: MessagePlace { MessagePlace(chatID: chatID, messageID: messageID) }

  /// The message's record in the index, the one way to make it.
  func record(_ values: [Float]) -> VectorRecord {
    VectorRecord(id: messageID, values: values, metadata: metadata)
  }

  /// What the vector says of the message.
  var metadata: [String: MetadataValue] {
    var metadata: [String: MetadataValue] = [
      MetadataField.messageID: .string(messageID),
      MetadataField.chatID: .string(chatID),
      MetadataField.senderID: .string(message.senderID),
      MetadataField.text: .string(message.text),
      MetadataField.timestamp: .number(Double(message.timestamp.milliseconds)),
      MetadataField.isGroupChat: .boolean(chat.isGroupChat),
      MetadataField.members: .strings(chat.members),
    ]
    metadata[MetadataField.senderName] = senderName.map { .string($0) }
    metadata[MetadataField.trainerID] = trainerID.map { .string($0) }
    return metadata
  }
}

/// What the index should hold for a message.
enum MessageState: Equatable, Sendable {
  /// One vector.
  case indexable(MessageSource)
  /// None, and why.
  case skipped(SkipReason)
  /// None, because there is no such message.
  case gone
}

/// Why a message has no vector.
public enum SkipReason: String, Sendable, Hashable {
  case blankText = "its text is blank"
  case mediaWithoutText = "it is media without text"
  case chatMissing = "its chat does not exist"
}

/// The names of a vector's metadata.
enum MetadataField {
  static let messageID = "firestoreMessageId"
  static let chatID = "firestoreChatId"
  static let trainerID = "trainerId"
  static let senderID = "senderId"
  static let senderName = "senderName"
  static let text = "text"
  static let timestamp = "timestamp"
  static let isGroupChat = "isGroupChat"
  static let members = "members"
}

extension Timestamp {
  /// Whole milliseconds since 1970, as vectors and answers give times.
  var milliseconds: Int64 {
    let remainder = microseconds % 1000
    return (microseconds - (remainder < 0 ? remainder + 1000 : remainder)) / 1000
  }
}

/// The people of a chat, and who of them counts as its trainer.
struct Roster: Sendable {
  var users: [String: User]

  /// The only trainer among the members, else the sender if a trainer, else nobody.
  ///
  /// Members without a user are nobody.
  func trainerID(of chat: Chat, senderID: String) -> String? {
    func isTrainer(_ uid: String) -> Bool { users[uid]?.effectiveRole == .trainer }
    let trainers = Set(chat.members).filter(isTrainer)
    if trainers.count == 1 { return trainers.first }
    return isTrainer(senderID) ? senderID : nil
  }
}
