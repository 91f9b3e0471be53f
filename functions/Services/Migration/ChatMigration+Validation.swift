import FirestoreClient
import PsstModels

extension ChatMigration.Run {
  /// Checks that all contacts have a user, and all trainers and clients of a chat a contact.
  ///
  /// In a dry run, contacts that a real run would write count as existing.
  mutating func validate() async throws {
    // Contacts that only a real run writes all have a user.
    if report.isDryRun { report.validation.contactsChecked = report.counts.created }
    try await validateContacts()
    try await validateChats()
  }

  /// Contacts lie below trainers' places, which have no document: the collection group finds all.
  private mutating func validateContacts() async throws {
    let contacts = migration.firestore.collectionGroup(Contact.clients).select([])
    let users = migration.firestore.collection(User.collection)
    try await contacts.pages(of: ChatMigration.pageSize) { page in
      let ours = page.filter { $0.reference.isContact }
      let found = try await migration.firestore.getAll(ours.map { users.document($0.id) })
      report.validation.contactsChecked += ours.count
      for (contact, user) in zip(ours, found) where !user.exists {
        report.validation.contactWithoutUser(contact.reference.path)
      }
      return true
    }
  }

  private mutating func validateChats() async throws {
    let chats = migration.firestore.collection(Chat.collection).query.select(MigratedChat.fields)
    try await chats.pages(of: Self.chatsTogether) { page in
      let chats = page.map {
        (path: $0.reference.path, chat: MigratedChat($0, migration.documents))
      }
      for (path, chat) in chats {
        if let flaw = chat.flaw { report.fail(path, flaw) }
      }
      let users = try await users(Set(chats.flatMap(\.chat.members)))
      var wanted: [DocumentReference] = []
      for (path, chat) in chats {
        let members = chat.members.sorted()
        let trainers = members.filter { users[$0]?.effectiveRole == .trainer }
        if trainers.isEmpty { reportGhosts(members, of: path, users) }
        for trainer in trainers {
          wanted += members.filter { isContactExpected(users[$0]) }.map { contact(trainer, $0) }
          // A large group of many trainers has more pairs than fit in memory.
          if wanted.count >= ChatMigration.pageSize { try await expect(&wanted) }
        }
      }
      try await expect(&wanted)
      report.validation.chatsChecked += chats.count
      return true
    }
  }

  /// The trainer's own visit reports the chats that have a trainer.
  private mutating func reportGhosts(
    _ members: [String],
    of path: String,
    _ users: [String: User]
  ) {
    for ghost in members where users[ghost] == nil {
      report.skip(path, "its member \(ghost) has no user, and nobody else is a trainer")
    }
  }

  private func isContactExpected(_ member: User?) -> Bool {
    guard let member, member.effectiveRole == .client else { return false }
    // In a dry run, what a real run would write counts as existing.
    if report.isDryRun, case .contact = MigrationStep(partner: member) { return false }
    return true
  }

  private mutating func expect(_ contacts: inout [DocumentReference]) async throws {
    let found = try await migration.firestore.getAll(contacts, inPartsOf: ChatMigration.pageSize)
    for snapshot in found where !snapshot.exists {
      report.validation.missingContact(snapshot.reference.path)
    }
    contacts = []
  }

  private func users(_ uids: Set<String>) async throws -> [String: User] {
    let users = migration.firestore.collection(User.collection)
    let snapshots = try await migration.firestore.getAll(
      uids.sorted().map { users.document($0) },
      inPartsOf: ChatMigration.pageSize
    )
    var found: [String: User] = [:]
    for snapshot in snapshots { found[snapshot.id] = user(snapshot) }
    return found
  }

  /// Chats have two or a few members; a page of large groups must not hold thousands of users.
  private static let chatsTogether = 100
}

extension DocumentReference {
  /// Whether this is `contacts/{trainerId}/clients/{clientId}` and no other `clients` collection's.
  fileprivate var isContact: Bool {
    let segments = path.split(separator: "/")
    return segments.count == 4 && segments[0] == Contact.collection
      && segments[2] == Contact.clients
  }
}
