import FirestoreClient
import PsstModels

/// A message's current state, with everything that determines its vector's metadata.
struct MessageSource: Equatable, Sendable {
  var place: MessagePlace
  /// The id of the vector.
  var vectorID: String
  var message: Message
  var chat: Chat
  var senderName: String?
  var trainerID: String?

  /// The part of the text that is embedded.
  ///
  /// Equal texts have equal vectors.
  var text: String { MetadataLimits.text(message.text) }

  /// Returns true if both have the same record.
  ///
  /// Other fields of a chat change with every message, such as its last message.
  static func == (left: MessageSource, right: MessageSource) -> Bool {
    left.vectorID == right.vectorID && left.metadata == right.metadata
  }

  /// Creates the message's record in the index.
  ///
  /// All records of messages are created here.
  func record(_ values: [Float]) -> VectorRecord {
    VectorRecord(id: vectorID, values: values, metadata: metadata)
  }

  /// The metadata of the message's vector.
  var metadata: [String: MetadataValue] {
    var metadata: [String: MetadataValue] = [
      MetadataField.messageID: .string(place.messageID),
      MetadataField.chatID: .string(place.chatID),
      MetadataField.senderID: .string(message.senderID),
      MetadataField.text: .string(text),
      MetadataField.timestamp: .number(Double(message.timestamp.milliseconds)),
      MetadataField.isGroupChat: .boolean(chat.isGroupChat),
      MetadataField.members: .strings(MetadataLimits.members(chat.members)),
    ]
    metadata[MetadataField.senderName] = senderName.map { .string(MetadataLimits.name($0)) }
    metadata[MetadataField.trainerID] = trainerID.map { .string($0) }
    return metadata
  }
}

/// The desired index content for a message.
enum MessageState: Equatable, Sendable {
  /// The message has one vector.
  case indexable(MessageSource)
  /// The message has no vector, for the given reason.
  case skipped(SkipError)
  /// The message does not exist and has no vector.
  case gone
}

/// The names of the fields in a vector's metadata.
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
  /// The time in whole milliseconds since 1970, as used in vectors and results.
  var milliseconds: Int64 {
    let remainder = microseconds % 1000
    return (microseconds - (remainder < 0 ? remainder + 1000 : remainder)) / 1000
  }
}

/// The users in a chat, used to determine its trainer.
struct Roster: Sendable {
  var users: [String: User]

  /// The only trainer among the members; otherwise the sender, if a trainer; otherwise nil.
  ///
  /// Members without a user document do not count.
  func trainerID(of chat: Chat, senderID: String) -> String? {
    func isTrainer(_ uid: String) -> Bool { users[uid]?.effectiveRole == .trainer }
    let trainers = Set(chat.members).filter(isTrainer)
    if trainers.count == 1 { return trainers.first }
    return isTrainer(senderID) ? senderID : nil
  }
}
