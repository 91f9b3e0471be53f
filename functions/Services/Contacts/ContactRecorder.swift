public import FirestoreClient
import PsstModels

/// Keeps the last message of chats and contacts.
///
/// Times only go forward, and the messages' ids decide between equal times. The same messages
/// therefore leave the same documents, in whatever order and however often they are recorded.
public struct ContactRecorder: Sendable {
  private let firestore: Firestore

  /// A recorder in a database.
  public init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// What happened to a message.
  public enum Outcome: Sendable, Hashable {
    /// Whether the chat and a contact were changed; neither was if both were already as recent.
    case recorded(chat: Bool, contact: Bool)
    case skipped(SkipReason)
  }

  /// Why nothing was recorded.
  public enum SkipReason: String, Sendable, Hashable {
    case messageGone = "the message does not exist any more"
    case chatMissing = "its chat does not exist"
  }

  /// Brings a message's chat, and the contact that the chat is with, up to this message.
  ///
  /// A contact changes when one of the two wrote to the other alone; none is ever created. Throws
  /// `FirestoreError`, or `ValueCodingError` for a malformed document.
  public func record(chatID: String, messageID: String) async throws -> Outcome {
    let chatReference = firestore.collection(Chat.collection).document(chatID)
    let messages = chatReference.collection(Message.collection)
    return try await firestore.runTransaction { transaction in
      let snapshots = try await transaction.getAll([
        messages.document(messageID), chatReference,
      ])
      guard snapshots[0].exists else { return .skipped(.messageGone) }
      guard snapshots[1].exists else { return .skipped(.chatMissing) }
      let message = try snapshots[0].data(as: Message.self)
      let chat = try snapshots[1].data(as: Chat.self)

      let stale = try await transaction.getAll(contacts(of: chat, sender: message.senderID))
        .filter { $0.exists && isNewer(message.timestamp, than: $0["lastContactedAt"]) }
      let isLast = try await isLast(message, id: messageID, in: snapshots[1], messages, transaction)

      for contact in stale {
        try transaction.update(contact.reference, ["lastContactedAt": .value(message.timestamp)])
      }
      if isLast {
        try transaction.update(
          chatReference,
          [
            "lastMessage": .value(message.preview),
            "lastMessageTimestamp": .value(message.timestamp), "updatedAt": .serverTimestamp,
          ]
        )
      }
      return .recorded(chat: isLast, contact: !stale.isEmpty)
    }
  }

  /// The places where two members may have each other as contacts; only trainers have contacts.
  private func contacts(of chat: Chat, sender: String) -> [DocumentReference] {
    guard chat.isOneToOne, chat.members.contains(sender),
      let other = chat.members.first(where: { $0 != sender })
    else { return [] }
    return [
      Contact.reference(in: firestore, trainerID: sender, clientID: other),
      Contact.reference(in: firestore, trainerID: other, clientID: sender),
    ]
  }

  private func isLast(
    _ message: Message,
    id: String,
    in chat: DocumentSnapshot,
    _ messages: CollectionReference,
    _ transaction: Transaction
  ) async throws -> Bool {
    guard chat["lastMessageTimestamp"] == .timestamp(message.timestamp) else {
      return isNewer(message.timestamp, than: chat["lastMessageTimestamp"])
    }
    // The chat does not say which of several messages at the same time it shows.
    guard chat["lastMessage"] != .string(message.preview) else { return false }
    let query = messages.query.where("timestamp", .equal, message.timestamp)
      .order(by: "__name__", descending: true).limit(1)
    return try await transaction.get(query).first?.id == id
  }

  /// Whether a time is later than a stored one; a stored value that is not a time does not count.
  private func isNewer(_ time: Timestamp, than stored: FirestoreValue?) -> Bool {
    guard case .timestamp(let stored)? = stored else { return true }
    return time > stored
  }
}
