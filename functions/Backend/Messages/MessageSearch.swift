public import FirestoreClient
import PsstModels
public import PsstServices

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A search for messages by meaning, among those that the user may read now.
///
/// While the provider or the index is unavailable, messages are found by their words instead.
public struct MessageSearch: Sendable {
  private let firestore: Firestore
  private let embeddings: any EmbeddingProvider
  private let vectors: PineconeIndex
  private let documents: DocumentReader
  private let cache: EmbeddingCache
  private let recent: RecentMessages
  private let clock: any Clock<Duration>

  /// The number of hits requested per hit wanted, because the user may not read all of them.
  private static let surplus = 3
  /// The maximum number of hits requested, however many of them the user may not read.
  private static let hitsMax = 1000
  /// The number of hits checked against the database at a time.
  private static let checkedTogether = 50
  /// The maximum number of the user's groups searched by id.
  ///
  /// The vectors of a group may lack the user among their members.
  private static let groupsMax = 500
  /// The time limit for a search by meaning, because a user is waiting.
  private static let timeMax: Duration = .seconds(6)

  /// Creates a search in the messages of a database.
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

  /// The model that determines the scores of a search by meaning.
  public var model: EmbeddingModel { embeddings.model }

  /// The result of a search.
  public struct Found: Sendable, Hashable {
    /// The messages, best first.
    public var hits: [Hit]
    /// The model that determined the scores.
    public var model: EmbeddingModel
    /// The reason that words were searched instead of the meaning; nil if the meaning was.
    public var failure: ServiceError?
  }

  /// A message that the search found.
  public struct Hit: Sendable, Hashable {
    /// The message's id.
    public var messageID: String
    /// The id of the chat that holds the message.
    public var chatID: String
    /// The id of the user who wrote the message.
    public var senderID: String
    /// The sender's current name; empty if unknown.
    public var senderName: String
    /// The message's current text.
    public var text: String
    /// The time of the message in milliseconds since 1970.
    public var timestamp: Int64
    /// The similarity of the message to the query; at most 1.
    public var score: Double
  }

  /// Finds the messages closest to a query, best first.
  ///
  /// Membership is checked in the database for each hit, because the vectors are updated with a
  /// delay. A message that cannot be read, or whose chat cannot be read, is left out. `minScore` is
  /// the model's threshold by default. If the provider or the index fails or does not respond in
  /// time, the user's recent messages are searched for the words of the query. Throws
  /// `FirestoreError`.
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

  /// Finds the messages closest to a message among those that are older, best first.
  ///
  /// The message's vector in the index is used if it belongs to the current text. In all other
  /// respects it works like the search for a query.
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

  /// The parameters of a search.
  struct Request: Sendable {
    var text: String
    var userID: String
    var limit: Int
    var chatID: String?
    var minScore: Double?
    /// The id of the stored vector, if the text is that of a message.
    var vectorID: String?
    /// The time before which a message must have been sent, in milliseconds since 1970.
    var before: Int64?

    /// Returns true if the time of a message permits it as a result.
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
    // Without this filter, closer messages from later could fill all the places.
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

  /// Returns a filter for the vectors of the user's chats.
  ///
  /// The result is nil if a chat is given and the user is not one of its members.
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

  /// Returns the first hits, up to the limit, that still exist and are in the user's chats.
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

  /// Returns the current versions of messages found before.
  ///
  /// Messages that the user may no longer read are left out. Throws `FirestoreError`.
  func messages(
    at places: [(place: MessagePlace, score: Double)],
    as userID: String
  ) async throws -> [Hit] {
    try await named(try await unnamed(places, as: userID))
  }

  /// Returns the messages that the user may read now, without their senders' names.
  private func unnamed(
    _ places: [(place: MessagePlace, score: Double)],
    as userID: String
  ) async throws -> [Hit] {
    let chats = firestore.collection(Chat.collection)
    let involved = Array(Set(places.map { chats.document($0.place.chatID) }))
    let snapshots = try await firestore.getAll(
      involved
        + places.map {
          chats.document($0.place.chatID).collection(Message.collection)
            .document($0.place.messageID)
        }
    )
    let chatsNow = snapshots.prefix(involved.count)
    let open = Set(chatsNow.filter { documents.isChat($0, with: userID) }.map(\.reference))
    return zip(places, snapshots.dropFirst(involved.count)).compactMap { found, message in
      guard open.contains(chats.document(found.place.chatID)),
        let message = documents.read(message, as: Message.self)?.value
      else { return nil }
      return Hit(message, found.place, score: found.score)
    }
  }

  // MARK: Names

  /// Adds the names of the senders to the hits.
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
  /// Creates a hit from a stored message, without the sender's name.
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
  /// Returns true if a chat exists, can be read and has the user as a member.
  func isChat(_ snapshot: DocumentSnapshot, with userID: String) -> Bool {
    read(snapshot, as: Chat.self)?.value?.members.contains(userID) ?? false
  }

  /// Returns true if a user is a member of a chat now.
  func isMember(_ userID: String, of chatID: String, in firestore: Firestore) async throws -> Bool {
    isChat(
      try await firestore.collection(Chat.collection).document(chatID).get(),
      with: userID
    )
  }
}
