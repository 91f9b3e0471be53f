import FirestoreClient
import PsstModels

extension ChatMigration.Run {
  /// Reports problems of chats that were not found through a trainer.
  ///
  /// These are chats with unreadable members, and chats without a trainer that have members without
  /// a user document: such a member may have been a trainer.
  mutating func chatsWithoutTrainer() async throws {
    let chats = migration.firestore.collection(Chat.collection).query.select(MigratedChat.fields)
    try await chats.pages(of: Self.chatsTogether) { page in
      let chats = page.map { MigratedChat($0, migration.documents) }
      for chat in chats { reportFlaw(of: chat) }
      let users = try await users(Set(chats.flatMap(\.members)))
      func isTrainer(_ uid: String) -> Bool { users[uid]?.effectiveRole == .trainer }
      for chat in chats where !chat.members.contains(where: isTrainer) {
        for ghost in chat.members.sorted() where users[ghost] == nil {
          report.skip(
            chat.path,
            "its member \(ghost) has no user, and no other member is a trainer"
          )
        }
      }
      return true
    }
  }

  private func users(_ uids: Set<String>) async throws -> [String: User] {
    let users = migration.firestore.collection(User.collection)
    let ids = uids.sorted()
    var found: [String: User] = [:]
    for start in stride(from: 0, to: ids.count, by: ChatMigration.pageSize) {
      let part = ids[start..<min(start + ChatMigration.pageSize, ids.count)]
      let snapshots = try await migration.firestore.getAll(part.map { users.document($0) })
      for snapshot in snapshots { found[snapshot.id] = user(snapshot) }
    }
    return found
  }

  /// The number of chats per page.
  ///
  /// Most chats have few members, and a page of large groups must not hold thousands of users.
  private static let chatsTogether = 100
}
