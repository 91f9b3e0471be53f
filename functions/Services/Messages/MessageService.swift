import AsyncAlgorithms
public import FirestoreClient
public import Foundation
public import PsstModels

/// The messages of the signed-in user's chats.
///
/// Sending works without a connection: a message is queued on the device, shown at once, and sent
/// by `run()` as soon as the server can be reached.
public struct MessageService: Sendable {
  private let firestore: Firestore
  private let uid: String
  private let users: UserService
  private let documents: DocumentReader
  private let queue: MessageQueue
  private let now: @Sendable () -> Date

  /// Creates a service for the user with the given uid, as whom `firestore` acts.
  ///
  /// Messages that an earlier run of the app has left in `store` are sent first.
  public init(
    firestore: Firestore,
    uid: String,
    users: UserService,
    store: any MessageQueueStore = MemoryMessageQueueStore(),
    documents: DocumentReader = DocumentReader(),
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.firestore = firestore
    self.uid = uid
    self.users = users
    self.documents = documents
    self.now = now
    queue = MessageQueue(store: store, senderID: uid, pause: pause) { messages in
      await Self.deliver(messages, to: firestore)
    }
  }

  // MARK: Sending

  /// Queues a message and returns it; `observeMessages(in:)` shows it at once as `.sending`.
  ///
  /// Messages are sent in the order of the calls, and each of them once, however often it is tried
  /// and even if the app ends in the meantime. After a sign-out, a message waits for the user's
  /// next sign-in. Throws `MessageError`: `tooLong`, `empty`, `queueFull` or `chatNotFound`. Also
  /// throws the error of a store that cannot keep the message, which is then not sent.
  @discardableResult
  public func sendMessage(
    _ text: String,
    in chatID: String,
    media: MessageMedia? = nil
  ) async throws -> QueuedMessage {
    try Self.check(text, hasMedia: media != nil)
    guard chatID.isDocumentID else { throw MessageError.chatNotFound }
    return try await queue.add(
      QueuedMessage(
        id: "",
        chatId: chatID,
        senderID: uid,
        text: text,
        media: media,
        queuedAt: Timestamp(now()) ?? Timestamp(microseconds: 0)
      )
    )
  }

  /// Sends queued messages until the task is cancelled.
  ///
  /// Run it in one task for as long as the user is signed in. While the server cannot be reached,
  /// messages are tried again after a second, then less often, up to every 30 seconds.
  public func run() async { await queue.run() }

  /// Tries waiting messages now, for example because the device has a connection again.
  public func retryNow() async { await queue.retryNow() }

  /// Sends a message that was refused once more.
  ///
  /// Does nothing for a message that was not refused. Throws the error of the store.
  public func retry(_ messageID: String) async throws { try await queue.retry(messageID) }

  /// Removes a message that was refused, or that waits for its delivery.
  public func discard(_ messageID: String) async { await queue.remove(messageID) }

  private static func check(_ text: String, hasMedia: Bool) throws {
    guard text.utf16.count <= textLengthMax else { throw MessageError.tooLong }
    guard hasMedia || DisplayName.isVisible(text) else { throw MessageError.empty }
  }

  private static func fields(of message: QueuedMessage) -> [String: FieldValue] {
    var fields: [String: FieldValue] = [
      "id": .value(message.id), "text": .value(message.text),
      "senderID": .value(message.senderID), "timestamp": .serverTimestamp,
      "readBy": .value([message.senderID]),
    ]
    if let media = message.media {
      fields["mediaType"] = .value(MessageMedia.type)
      fields["mediaURL"] = .value(media.url)
      fields["mediaThumbnailURL"] = media.thumbnailURL.map { .value($0) }
      fields["mediaSize"] = media.size.map { .value($0) }
      fields["mediaDimensions"] = media.dimensions.map { .value($0) }
    }
    return fields
  }

  /// Creates all messages, or none if one of them cannot be created.
  private static func deliver(
    _ messages: [QueuedMessage],
    to firestore: Firestore
  ) async -> MessageQueue.Attempt {
    do {
      var batch = firestore.batch()
      for message in messages {
        let reference = firestore.collection(Chat.collection).document(message.chatId)
          .collection(Message.collection).document(message.id)
        try batch.create(reference, fields(of: message))
      }
      return .delivered(at: try await batch.commit().commitTime)
    } catch {
      // After any other error, such as a cancellation, the message waits.
      switch try? AccessFailure(error) {
      // An earlier attempt was made, and its confirmation lost.
      case .alreadyExists: return .delivered(at: nil)
      case nil, .offline, .busy, .conflict, .notAuthenticated: return .later
      case .failed: return .failed
      case let failure?: return .refused(MessageError(failure))
      }
    }
  }

  // MARK: Reading

  /// The last 100 messages of a chat now and after every change, the oldest first.
  ///
  /// The user's queued and refused messages come last. A message is shown without a gap while it
  /// goes from the queue to the server and back.
  public func observeMessages(in chatID: String) -> Updates<[ShownMessage]> {
    let events = merge(
      messagesQuery(chatID).limit(Self.pageSize).snapshots()
        .map { Timeline.Event.stored(messages(in: $0).reversed(), $0.readTime) },
      QueueContents(queue: queue, chatID: chatID).map { Timeline.Event.queue($0) }
    )
    return Updates(
      events,
      errors: MessageError.self,
      transforms: {
        var timeline = Timeline()
        return { event in
          // What the server shows has been delivered, even if its confirmation was lost.
          for id in timeline.take(event) { await queue.remove(id) }
          return timeline.messages
        }
      }
    )
  }

  /// Returns a page of the messages of a chat, the oldest first.
  ///
  /// `before` is the first message of the page after it; nil for the latest page. Throws
  /// `MessageError`.
  public func fetchMessages(
    in chatID: String,
    before: Message? = nil,
    limit: Int = MessageService.pageSize
  ) async throws -> [Message] {
    try await MessageError.mapping {
      let ordered = messagesQuery(chatID).order(by: "__name__", descending: true).limit(limit)
      var query = ordered
      if let before {
        query = ordered.start(after: before.timestamp, reference(before.id, in: chatID))
      }
      while true {
        let page = try await query.get()
        let readable = messages(in: page)
        // An empty page means the end to the app, so one without a readable message is skipped.
        guard readable.isEmpty, page.count == limit, let last = page.last else {
          return readable.reversed()
        }
        query = ordered.start(afterDocument: last)
      }
    }
  }

  // MARK: Receipts

  /// Marks messages as read by the signed-in user, except for their own.
  ///
  /// A message that was deleted meanwhile, or is malformed, is left out. Throws `MessageError`.
  public func markAsRead(_ messages: [Message], in chatID: String) async throws {
    let unread = messages.filter(isUnread)
    for start in stride(from: 0, to: unread.count, by: Self.pageSize) {
      let page = unread[start..<min(start + Self.pageSize, unread.count)]
      do {
        var batch = firestore.batch()
        for message in page { try addReceipt(of: message, in: chatID, to: &batch) }
        try await batch.commit()
      } catch let error as FirestoreError
        where [.notFound, .permissionDenied].contains(error.code)
      {
        // One of them is deleted or malformed; the others are marked one by one.
        for message in page { try await markAsRead(message, in: chatID) }
      } catch {
        throw try MessageError.of(error)
      }
    }
  }

  private func markAsRead(_ message: Message, in chatID: String) async throws {
    try await MessageError.mapping {
      var batch = firestore.batch()
      try addReceipt(of: message, in: chatID, to: &batch)
      do {
        try await batch.commit()
      } catch let error as FirestoreError
        where [.notFound, .permissionDenied].contains(error.code)
      {
        // Without access to the chat, this throws. With access, the message is gone, or its list
        // of readers is malformed; that must not keep the others from being read.
        _ = try await reference(message.id, in: chatID).get()
      }
    }
  }

  private func addReceipt(
    of message: Message,
    in chatID: String,
    to batch: inout WriteBatch
  ) throws {
    try batch.update(reference(message.id, in: chatID), ["readBy": .arrayUnion(uid)])
  }

  /// Returns the number of all messages of a chat that others wrote and the user has not read.
  ///
  /// Firestore cannot ask for messages without a reader, so this is the number of all messages less
  /// those that the user wrote or has read. No message is read; the price grows with the length of
  /// the chat, by two reads for each 1000 messages. Messages that arrive between the two counts are
  /// unread. For a new member of a group, earlier messages count, too, and so do malformed
  /// messages. Throws `MessageError`.
  public func unreadCount(in chatID: String) async throws -> Int {
    try await MessageError.mapping {
      let known = try await collection(chatID)
        .where(.or(.field("senderID", .equal, uid), .field("readBy", .arrayContains, uid)))
        .count()
      return max(0, try await collection(chatID).count() - known)
    }
  }

  /// Returns whether each member of a chat except the sender has read a message.
  ///
  /// The members are in the order of the chat. Throws `MessageError`.
  public func readDetails(of message: Message, in chat: Chat) async throws -> [ReadReceiptDetail] {
    let others = chat.members.filter { $0 != message.senderID }
    let known = try await MessageError.mapping { try await users.getUsers(others) }
    return others.map { id in
      ReadReceiptDetail(
        id: id,
        displayName: known[id]?.displayName ?? "",
        photoURL: known[id]?.photoURL,
        hasRead: message.readBy.contains(id)
      )
    }
  }

  /// A malformed message cannot be marked: its readers may be what is malformed.
  private func isUnread(_ message: Message) -> Bool {
    message.senderID != uid && !message.readBy.contains(uid) && message.unreadable.isEmpty
  }

  // MARK: Editing

  /// Changes the text of a message of the signed-in user; throws `MessageError`.
  public func editMessage(_ messageID: String, in chatID: String, text: String) async throws {
    try Self.check(text, hasMedia: false)
    try await MessageError.mapping {
      do {
        try await reference(messageID, in: chatID).update(["text": .value(text)])
      } catch let error as FirestoreError {
        guard try await isGone(messageID, in: chatID, error) else { throw error }
        throw MessageError.messageNotFound
      }
    }
  }

  /// Deletes a message of the signed-in user, if it still exists; throws `MessageError`.
  public func deleteMessage(_ messageID: String, in chatID: String) async throws {
    try await MessageError.mapping {
      do {
        try await reference(messageID, in: chatID).delete()
      } catch let error as FirestoreError {
        guard try await isGone(messageID, in: chatID, error) else { throw error }
      }
    }
  }

  /// Returns true if a change was refused because the message does not exist.
  ///
  /// The access rules refuse every change of a missing message.
  private func isGone(
    _ messageID: String,
    in chatID: String,
    _ error: FirestoreError
  ) async throws -> Bool {
    guard [.notFound, .permissionDenied].contains(error.code) else { return false }
    return try await !reference(messageID, in: chatID).get().exists
  }

  // MARK: Helpers

  private func collection(_ chatID: String) -> CollectionReference {
    firestore.collection(Chat.collection).document(chatID).collection(Message.collection)
  }

  private func reference(_ id: String, in chatID: String) -> DocumentReference {
    collection(chatID).document(id)
  }

  private func messagesQuery(_ chatID: String) -> DocumentQuery {
    collection(chatID).order(by: "timestamp", descending: true)
  }

  private func messages(in snapshot: QuerySnapshot) -> [Message] {
    snapshot.compactMap { snapshot in
      var message = documents.read(snapshot, as: Message.self)?.value
      message?.id = snapshot.id
      return message
    }
  }

  /// The number of messages of a page.
  public static let pageSize = 100
  /// The longest text in UTF-16 code units; the access rules enforce the same limit.
  private static let textLengthMax = 10_000
}

/// A message as its sender's or a receiver's device shows it.
public struct ShownMessage: Sendable, Hashable, Identifiable {
  /// The message; before its delivery, its time is that of the device.
  public var message: Message
  /// The state of the delivery.
  public var delivery: Delivery

  /// The message's id, the same before and after the delivery.
  public var id: String { message.id }

  /// The states of a delivery.
  public enum Delivery: Sendable, Hashable {
    /// The message waits, or is on its way.
    case sending
    case delivered
    /// The server refused the message; `MessageService.retry(_:)` sends it again.
    case failed(MessageError)
  }

  /// Creates a message in a state of its delivery, delivered by default.
  public init(_ message: Message, _ delivery: Delivery = .delivered) {
    self.message = message
    self.delivery = delivery
  }

  init(_ queued: QueuedMessage, _ delivery: Delivery? = nil) {
    message = Message(
      id: queued.id,
      text: queued.text,
      senderID: queued.senderID,
      timestamp: queued.queuedAt,
      readBy: [queued.senderID],
      media: queued.media
    )
    self.delivery =
      delivery ?? queued.failure.map { .failed(MessageError(rawValue: $0) ?? .refused) } ?? .sending
  }
}

/// The messages of a chat as a device shows them, from what is stored and what is queued.
private struct Timeline {
  enum Event: Sendable {
    /// The messages in a snapshot of the server, with its time.
    case stored([Message], Timestamp)
    case queue(MessageQueue.Contents)
  }

  private var stored: (messages: [Message], time: Timestamp)?
  private var queue = MessageQueue.Contents(queued: [], delivered: [])

  /// Takes a change, and returns the ids of queued messages that turn out to be delivered.
  mutating func take(_ event: Event) -> [String] {
    switch event {
    case .stored(let messages, let time): stored = (messages, time)
    case .queue(let contents): queue = contents
    }
    let ids = storedIDs
    let delivered = queue.queued.map(\.id).filter(ids.contains)
    queue.queued.removeAll { ids.contains($0.id) }
    return delivered
  }

  /// The messages to show; nil until there are any, or the server has said that there are none.
  var messages: [ShownMessage]? {
    let ids = storedIDs
    // A later snapshot without a delivered message means that it was deleted.
    let onTheWay = queue.delivered.filter { delivered in
      !ids.contains(delivered.message.id) && stored.map { $0.time < delivered.time } ?? false
    }
    guard stored != nil || !queue.queued.isEmpty else { return nil }
    return (stored?.messages ?? []).map { ShownMessage($0) }
      + onTheWay.map { ShownMessage($0.message, .delivered) }
      + queue.queued.map { ShownMessage($0) }
  }

  private var storedIDs: Set<String> { Set(stored?.messages.map(\.id) ?? []) }
}

/// The queue's messages of a chat, as a sequence that starts with its iteration.
private struct QueueContents: AsyncSequence, Sendable {
  typealias Element = MessageQueue.Contents

  let queue: MessageQueue
  let chatID: String

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(queue: queue, chatID: chatID) }

  struct AsyncIterator: AsyncIteratorProtocol {
    let queue: MessageQueue
    let chatID: String
    private var stream: AsyncStream<MessageQueue.Contents>.Iterator?

    init(queue: MessageQueue, chatID: String) {
      self.queue = queue
      self.chatID = chatID
    }

    mutating func next() async -> MessageQueue.Contents? {
      if stream == nil { stream = await queue.contents(of: chatID).makeAsyncIterator() }
      return await stream?.next()
    }
  }
}
