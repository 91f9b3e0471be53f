public import FirestoreClient
import PsstModels

/// Finds messages by their meaning, among those that the asker may read now.
public struct MessageSearch: Sendable {
  private let firestore: Firestore
  private let embeddings: any EmbeddingProvider
  private let vectors: PineconeIndex
  private let documents: DocumentReader
  private let cache: EmbeddingCache

  /// The hits requested per hit wanted, because some may no longer be shown.
  private static let surplus = 3
  /// The most hits looked at, however many of them may not be shown.
  private static let hitsMax = 1000
  /// Hits checked against the database together.
  private static let checkedTogether = 50

  /// A search in the messages of a database.
  public init(
    firestore: Firestore,
    embeddings: any EmbeddingProvider,
    vectors: PineconeIndex,
    documents: DocumentReader,
    cache: EmbeddingCache = EmbeddingCache()
  ) {
    self.firestore = firestore
    self.embeddings = embeddings
    self.vectors = vectors
    self.documents = documents
    self.cache = cache
  }

  /// The model that gives the results their scores.
  public var model: EmbeddingModel { embeddings.model }

  /// One message found.
  public struct Hit: Sendable, Hashable {
    /// The message's id.
    public var messageID: String
    /// The chat that holds the message.
    public var chatID: String
    /// Who wrote it.
    public var senderID: String
    /// The sender's name when the message was indexed; empty if unknown.
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
  /// threshold unless given. Throws `ServiceError` or `FirestoreError`.
  public func search(
    _ query: String,
    as userID: String,
    limit: Int,
    chatID: String? = nil,
    minScore: Double? = nil
  ) async throws -> [Hit] {
    let vector = try await cache.vector(of: query, by: embeddings)
    let threshold = minScore ?? model.relevanceThreshold
    let isMember = VectorFilter.equal(MetadataField.members, .string(userID))
    let filter = chatID.map {
      VectorFilter.and([isMember, .equal(MetadataField.chatID, .string($0))])
    }
    var topK = min(limit * Self.surplus, Self.hitsMax)
    while true {
      let matches = try await vectors.query(vector, topK: topK, filter: filter ?? isMember)
      let relevant = matches.filter { $0.score >= threshold }
      let hits = try await readable(relevant, by: userID, limit: limit)
      let isAll = relevant.count < topK || topK == Self.hitsMax
      if hits.count >= limit || isAll { return hits }
      topK = min(topK * 4, Self.hitsMax)
    }
  }

  /// The first hits, at most `limit`, that still exist and are in the user's chats.
  private func readable(
    _ matches: [VectorMatch],
    by userID: String,
    limit: Int
  ) async throws -> [Hit] {
    var hits: [Hit] = []
    for start in stride(from: 0, to: matches.count, by: Self.checkedTogether) {
      let part = matches[start..<min(start + Self.checkedTogether, matches.count)]
      hits += try await checked(Array(part), by: userID)
      if hits.count >= limit { break }
    }
    return Array(hits.prefix(limit))
  }

  private func checked(_ matches: [VectorMatch], by userID: String) async throws -> [Hit] {
    let places = matches.compactMap { match in
      match.metadata?[MetadataField.chatID]?.string.map { (match: match, chatID: $0) }
    }
    let chats = firestore.collection(Chat.collection)
    let references = places.flatMap { place in
      let chat = chats.document(place.chatID)
      return [chat, chat.collection(Message.collection).document(place.match.id)]
    }
    let snapshots = try await firestore.getAll(references)
    return places.enumerated().compactMap { index, place in
      guard let chat = documents.read(snapshots[2 * index], as: Chat.self)?.value,
        chat.members.contains(userID),
        let message = documents.read(snapshots[2 * index + 1], as: Message.self)?.value
      else { return nil }
      return Hit(
        messageID: place.match.id,
        chatID: place.chatID,
        senderID: message.senderID,
        senderName: place.match.metadata?[MetadataField.senderName]?.string ?? "",
        text: message.text,
        timestamp: message.timestamp.milliseconds,
        score: place.match.score
      )
    }
  }
}
