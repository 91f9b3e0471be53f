public import FirestoreClient
import PsstModels
public import PsstServices

/// An indexer that keeps the vector of each message up to date.
///
/// After writing a vector, it reads the message again and repeats if the message changed. If
/// several indexers write at the same time, the last one therefore sees the latest state, and the
/// order of events does not matter.
public struct MessageIndexer: Sendable {
  let firestore: Firestore
  private let embeddings: any EmbeddingProvider
  let vectors: PineconeIndex
  let documents: DocumentReader
  /// Many messages have the same text, and a retried event has already been paid for.
  private let cache = EmbeddingCache()

  /// The maximum number of repetitions.
  ///
  /// A message that changes more often is left to its next event.
  private static let roundsMax = 5

  /// Creates an indexer of the messages in a database.
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

  /// The outcome for a message's vector.
  public enum Outcome: Sendable, Hashable {
    case indexed
    case skipped(SkipError)
    /// The message no longer exists, and its vector was deleted.
    case deleted
  }

  /// Updates the vector of one message.
  ///
  /// A text is embedded only if the stored vector belongs to another text, so read receipts cost
  /// nothing. A message that cannot be read, or whose chat cannot be read, is skipped and its
  /// vector deleted. Throws `ServiceError` or `FirestoreError`; a repeated call finishes the
  /// remaining work.
  public func index(chatID: String, messageID: String) async throws -> Outcome {
    var usage = TokenUsage()
    return try await index(
      MessagePlace(chatID: chatID, messageID: messageID),
      known: nil,
      payer: nil,
      usage: &usage
    )
  }

  /// Updates the vector of one message.
  ///
  /// The sender pays for a new vector unless another payer is given.
  func index(
    _ place: MessagePlace,
    known: Embedded?,
    payer: Payer?,
    usage: inout TokenUsage
  ) async throws -> Outcome {
    var known = known
    var applied: MessageState?
    for _ in 0...Self.roundsMax {
      let state = try await read([place])[0]
      if state == applied { return Self.outcome(state) }
      switch state {
      case .indexable(let source):
        let embedded =
          if let known, known.text == source.text {
            known
          } else {
            try await embedded(
              source,
              payer: payer ?? .user(source.message.senderID),
              usage: &usage
            )
          }
        known = embedded
        try await vectors.upsert([source.record(embedded.values)])
      case .skipped, .gone:
        if let id = place.key { try await vectors.delete([id]) }
      }
      applied = state
    }
    throw ServiceError(.unavailable, "message \(place.messageID) keeps changing; try later")
  }

  /// A text with its vector, so that other changes of a message need no embedding.
  struct Embedded: Sendable {
    var text: String
    var values: [Float]

    init(text: String, values: [Float]) {
      self.text = text
      self.values = values
    }

    /// Creates the pair from a record; nil if the record lacks text or vector.
    init?(_ record: VectorRecord) {
      guard let text = record.metadata[MetadataField.text]?.string, !record.values.isEmpty else {
        return nil
      }
      self.init(text: text, values: record.values)
    }
  }

  /// Returns the stored vector, the vector of an equal text, or a new vector.
  private func embedded(
    _ source: MessageSource,
    payer: Payer,
    usage: inout TokenUsage
  ) async throws -> Embedded {
    // A vector that cannot be stored must not be paid for.
    try vectors.checkWriting()
    let stored = try await vectors.fetch([source.vectorID])[source.vectorID].flatMap(Embedded.init)
    if let stored, stored.text == source.text { return stored }
    let values = try await cache.vector(
      of: source.text,
      by: embeddings,
      for: payer,
      usage: &usage
    )
    return Embedded(text: source.text, values: values)
  }

  private func embed(_ texts: [String], usage: inout TokenUsage) async throws -> [[Float]] {
    let embedded = try await embeddings.embeddings(of: texts, for: .app)
    usage += embedded.usage
    guard embedded.vectors.count == texts.count else {
      throw ServiceError(
        .unavailable,
        "the embedding provider sent \(embedded.vectors.count) vectors for \(texts.count) texts"
      )
    }
    return embedded.vectors
  }

  private static func outcome(_ state: MessageState) -> Outcome {
    switch state {
    case .indexable: .indexed
    case .skipped(let reason): .skipped(reason)
    case .gone: .deleted
    }
  }

  /// Reads the messages, and returns the desired index content for each.
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

  /// The state of a message before its people are looked up.
  private enum Draft {
    case settled(MessageState)
    case open(MessagePlace, vectorID: String, Message, Chat)

    init(_ place: MessagePlace, _ message: Lenient<Message>?, _ chat: Lenient<Chat>?) {
      switch (message, chat) {
      case (nil, _): self = .settled(.gone)
      case (.unreadable(let error), _): self = .settled(.skipped(.messageUnreadable(error)))
      case (.readable(let message), _) where !message.text.contains { !$0.isWhitespace }:
        self = .settled(.skipped(message.mediaType == nil ? .blankText : .mediaWithoutText))
      case (_, nil): self = .settled(.skipped(.chatMissing))
      case (_, .unreadable(let error)): self = .settled(.skipped(.chatUnreadable(error)))
      case (.readable(let message), .readable(let chat)):
        self =
          place.key.map { .open(place, vectorID: $0, message, chat) }
          ?? .settled(.skipped(.idTooLong))
      }
    }

    var people: [String] {
      guard case .open(_, _, let message, let chat) = self else { return [] }
      return chat.members + [message.senderID]
    }

    func state(_ roster: Roster) -> MessageState {
      switch self {
      case .settled(let state): return state
      case .open(let place, let vectorID, let message, let chat):
        return .indexable(
          MessageSource(
            place: place,
            vectorID: vectorID,
            message: message,
            chat: chat,
            senderName: roster.users[message.senderID]?.displayName,
            trainerID: roster.trainerID(of: chat, senderID: message.senderID)
          )
        )
      }
    }
  }

  /// Reads the users with the given ids.
  ///
  /// A user who cannot be read is left out and does not delay the messages of others.
  func roster(_ uids: [String]) async throws -> Roster {
    let users = firestore.collection(User.collection)
    let snapshots = try await firestore.getAll(Set(uids).map { users.document($0) })
    var roster = Roster(users: [:])
    for snapshot in snapshots {
      roster.users[snapshot.id] = documents.read(snapshot, as: User.self)?.value
    }
    return roster
  }

  // MARK: Several messages

  /// The outcome for the vectors of several messages.
  struct Batch: Sendable {
    var indexed = 0
    var skipped = 0
    var deleted = 0
    /// The number of messages that a service did not accept.
    var failed = 0
    /// The tokens paid for, including those for messages that failed.
    var usage = TokenUsage()
    /// The reasons for failures, readable for people.
    var reasons: [String] = []
    /// The first failure that may succeed later; nil if there is none.
    var failure: ServiceError?

    fileprivate mutating func count(_ outcome: Outcome) {
      switch outcome {
      case .indexed: indexed += 1
      case .skipped: skipped += 1
      case .deleted: deleted += 1
      }
    }

    /// Counts messages that failed.
    ///
    /// A refusal of a service is permanent.
    fileprivate mutating func fail(_ count: Int, _ error: ServiceError) {
      failed += count
      reasons.append(error.message)
      usage += error.usage
      if error.kind != .refused { failure = failure ?? error }
    }
  }

  /// Updates the vectors of several messages in few calls.
  ///
  /// Each distinct text is embedded once. Stored vectors are not read first, because this is for
  /// messages without one. The app pays. As for a single message, each message is read again
  /// afterwards, and a message that changed is indexed again individually. Failures of services are
  /// reported in the batch. Throws `FirestoreError`.
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
    let stored = try await store(sources, &batch)
    for (source, state) in zip(stored, try await read(stored.map(\.place))) {
      if case .indexable(source) = state {
        batch.indexed += 1
      } else {
        singles.append(source.place)
      }
    }
    for place in singles {
      do {
        batch.count(try await index(place, known: nil, payer: .app, usage: &batch.usage))
      } catch let error as ServiceError {
        batch.fail(1, error)
      }
    }
    return batch
  }

  /// Embeds messages, writes their vectors, and returns the messages that were written.
  private func store(
    _ sources: [MessageSource],
    _ batch: inout Batch
  ) async throws -> [MessageSource] {
    let vectorsByText = try await embed(Set(sources.map(\.text)), &batch)
    let records = sources.compactMap { source in
      vectorsByText[source.text].map { (source: source, record: source.record($0)) }
    }
    batch.failed += sources.count - records.count
    let written = try await apart(records, &batch) { part, _ in
      try await vectors.upsert(part.map(\.record))
      return part.map(\.source)
    }
    batch.failed += records.count - written.count
    return written
  }

  private func embed(
    _ texts: Set<String>,
    _ batch: inout Batch
  ) async throws -> [String: [Float]] {
    let embedded = try await apart(texts.sorted(), &batch) { part, batch in
      try vectors.checkWriting()
      return Array(zip(part, try await embed(part, usage: &batch.usage)))
    }
    return Dictionary(uniqueKeysWithValues: embedded)
  }

  /// Runs work for all inputs together, or for each input alone if a service refuses them.
  ///
  /// One refused input therefore does not make the others fail. Returns the output of the inputs
  /// that succeeded, and stores a temporary failure in the batch.
  private func apart<Input, Output>(
    _ inputs: [Input],
    _ batch: inout Batch,
    _ work: (_ inputs: [Input], _ batch: inout Batch) async throws -> [Output]
  ) async throws -> [Output] {
    guard !inputs.isEmpty, batch.failure == nil else { return [] }
    do {
      return try await work(inputs, &batch)
    } catch let error as ServiceError {
      batch.usage += error.usage
      if inputs.count == 1 || error.kind != .refused { batch.reasons.append(error.message) }
      guard error.kind == .refused else {
        batch.failure = error
        return []
      }
      guard inputs.count > 1 else { return [] }
    }
    var outputs: [Output] = []
    for input in inputs { outputs += try await apart([input], &batch, work) }
    return outputs
  }
}
