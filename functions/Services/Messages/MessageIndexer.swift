public import FirestoreClient
import PsstModels

/// Keeps the vector of each message as the message is.
///
/// Whoever writes a vector reads the message again afterwards and repeats if it changed, so of
/// several writers at once the last one always sees the last state: no event's order matters.
public struct MessageIndexer: Sendable {
  private let firestore: Firestore
  private let embeddings: any EmbeddingProvider
  private let vectors: PineconeIndex

  /// A message that changes more often than this while it is indexed is left to the next event.
  private static let roundsMax = 5
  /// Messages of a chat looked at together.
  private static let pageSize = 100
  /// Messages of a chat brought up to date at the same time.
  private static let concurrency = 8

  /// An indexer of the messages in a database.
  public init(
    firestore: Firestore,
    embeddings: any EmbeddingProvider,
    vectors: PineconeIndex
  ) {
    self.firestore = firestore
    self.embeddings = embeddings
    self.vectors = vectors
  }

  // MARK: One message

  /// What became of a message's vector.
  public enum Outcome: Sendable, Hashable {
    case indexed
    case skipped(SkipReason)
    /// The message is gone, and so is its vector.
    case deleted
  }

  /// Makes the vector of one message what the message is now.
  ///
  /// Throws `ServiceError`, `FirestoreError`, or `ValueCodingError` for a malformed document; the
  /// same call later finishes what this one began.
  public func index(chatID: String, messageID: String) async throws -> Outcome {
    try await index(chatID: chatID, messageID: messageID, known: nil)
  }

  private func index(
    chatID: String,
    messageID: String,
    known: Embedded?
  ) async throws -> Outcome {
    var known = known
    var applied: MessageState?
    for _ in 0...Self.roundsMax {
      let state = try await read(chatID: chatID, messageID: messageID)
      if state == applied { return Self.outcome(state) }
      switch state {
      case .indexable(let source):
        let values: [Float]
        if let known, known.text == source.message.text {
          values = known.values
        } else {
          values = try await embed(source.message.text)
        }
        known = Embedded(text: source.message.text, values: values)
        try await vectors.upsert([
          VectorRecord(id: messageID, values: values, metadata: source.metadata)
        ])
      case .skipped, .gone:
        try await vectors.delete([messageID])
      }
      applied = state
    }
    throw ServiceError(.unavailable, "message \(messageID) keeps changing; try later")
  }

  /// A text whose vector is known, so that a change of members costs no embedding.
  private struct Embedded: Sendable {
    var text: String
    var values: [Float]
  }

  private func embed(_ text: String) async throws -> [Float] {
    guard let values = try await embeddings.embeddings(of: [text]).vectors.first else {
      throw ServiceError(.unavailable, "the embedding provider sent no vector")
    }
    return values
  }

  private static func outcome(_ state: MessageState) -> Outcome {
    switch state {
    case .indexable: .indexed
    case .skipped(let reason): .skipped(reason)
    case .gone: .deleted
    }
  }

  private func read(chatID: String, messageID: String) async throws -> MessageState {
    let chatReference = firestore.collection(Chat.collection).document(chatID)
    let snapshots = try await firestore.getAll([
      chatReference.collection(Message.collection).document(messageID), chatReference,
    ])
    guard snapshots[0].exists else { return .gone }
    let message = try snapshots[0].data(as: Message.self)
    guard message.text.contains(where: { !$0.isWhitespace }) else {
      return .skipped(message.mediaType == nil ? .blankText : .mediaWithoutText)
    }
    guard snapshots[1].exists else { return .skipped(.chatMissing) }
    let chat = try snapshots[1].data(as: Chat.self)
    let roster = try await roster(chat.members + [message.senderID])
    return .indexable(
      MessageSource(
        chatID: chatID,
        messageID: messageID,
        message: message,
        chat: chat,
        senderName: roster.users[message.senderID]?.displayName,
        trainerID: roster.trainerID(of: chat, senderID: message.senderID)
      )
    )
  }

  private func roster(_ uids: [String]) async throws -> Roster {
    let users = firestore.collection(User.collection)
    let snapshots = try await firestore.getAll(Set(uids).map { users.document($0) })
    var roster = Roster(users: [:])
    for snapshot in snapshots where snapshot.exists {
      roster.users[snapshot.id] = try snapshot.data(as: User.self)
    }
    return roster
  }

  // MARK: A chat

  /// What a refresh of a chat did.
  public struct Refresh: Sendable, Hashable {
    /// Vectors that were of an earlier membership.
    public var refreshed = 0
    /// Vectors that were right already.
    public var unchanged = 0
  }

  /// Brings members and trainer in the vectors of a chat up to date.
  ///
  /// Messages without a vector are left alone. Run again after a failure it only does what is left.
  public func refreshMembers(ofChat chatID: String) async throws -> Refresh {
    var refresh = Refresh()
    let chatReference = firestore.collection(Chat.collection).document(chatID)
    let snapshot = try await chatReference.get()
    guard snapshot.exists else { return refresh }
    let chat = try snapshot.data(as: Chat.self)
    let roster = try await roster(chat.members)
    let messages = chatReference.collection(Message.collection).query.select([])
      .limit(Self.pageSize)
    var page = try await messages.get()
    while let last = page.last {
      let found = try await vectors.fetch(page.map(\.id))
      let stale = found.values.filter { !Self.isCurrent($0, chat, roster) }
      refresh.unchanged += found.count - stale.count
      refresh.refreshed += try await reindex(stale, chatID: chatID)
      page = try await messages.start(afterDocument: last).get()
    }
    return refresh
  }

  private static func isCurrent(_ record: VectorRecord, _ chat: Chat, _ roster: Roster) -> Bool {
    guard let senderID = record.metadata[MetadataField.senderID]?.string,
      // A sender who has left is not in the roster, so nothing is known of their role.
      chat.members.contains(senderID)
    else { return false }
    return record.metadata[MetadataField.members]?.strings == chat.members
      && record.metadata[MetadataField.isGroupChat] == .boolean(chat.isGroupChat)
      && record.metadata[MetadataField.trainerID]?.string
        == roster.trainerID(of: chat, senderID: senderID)
  }

  private func reindex(_ records: [VectorRecord], chatID: String) async throws -> Int {
    try await withThrowingTaskGroup(of: Void.self) { group in
      var running = 0
      for record in records {
        if running == Self.concurrency {
          try await group.next()
          running -= 1
        }
        running += 1
        group.addTask {
          let known = record.metadata[MetadataField.text]?.string.map {
            Embedded(text: $0, values: record.values)
          }
          _ = try await index(chatID: chatID, messageID: record.id, known: known)
        }
      }
      try await group.waitForAll()
      return records.count
    }
  }
}
