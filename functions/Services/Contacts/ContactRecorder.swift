public import FirestoreClient
import PsstModels

/// Keeps the last message of chats and contacts.
///
/// What is stored follows from the messages as they are, so the same messages leave the same
/// documents, in whatever order and however often their events come. A message counts from its own
/// time, but not from later than it was stored: nobody is the last one for good by a date in the
/// future. Ids decide between equal times.
public struct ContactRecorder: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader

  /// Messages looked at together.
  private static let pageSize = 10
  /// The most messages looked at on either side of now.
  ///
  /// Only messages that cannot be read or are dated in the future make it more than a page, and
  /// nobody writes so many of these by mistake.
  private static let examinedMax = 200

  /// A recorder in a database.
  public init(firestore: Firestore, documents: DocumentReader) {
    self.firestore = firestore
    self.documents = documents
  }

  /// What happened to a message.
  public enum Outcome: Sendable, Hashable {
    /// Whether the chat and a contact were changed.
    case recorded(chat: Bool, contact: Bool)
    /// Nothing was changed.
    case skipped(SkipReason)
  }

  /// Brings a message's chat, and the contact that the chat is with, up to the last message.
  ///
  /// A message that is gone or cannot be read gives its place to the one before. A contact changes
  /// when one of the two wrote to the other alone; none is ever created. Throws `FirestoreError`.
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

  /// The last message of a chat; nil when it has none that can be read.
  private func last(
    of messages: CollectionReference,
    _ event: DatedMessage?,
    in chat: DocumentSnapshot,
    _ transaction: Transaction
  ) async throws -> DatedMessage? {
    let now = chat.readTime
    // The usual case, in which the other messages are not read and so may be written meanwhile.
    if let event, case .timestamp(let shown)? = chat["lastMessageTimestamp"], shown <= now,
      event.time > shown
    {
      return event
    }
    // Two queries, so that no number of messages dated in the future hides those of the past.
    let future = messages.where("timestamp", .greaterThan, now)
    let past = messages.where("timestamp", .lessThanOrEqual, now)
    let latest = try await latest(in: future, nil, transaction)
    return try await self.latest(in: past, latest, transaction)
  }

  /// The later one of a message and the last of a query.
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
        // No message counts from later than its own time, so the others are all earlier.
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

  /// The places where two members may have each other as contacts; only trainers have contacts.
  private func contacts(of chat: Chat) -> [DocumentReference] {
    let members = Set(chat.members).sorted()
    guard chat.isOneToOne, let first = members.first, let second = members.last else { return [] }
    return [
      Contact.reference(in: firestore, trainerID: first, clientID: second),
      Contact.reference(in: firestore, trainerID: second, clientID: first),
    ]
  }

  /// The new value of a contact's last time; nil when it stays.
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
    // Two people may have more than one chat: only a time that came from this one goes back.
    guard update.isChange, update.timeBefore == .timestamp(stored) else { return nil }
    return time.map { .value($0) } ?? .delete
  }
}

/// A message with the time from which it counts.
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

/// What a chat shows of its last message, and what it showed before.
private struct ChatUpdate: Sendable {
  var fields: [String: FieldValue]
  var isChange: Bool
  var timeBefore: FirestoreValue?

  /// A chat without messages shows none, from when it began.
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
