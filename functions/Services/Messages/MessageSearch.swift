public import FirestoreClient
import PsstModels

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Finds messages by their meaning, among those that the asker may read now.
///
/// While the provider or the index does not answer, finds them by their words instead.
public struct MessageSearch: Sendable {
  private let firestore: Firestore
  private let embeddings: any EmbeddingProvider
  private let vectors: PineconeIndex
  private let documents: DocumentReader
  private let cache: EmbeddingCache
  private let recent: RecentMessages
  private let clock: any Clock<Duration>

  /// The hits requested per hit wanted, because some may no longer be shown.
  private static let surplus = 3
  /// The most hits looked at, however many of them may not be shown.
  private static let hitsMax = 1000
  /// Hits checked against the database together.
  private static let checkedTogether = 50
  /// The asker's groups that are searched by their ids, because their vectors may lack the asker.
  private static let groupsMax = 500
  /// How long a search by meaning may take: somebody is waiting.
  private static let timeMax: Duration = .seconds(6)

  /// A search in the messages of a database.
  public init(
    firestore: Firestore,
    embeddings: any EmbeddingProvider,
    vectors: PineconeIndex,
    documents: DocumentReader,
    cache: EmbeddingCache = EmbeddingCache(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.firestore = firestore
    self.embeddings = embeddings
    self.vectors = vectors
    self.documents = documents
    self.cache = cache
    self.clock = clock
    recent = RecentMessages(
      firestore: firestore,
      documents: documents,
      clock: clock,
      now: now
    )
  }

  /// The model that gives the results their scores.
  public var model: EmbeddingModel { embeddings.model }

  /// What a search found.
  public struct Found: Sendable, Hashable {
    /// The messages, best first.
    public var hits: [Hit]
    /// What gave the messages their scores.
    public var model: EmbeddingModel
    /// Why the words were searched and not the meaning; nil if the meaning was.
    public var failure: ServiceError?
  }

  /// One message found.
  public struct Hit: Sendable, Hashable {
    /// The message's id.
    public var messageID: String
    /// The chat that holds the message.
    public var chatID: String
    /// Who wrote it.
    public var senderID: String
    /// The sender's name as it is now; empty if unknown.
    public var senderName: String
    /// The message as it is now.
    public var text: String
    /// Milliseconds since 1970.
    public var timestamp: Int64
    /// How close the message is to the query; 1 at most.
    public var score: Double
  }

  /// The messages closest to a query, best first.
  ///
  /// Membership is checked in the database for each hit, because vectors follow it with a delay.
  /// A message that cannot be read, or whose chat cannot, is left out. `minScore` is the model's
  /// threshold unless given. When the provider or the index fails or does not answer in time, the
  /// asker's recent messages are searched for the words of the query. Throws `FirestoreError`.
  public func search(
    _ query: String,
    as userID: String,
    limit: Int,
    chatID: String? = nil,
    minScore: Double? = nil
  ) async throws -> Found {
    try await search(
      Request(text: query, userID: userID, limit: limit, chatID: chatID, minScore: minScore)
    )
  }

  /// The messages closest to a message among those that are older, best first.
  ///
  /// The message's vector in the index is used if it is of the same text. Otherwise as `search`.
  func search(
    before message: Message,
    at place: MessagePlace,
    as userID: String,
    limit: Int
  ) async throws -> Found {
    try await search(
      Request(
        text: MetadataLimits.text(message.text),
        userID: userID,
        limit: limit,
        vectorID: place.key,
        before: message.timestamp.milliseconds
      )
    )
  }

  /// What is searched for, and among what.
  struct Request: Sendable {
    var text: String
    var userID: String
    var limit: Int
    var chatID: String?
    var minScore: Double?
    /// The vector that the index has if the text is that of a message.
    var vectorID: String?
    /// Only messages that are older than this are found, in milliseconds since 1970.
    var before: Int64?

    /// Whether a message may be found, as far as its time decides.
    func accepts(_ hit: Hit) -> Bool { before.map { hit.timestamp < $0 } ?? true }
  }

  private func search(_ request: Request) async throws -> Found {
    var found: Found
    do {
      let hits = try await inTime { try await byMeaning(request) }
      found = Found(hits: hits, model: model)
    } catch let error as ServiceError {
      let hits = try await recent.search(request)
      found = Found(hits: hits, model: RecentMessages.model, failure: error)
    }
    found.hits = try await named(found.hits)
    return found
  }

  private func inTime(
    _ work: @escaping @Sendable () async throws -> [Hit]
  ) async throws -> [Hit] {
    try await withThrowingTaskGroup(of: [Hit].self) { group in
      group.addTask(operation: work)
      group.addTask {
        try await clock.sleep(for: Self.timeMax)
        throw ServiceError(.unavailable, "the search by meaning took more than \(Self.timeMax)")
      }
      defer { group.cancelAll() }
      return try await group.next() ?? []
    }
  }

  // MARK: By meaning

  private func byMeaning(_ request: Request) async throws -> [Hit] {
    async let scope = scope(of: request.userID, chatID: request.chatID)
    let vector = try await vector(of: request)
    guard var filter = try await scope else { return [] }
    // Later messages may be closer than any earlier one, and more than are looked at.
    if let before = request.before {
      filter = .and([filter, .less(MetadataField.timestamp, Double(before))])
    }
    let threshold = request.minScore ?? model.relevanceThreshold
    var topK = min(request.limit * Self.surplus, Self.hitsMax)
    while true {
      let matches = try await vectors.query(vector, topK: topK, filter: filter)
      let relevant = matches.filter { $0.score >= threshold }
      let hits = try await readable(relevant, for: request)
      let isAll = relevant.count < topK || topK == Self.hitsMax
      if hits.count >= request.limit || isAll { return hits }
      topK = min(topK * 4, Self.hitsMax)
    }
  }

  private func vector(of request: Request) async throws -> [Float] {
    if let id = request.vectorID,
      let stored = try await vectors.fetch([id])[id].flatMap(MessageIndexer.Embedded.init),
      stored.text == request.text
    {
      return stored.values
    }
    var usage = TokenUsage()
    return try await cache.vector(
      of: request.text,
      by: embeddings,
      for: .user(request.userID),
      usage: &usage
    )
  }

  /// The vectors that may be of the user's chats; nil if there are none.
  private func scope(of userID: String, chatID: String?) async throws -> VectorFilter? {
    if let chatID {
      let isMember = try await documents.isMember(userID, of: chatID, in: firestore)
      return isMember ? .equal(MetadataField.chatID, .string(chatID)) : nil
    }
    let isMember = VectorFilter.equal(MetadataField.members, .string(userID))
    let groups = try await firestore.collection(Chat.collection).query
      .where("members", .arrayContains, userID).where("isGroupChat", .equal, true)
      .select([]).limit(Self.groupsMax).get()
    guard !groups.isEmpty else { return isMember }
    return .or([isMember, .isIn(MetadataField.chatID, groups.map { .string($0.id) })])
  }

  /// The first hits, no more than asked for, that still exist and are in the user's chats.
  private func readable(_ matches: [VectorMatch], for request: Request) async throws -> [Hit] {
    var hits: [Hit] = []
    for start in stride(from: 0, to: matches.count, by: Self.checkedTogether) {
      let part = matches[start..<min(start + Self.checkedTogether, matches.count)]
      hits += try await checked(Array(part), by: request.userID).filter(request.accepts)
      if hits.count >= request.limit { break }
    }
    return Array(hits.prefix(request.limit))
  }

  private func checked(_ matches: [VectorMatch], by userID: String) async throws -> [Hit] {
    try await unnamed(
      matches.compactMap { match in
        guard let chatID = match.metadata?[MetadataField.chatID]?.string,
          let messageID = match.metadata?[MetadataField.messageID]?.string
        else { return nil }
        return (MessagePlace(chatID: chatID, messageID: messageID), match.score)
      },
      as: userID
    )
  }

  /// Messages found before, as they are now, without those that the user may not read any more.
  ///
  /// Throws `FirestoreError`.
  func messages(
    at places: [(place: MessagePlace, score: Double)],
    as userID: String
  ) async throws -> [Hit] {
    try await named(try await unnamed(places, as: userID))
  }

  /// The messages at some places that the user may read now, still without their senders' names.
  private func unnamed(
    _ places: [(place: MessagePlace, score: Double)],
    as userID: String
  ) async throws -> [Hit] {
    let chats = firestore.collection(Chat.collection)
    let chatIDs = Set(places.map(\.place.chatID)).sorted()
    let snapshots = try await firestore.getAll(
      chatIDs.map { chats.document($0) }
        + places.map {
          chats.document($0.place.chatID).collection(Message.collection)
            .document($0.place.messageID)
        }
    )
    let chatsNow = snapshots.prefix(chatIDs.count)
    let open = Set(chatsNow.filter { documents.isChat($0, with: userID) }.map(\.id))
    return zip(places, snapshots.dropFirst(chatIDs.count)).compactMap { found, message in
      guard open.contains(found.place.chatID),
        let message = documents.read(message, as: Message.self)?.value
      else { return nil }
      return Hit(message, found.place, score: found.score)
    }
  }

  // MARK: Names

  /// The hits with the names of their senders.
  private func named(_ hits: [Hit]) async throws -> [Hit] {
    let users = firestore.collection(User.collection)
    let snapshots = try await firestore.getAll(
      Set(hits.map(\.senderID)).sorted().map { users.document($0) }
    )
    var names: [String: String] = [:]
    for snapshot in snapshots {
      names[snapshot.id] = documents.read(snapshot, as: User.self)?.value?.displayName
    }
    return hits.map { hit in
      var hit = hit
      hit.senderName = names[hit.senderID] ?? ""
      return hit
    }
  }
}

extension MessageSearch.Hit {
  /// A message as it is stored, still without the sender's name.
  init(_ message: Message, _ place: MessagePlace, score: Double) {
    self.init(
      messageID: place.messageID,
      chatID: place.chatID,
      senderID: message.senderID,
      senderName: "",
      text: message.text,
      timestamp: message.timestamp.milliseconds,
      score: score
    )
  }
}

extension DocumentReader {
  /// Whether a chat exists, can be read and has this member.
  func isChat(_ snapshot: DocumentSnapshot, with userID: String) -> Bool {
    read(snapshot, as: Chat.self)?.value?.members.contains(userID) ?? false
  }

  /// Whether a user is a member of a chat now.
  func isMember(_ userID: String, of chatID: String, in firestore: Firestore) async throws -> Bool {
    isChat(
      try await firestore.collection(Chat.collection).document(chatID).get(),
      with: userID
    )
  }
}
