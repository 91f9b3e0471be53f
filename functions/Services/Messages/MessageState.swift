import FirestoreClient
import PsstModels

/// A message with everything that determines its vector's metadata, as it is now.
struct MessageSource: Equatable, Sendable {
  var place: MessagePlace
  /// The vector's id.
  var vectorID: String
  var message: Message
  var chat: Chat
  var senderName: String?
  var trainerID: String?

  /// The part of the text that is embedded; equal texts have equal vectors.
  var text: String { MetadataLimits.text(message.text) }

  /// The message's record in the index; records are made only here.
  func record(_ values: [Float]) -> VectorRecord {
    VectorRecord(id: vectorID, values: values, metadata: metadata)
  }

  /// The metadata that the vector has for the message.
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
  /// One vector.
  case indexable(MessageSource)
  /// No vector, for this reason.
  case skipped(SkipReason)
  /// No vector, because the message does not exist.
  case gone
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
  /// Whole milliseconds since 1970, the form of times in vectors and answers.
  var milliseconds: Int64 {
    let remainder = microseconds % 1000
    return (microseconds - (remainder < 0 ? remainder + 1000 : remainder)) / 1000
  }
}

/// The people of a chat, and who counts as its trainer.
struct Roster: Sendable {
  var users: [String: User]

  /// The only trainer among the members; otherwise the sender if a trainer; otherwise nobody.
  ///
  /// Members without a user do not count.
  func trainerID(of chat: Chat, senderID: String) -> String? {
    func isTrainer(_ uid: String) -> Bool { users[uid]?.effectiveRole == .trainer }
    let trainers = Set(chat.members).filter(isTrainer)
    if trainers.count == 1 { return trainers.first }
    return isTrainer(senderID) ? senderID : nil
  }
}
