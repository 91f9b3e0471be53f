import FirestoreClient
import PsstModels
import PsstServices

extension MessageIndexer {
  /// The number of vectors of a chat that are updated concurrently.
  private static let concurrency = 8

  /// The outcome for a chat's vectors.
  public enum ChatOutcome: Sendable, Hashable {
    /// The numbers of vectors that were updated and of those already up to date.
    case refreshed(Int, unchanged: Int)
    /// The chat no longer exists, and this many vectors were deleted.
    case deleted(Int)
    /// The chat cannot be read, and its vectors are unchanged.
    case skipped(SkipError)
  }

  /// Updates members and trainer in the vectors of a chat, or deletes the vectors with the chat.
  ///
  /// Vectors of other chats are not touched. Messages without a vector are skipped. A repeated call
  /// after a failure does only the remaining work. Throws `ServiceError` and `FirestoreError`.
  public func indexChat(_ chatID: String) async throws -> ChatOutcome {
    let prefix = MessagePlace.keyPrefix(ofChat: chatID)
    let snapshot = try await firestore.collection(Chat.collection).document(chatID).get()
    let chat: Chat
    switch documents.read(snapshot, as: Chat.self) {
    case .readable(let readable): chat = readable
    case .unreadable(let error): return .skipped(.chatUnreadable(error))
    case nil:
      // All ids are read first, because the list must not change during reading.
      var ids: [String] = []
      try await vectors.list(prefix: prefix) { ids += $0 }
      try await vectors.delete(ids)
      return .deleted(ids.count)
    }
    let roster = try await roster(chat.members)
    var refreshed = 0
    var unchanged = 0
    try await vectors.list(prefix: prefix) { ids in
      let found = try await vectors.fetch(ids)
      let stale = found.values.filter { !Self.isCurrent($0, chat, roster) }
      try await refresh(stale, chatID: chatID)
      refreshed += stale.count
      unchanged += found.count - stale.count
    }
    return .refreshed(refreshed, unchanged: unchanged)
  }

  private static func isCurrent(_ record: VectorRecord, _ chat: Chat, _ roster: Roster) -> Bool {
    guard let senderID = record.metadata[MetadataField.senderID]?.string,
      // The roster lacks a sender who has left, so their role is unknown.
      chat.members.contains(senderID)
    else { return false }
    return record.metadata[MetadataField.members]?.strings == MetadataLimits.members(chat.members)
      && record.metadata[MetadataField.isGroupChat] == .boolean(chat.isGroupChat)
      && record.metadata[MetadataField.trainerID]?.string
        == roster.trainerID(of: chat, senderID: senderID)
  }

  private func refresh(_ records: [VectorRecord], chatID: String) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      var running = 0
      for record in records {
        guard let messageID = record.metadata[MetadataField.messageID]?.string else { continue }
        if running == Self.concurrency {
          try await group.next()
          running -= 1
        }
        running += 1
        group.addTask {
          var usage = TokenUsage()
          _ = try await index(
            MessagePlace(chatID: chatID, messageID: messageID),
            known: Embedded(record),
            payer: nil,
            usage: &usage
          )
        }
      }
      try await group.waitForAll()
    }
  }
}
