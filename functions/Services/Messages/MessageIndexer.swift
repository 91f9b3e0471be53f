public import FirestoreClient
import PsstModels

/// Keeps the vector of each message in step with the message.
///
/// After writing a vector, a writer reads the message again and repeats if it changed. Of several
/// writers at once the last one therefore always sees the last state: no event's order matters.
public struct MessageIndexer: Sendable {
  private let firestore: Firestore
  private let embeddings: any EmbeddingProvider
  private let vectors: PineconeIndex
  private let documents: DocumentReader

  /// The most rounds; a message that changes more often meanwhile is left to the next event.
  private static let roundsMax = 5
  /// Messages of a chat looked at together.
  private static let pageSize = 100
  /// Messages of a chat brought up to date at the same time.
  private static let concurrency = 8

  /// An indexer of the messages in a database.
  public init(
    firestore: Firestore,
    embeddings: any EmbeddingProvider,
    vectors: PineconeIndex,
    documents: DocumentReader
  ) {
    self.firestore = firestore
    self.embeddings = embeddings
    self.vectors = vectors
    self.documents = documents
  }

  // MARK: One message

  /// What happened to a message's vector.
  public enum Outcome: Sendable, Hashable {
    case indexed
    case skipped(SkipReason)
    /// The message is gone, and so is its vector.
    case deleted
  }

  /// Brings the vector of one message in step with the message.
  ///
  /// A message that cannot be read, or whose chat cannot, is skipped and has no vector. Throws
  /// `ServiceError` or `FirestoreError`; repeating the call later finishes what this one began.
  public func index(chatID: String, messageID: String) async throws -> Outcome {
    var usage = TokenUsage()
    return try await index(
      MessagePlace(chatID: chatID, messageID: messageID),
      known: nil,
      usage: &usage
    )
  }

  private func index(
    _ place: MessagePlace,
    known: Embedded?,
    usage: inout TokenUsage
  ) async throws -> Outcome {
    var known = known
    var applied: MessageState?
    for _ in 0...Self.roundsMax {
      let state = try await read([place])[0]
      if state == applied { return Self.outcome(state) }
      switch state {
      case .indexable(let source):
        let values: [Float]
        if let known, known.text == source.message.text {
          values = known.values
        } else {
          values = try await embed([source.message.text], usage: &usage)[0]
        }
        known = Embedded(text: source.message.text, values: values)
        try await vectors.upsert([source.record(values)])
      case .skipped, .gone:
        try await vectors.delete([place.messageID])
      }
      applied = state
    }
    throw ServiceError(.unavailable, "message \(place.messageID) keeps changing; try later")
  }

  /// A text whose vector is known, so that a change of members costs no embedding.
  private struct Embedded: Sendable {
    var text: String
    var values: [Float]
  }

  private func embed(_ texts: [String], usage: inout TokenUsage) async throws -> [[Float]] {
    let embedded = try await embeddings.embeddings(of: texts)
    guard embedded.vectors.count == texts.count else {
      throw ServiceError(
        .unavailable,
        "the embedding provider sent \(embedded.vectors.count) vectors for \(texts.count) texts"
      )
    }
    usage += embedded.usage
    return embedded.vectors
  }

  private static func outcome(_ state: MessageState) -> Outcome {
    switch state {
    case .indexable: .indexed
    case .skipped(let reason): .skipped(reason)
    case .gone: .deleted
    }
  }

  /// The desired index content for each message.
  private func read(_ places: [MessagePlace]) async throws -> [MessageState] {
    let chatIDs = Set(places.map(\.chatID)).sorted()
    let chats = firestore.collection(Chat.collection)
    let snapshots = try await firestore.getAll(
      places.map { chats.document($0.chatID).collection(Message.collection).document($0.messageID) }
        + chatIDs.map { chats.document($0) }
    )
    let stored = snapshots[places.count...].map { documents.read($0, as: Chat.self) }
    let chatsByID = Dictionary(uniqueKeysWithValues: zip(chatIDs, stored))
    let drafts = zip(places, snapshots).map { place, message in
      Draft(place, documents.read(message), chatsByID[place.chatID] ?? nil)
    }
    let roster = try await roster(drafts.flatMap(\.people))
    return drafts.map { $0.state(roster) }
  }

  /// What is known of a message before its people are looked up.
  private enum Draft {
    case settled(MessageState)
    case open(MessagePlace, Message, Chat)

    init(_ place: MessagePlace, _ message: Lenient<Message>?, _ chat: Lenient<Chat>?) {
      switch (message, chat) {
      case (nil, _): self = .settled(.gone)
      case (.unreadable(let error), _): self = .settled(.skipped(.messageUnreadable(error)))
      case (.readable(let message), _) where !message.text.contains { !$0.isWhitespace }:
        self = .settled(.skipped(message.mediaType == nil ? .blankText : .mediaWithoutText))
      case (_, nil): self = .settled(.skipped(.chatMissing))
      case (_, .unreadable(let error)): self = .settled(.skipped(.chatUnreadable(error)))
      case (.readable(let message), .readable(let chat)): self = .open(place, message, chat)
      }
    }

    var people: [String] {
      guard case .open(_, let message, let chat) = self else { return [] }
      return chat.members + [message.senderID]
    }

    func state(_ roster: Roster) -> MessageState {
      switch self {
      case .settled(let state): return state
      case .open(let place, let message, let chat):
        return .indexable(
          MessageSource(
            chatID: place.chatID,
            messageID: place.messageID,
            message: message,
            chat: chat,
            senderName: roster.users[message.senderID]?.displayName,
            trainerID: roster.trainerID(of: chat, senderID: message.senderID)
          )
        )
      }
    }
  }

  /// The users among these people; nobody else's message waits for one who cannot be read.
  private func roster(_ uids: [String]) async throws -> Roster {
    let users = firestore.collection(User.collection)
    let snapshots = try await firestore.getAll(Set(uids).map { users.document($0) })
    var roster = Roster(users: [:])
    for snapshot in snapshots {
      roster.users[snapshot.id] = documents.read(snapshot, as: User.self)?.value
    }
    return roster
  }

  // MARK: Several messages

  /// What happened to several messages' vectors.
  struct Batch: Sendable {
    var indexed = 0
    var skipped = 0
    var deleted = 0
    /// Messages that the provider refuses, or did not embed before the run stopped.
    var failed = 0
    var usage = TokenUsage()

    fileprivate mutating func count(_ outcome: Outcome) {
      switch outcome {
      case .indexed: indexed += 1
      case .skipped: skipped += 1
      case .deleted: deleted += 1
      }
    }
  }

  /// Brings the vectors of several messages in step with the messages, in few calls.
  ///
  /// As for a single message, each message is read again afterwards, and one that changed meanwhile
  /// is indexed again by itself.
  func index(_ places: [MessagePlace]) async throws -> Batch {
    var batch = Batch()
    var sources: [MessageSource] = []
    var singles: [MessagePlace] = []
    for (place, state) in zip(places, try await read(places)) {
      if case .indexable(let source) = state {
        sources.append(source)
      } else {
        singles.append(place)
      }
    }
    if !sources.isEmpty {
      let values = try await embed(sources.map(\.message.text), usage: &batch.usage)
      try await vectors.upsert(zip(sources, values).map { $0.record($1) })
      let after = try await read(sources.map(\.place))
      for (source, state) in zip(sources, after) {
        if case .indexable(source) = state {
          batch.indexed += 1
        } else {
          singles.append(source.place)
        }
      }
    }
    for place in singles {
      batch.count(try await index(place, known: nil, usage: &batch.usage))
    }
    return batch
  }

  // MARK: A chat

  /// What a refresh of a chat did.
  public struct Refresh: Sendable, Hashable {
    /// Vectors that had an earlier membership.
    public var refreshed = 0
    /// Vectors that were already right.
    public var unchanged = 0
  }

  /// Updates members and trainer in the vectors of a chat.
  ///
  /// Messages without a vector are left alone. A repeated call after a failure does only what is
  /// left.
  public func refreshMembers(ofChat chatID: String) async throws -> Refresh {
    var refresh = Refresh()
    let chatReference = firestore.collection(Chat.collection).document(chatID)
    guard let chat = documents.read(try await chatReference.get(), as: Chat.self)?.value else {
      return refresh
    }
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
      // A sender who has left is not in the roster, so their role is unknown.
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
          var usage = TokenUsage()
          _ = try await index(
            MessagePlace(chatID: chatID, messageID: record.id),
            known: known,
            usage: &usage
          )
        }
      }
      try await group.waitForAll()
      return records.count
    }
  }
}
