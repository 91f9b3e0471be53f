public import FirestoreClient
import PsstModels
public import PsstServices

/// A recorder of the last message in chats and of the last contact with clients.
///
/// The stored state depends only on the current messages. The same messages therefore lead to the
/// same documents, regardless of the order and the repetition of their events. A message counts
/// from its own time, but not later than the time at which it was stored, so that a date in the
/// future does not make a message the last one forever. Ids decide between equal times.
public struct ContactRecorder: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader

  /// The number of messages per page.
  private static let pageSize = 10
  /// The maximum number of messages examined in each direction from now.
  ///
  /// More than one page is needed only for messages that are unreadable or dated in the future, and
  /// so many of these are not written by mistake.
  private static let examinedMax = 200

  /// Creates a recorder for a database.
  public init(firestore: Firestore, documents: DocumentReader) {
    self.firestore = firestore
    self.documents = documents
  }

  /// The outcome for a message.
  public enum Outcome: Sendable, Hashable {
    /// The message was recorded; the values tell if the chat and a contact were changed.
    case recorded(chat: Bool, contact: Bool)
    /// The chat and the contact are unchanged, for the given reason.
    case skipped(SkipError)
  }

  /// Updates a message's chat, and the contact in a one-to-one chat, to the last message.
  ///
  /// If the message is deleted or unreadable, the message before it counts. A contact changes only
  /// with messages of a one-to-one chat, and no contact is created. Throws `FirestoreError`.
  public func record(chatID: String, messageID: String) async throws -> Outcome {
    let chatReference = firestore.collection(Chat.collection).document(chatID)
    let messages = chatReference.collection(Message.collection)
    return try await firestore.runTransaction { transaction in
      let snapshots = try await transaction.getAll([
        messages.document(messageID), chatReference,
      ])
      let chat: Chat
      switch documents.read(snapshots[1], as: Chat.self) {
      case .readable(let readable): chat = readable
      case .unreadable(let error): return .skipped(.chatUnreadable(error))
      case nil: return .skipped(.chatMissing)
      }
      let own = documents.read(snapshots[0], as: Message.self)
      let event = own?.value.map { DatedMessage($0, snapshots[0]) }
      let last = try await last(of: messages, event, in: snapshots[1], transaction)
      let update = ChatUpdate(last, chat, snapshots[1])
      let contacts = try await transaction.getAll(contacts(of: chat)).filter(\.exists)
      let changes = contacts.map { contact in
        (contact.reference, contactTime([event, last], in: chat, update, contact))
      }

      var isContactChanged = false
      for case (let reference, let time?) in changes {
        try transaction.update(reference, ["lastContactedAt": time])
        isContactChanged = true
      }
      if update.isChange { try transaction.update(chatReference, update.fields) }
      if !update.isChange, !isContactChanged {
        if own == nil { return .skipped(.messageGone) }
        if let error = own?.error { return .skipped(.messageUnreadable(error)) }
      }
      return .recorded(chat: update.isChange, contact: isContactChanged)
    }
  }

  // MARK: The last message

  /// Returns the last message of a chat; nil if the chat has no readable message.
  private func last(
    of messages: CollectionReference,
    _ event: DatedMessage?,
    in chat: DocumentSnapshot,
    _ transaction: Transaction
  ) async throws -> DatedMessage? {
    let now = chat.readTime
    // In the usual case the other messages are not read, so they can be written concurrently.
    if let event, case .timestamp(let shown)? = chat["lastMessageTimestamp"], shown <= now,
      event.time > shown
    {
      return event
    }
    // With two queries, messages dated in the future cannot hide those of the past.
    let future = messages.where("timestamp", .greaterThan, now)
    let past = messages.where("timestamp", .lessThanOrEqual, now)
    let latest = try await latest(in: future, nil, transaction)
    return try await self.latest(in: past, latest, transaction)
  }

  /// Returns the later of a message and the last message of a query.
  private func latest(
    in query: DocumentQuery,
    _ other: DatedMessage?,
    _ transaction: Transaction
  ) async throws -> DatedMessage? {
    var latest = other
    var examined = 0
    let ordered = query.order(by: "timestamp", descending: true)
      .order(by: "__name__", descending: true).limit(Self.pageSize)
    var page = try await transaction.get(ordered)
    while true {
      for snapshot in page {
        guard let message = documents.read(snapshot, as: Message.self)?.value else { continue }
        // No message counts from later than its own time, so all remaining messages are earlier.
        if let latest, message.timestamp < latest.time { return latest }
        let dated = DatedMessage(message, snapshot)
        if latest.map({ dated.isLater(than: $0) }) ?? true { latest = dated }
      }
      examined += page.count
      guard let last = page.last, page.count == Self.pageSize, examined < Self.examinedMax else {
        return latest
      }
      page = try await transaction.get(ordered.start(afterDocument: last))
    }
  }

  // MARK: Contacts

  /// Returns the references under which two members may have each other as contacts.
  ///
  /// Only trainers have contacts.
  private func contacts(of chat: Chat) -> [DocumentReference] {
    let members = Set(chat.members).sorted()
    guard chat.isOneToOne, let first = members.first, let second = members.last else { return [] }
    return [
      Client.reference(in: firestore, trainerID: first, clientID: second),
      Client.reference(in: firestore, trainerID: second, clientID: first),
    ]
  }

  /// Returns the new value of a contact's last time; nil if it is unchanged.
  private func contactTime(
    _ messages: [DatedMessage?],
    in chat: Chat,
    _ update: ChatUpdate,
    _ contact: DocumentSnapshot
  ) -> FieldValue? {
    let time = messages.compactMap { $0 }.filter { chat.members.contains($0.message.senderID) }
      .map(\.time).max()
    guard case .timestamp(let stored)? = contact["lastContactedAt"], stored <= contact.readTime
    else {
      let isEmpty = contact["lastContactedAt"] == nil && time == nil
      return isEmpty ? nil : time.map { .value($0) } ?? .delete
    }
    if let time, time >= stored { return time == stored ? nil : .value(time) }
    // Two people may have several chats. The time goes back only if it came from this chat.
    guard update.isChange, update.timeBefore == .timestamp(stored) else { return nil }
    return time.map { .value($0) } ?? .delete
  }
}

/// A message with its effective time.
private struct DatedMessage: Sendable {
  var id: String
  var message: Message
  var time: Timestamp

  init(_ message: Message, _ snapshot: DocumentSnapshot) {
    id = snapshot.id
    self.message = message
    time = min(message.timestamp, snapshot.createTime ?? snapshot.readTime)
  }

  func isLater(than other: DatedMessage) -> Bool { (time, id) > (other.time, other.id) }
}

/// The fields of a chat for its last message, and their previous values.
private struct ChatUpdate: Sendable {
  var fields: [String: FieldValue]
  var isChange: Bool
  var timeBefore: FirestoreValue?

  /// Creates the update; a chat without messages gets an empty text and its creation time.
  init(_ last: DatedMessage?, _ chat: Chat, _ snapshot: DocumentSnapshot) {
    let now = snapshot.readTime
    let text = last?.message.preview ?? ""
    let time = last?.time ?? min(chat.createdAt ?? now, snapshot.createTime ?? now)
    timeBefore = snapshot["lastMessageTimestamp"]
    isChange = snapshot["lastMessage"] != .string(text) || timeBefore != .timestamp(time)
    fields = [
      "lastMessage": .value(text), "lastMessageTimestamp": .value(time),
      "updatedAt": .serverTimestamp,
    ]
  }
}

extension BackendServices {
  /// The recorder of the last message in chats and contacts.
  public var contacts: ContactRecorder {
    ContactRecorder(firestore: firestore, documents: documents)
  }
}
