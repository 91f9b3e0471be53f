import FirestoreClient
import PsstModels

extension MessageIndexer {
  /// Vectors of a chat brought up to date at the same time.
  private static let concurrency = 8

  /// What became of a chat's vectors.
  public enum ChatOutcome: Sendable, Hashable {
    /// Vectors had an earlier membership, or were right already.
    case refreshed(Int, unchanged: Int)
    /// The chat is gone, and so are its vectors.
    case deleted(Int)
    /// The chat cannot be read, and its vectors stay as they are.
    case skipped(SkipReason)
  }

  /// Updates members and trainer in the vectors of a chat, or deletes them if the chat is gone.
  ///
  /// Reaches no other chat's vectors. Messages without a vector are left alone. A repeated call
  /// after a failure does only what is left.
  public func indexChat(_ chatID: String) async throws -> ChatOutcome {
    let prefix = MessagePlace.keyPrefix(ofChat: chatID)
    let snapshot = try await firestore.collection(Chat.collection).document(chatID).get()
    let chat: Chat
    switch documents.read(snapshot, as: Chat.self) {
    case .readable(let readable): chat = readable
    case .unreadable(let error): return .skipped(.chatUnreadable(error))
    case nil:
      // All ids are read first, because a list must not change while it is read.
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
      // A sender who has left is not in the roster, so their role is unknown.
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
