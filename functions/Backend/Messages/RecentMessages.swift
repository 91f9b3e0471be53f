import FirestoreClient
import PsstModels
import PsstServices

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A search for a user's recent messages by words, without a provider or an index.
struct RecentMessages: Sendable {
  let firestore: Firestore
  let documents: DocumentReader
  let clock: any Clock<Duration>
  let now: @Sendable () -> Date

  /// The model in the results, which stands for the comparison of words.
  static let model = EmbeddingModel(
    provider: "words",
    name: "recent-messages",
    dimension: 0,
    relevanceThreshold: 0.3,
    isDegraded: true
  )

  /// The maximum number of chats listed to find the newest, by one query for few fields.
  private static let chatsListedMax = 500
  /// The maximum number of chats searched, newest first.
  private static let chatsMax = 40
  /// The limit, in microseconds, up to which a chat's time in the future is accepted.
  private static let clockAheadMax: Int64 = 86_400_000_000
  /// The number of newest messages that are searched in each of several chats.
  private static let messagesMax = 50
  private static let messagesOfOneMax = 500
  /// The number of chats read concurrently.
  private static let concurrency = 8
  /// The time limit, after which the messages found so far are returned.
  private static let timeMax: Duration = .seconds(3)

  /// Returns the messages that share most of a request's words, best first.
  ///
  /// Among equal scores the newest comes first. Only chats of which the user is a member now are
  /// searched. Throws `FirestoreError`.
  func search(_ request: MessageSearch.Request) async throws -> [MessageSearch.Hit] {
    let words = QueryWords(request.text)
    let threshold = request.minScore ?? Self.model.relevanceThreshold
    let hits = try await withThrowingTaskGroup(of: Part.self) { group in
      group.addTask {
        // This task is cancelled when all chats have been searched.
        try? await clock.sleep(for: Self.timeMax)
        return .timeIsUp
      }
      group.addTask { .chats(try await chats(of: request.userID, chatID: request.chatID)) }
      var waiting: [String] = []
      var running = 0
      var hits: [MessageSearch.Hit] = []
      let messagesMax = request.chatID == nil ? Self.messagesMax : Self.messagesOfOneMax
      while let part = try await group.next() {
        switch part {
        case .timeIsUp: waiting = []
        case .chats(let ids): waiting = ids
        case .hits(let some):
          hits += some
          running -= 1
        }
        while running < Self.concurrency, let next = waiting.popLast() {
          running += 1
          group.addTask {
            let messages = try await messages(of: next, limit: messagesMax)
            return .hits(
              messages.compactMap { snapshot in
                guard let message = documents.read(snapshot, as: Message.self)?.value else {
                  return nil
                }
                let score = words.score(of: message.text)
                guard score > 0, score >= threshold else { return nil }
                let place = MessagePlace(chatID: next, messageID: snapshot.id)
                let hit = MessageSearch.Hit(message, place, score: score)
                return request.accepts(hit) ? hit : nil
              }
            )
          }
        }
        if case .timeIsUp = part { break }
        if running == 0, waiting.isEmpty { break }
      }
      group.cancelAll()
      return hits
    }
    let best = hits.sorted { left, right in
      (left.score, left.timestamp, right.messageID)
        > (right.score, right.timestamp, left.messageID)
    }
    return Array(best.prefix(request.limit))
  }

  private enum Part: Sendable {
    case timeIsUp
    /// The ids of the chats to search, newest last.
    case chats([String])
    case hits([MessageSearch.Hit])
  }

  private func chats(of userID: String, chatID: String?) async throws -> [String] {
    if let chatID {
      return try await documents.isMember(userID, of: chatID, in: firestore) ? [chatID] : []
    }
    let field = "lastMessageTimestamp"
    let chats = try await firestore.collection(Chat.collection).query
      .where("members", .arrayContains, userID).select(["members", "isGroupChat", field])
      .limit(Self.chatsListedMax).get()
    let latest = Int64(now().timeIntervalSince1970 * 1_000_000) + Self.clockAheadMax
    return chats.filter { documents.isChat($0, with: userID) }.map { chat in
      // Clients write the time. An impossible time must not push other chats out.
      guard case .timestamp(let time)? = chat[field], time.microseconds <= latest else {
        return (Int64.min, chat.id)
      }
      return (time.microseconds, chat.id)
    }
    .sorted { $0 < $1 }.suffix(Self.chatsMax).map(\.1)
  }

  private func messages(of chatID: String, limit: Int) async throws -> [DocumentSnapshot] {
    try await firestore.collection(Chat.collection).document(chatID)
      .collection(Message.collection).query.order(by: "timestamp", descending: true)
      .limit(limit).get().map { $0 }
  }
}
