import FirestoreClient
import PsstModels

extension User {
  /// The fields that a migration reads.
  static let migratedFields = ["role", "displayName", "email"]

  /// The user's name as a trainer's contact; nil when the user has neither name nor address.
  var contactName: String? {
    [displayName, email ?? ""].first { name in name.contains { !$0.isWhitespace } }
  }
}

/// The members of a chat, as a migration reads them.
struct MigratedChat: Sendable {
  /// The members, each once.
  var members: Set<String>
  /// When the chat began.
  var createdAt: Timestamp
  /// What is wrong with the members, or nil.
  var flaw: String?

  /// The fields read.
  static let fields = ["members", "createdAt"]

  init(_ snapshot: DocumentSnapshot, _ documents: DocumentReader) {
    let read = documents.read(snapshot, as: Chat.self)
    members = Set(read?.value?.members ?? [])
    createdAt = read?.value?.createdAt ?? snapshot.createTime ?? snapshot.readTime
    flaw = (read?.error ?? read?.value?.unreadable.first)?.description
  }
}

/// What a migration does about a trainer and somebody they share a chat with.
enum MigrationStep: Hashable {
  /// There must be a contact with this name and address.
  case contact(name: String, email: String)
  /// There must be no contact, which is as it should be.
  case nothing
  /// There must be no contact, for this reason.
  case skip(String)

  /// Decides on a member; `partner` is nil when the member has no user.
  init(partner: User?) {
    guard let partner else {
      self = .skip("this member of the trainer's chats has no user")
      return
    }
    switch partner.effectiveRole {
    // An unknown role is reported at the user's own visit.
    case .trainer, nil: self = .nothing
    case .client:
      guard let name = partner.contactName else {
        self = .skip("the client has neither a name nor an address")
        return
      }
      self = .contact(name: name, email: partner.email ?? "")
    }
  }
}

extension DocumentQuery {
  /// All documents in the order of their names, one page at a time.
  ///
  /// Begins after `after`. `body` returns whether to go on.
  func pages(
    of size: Int,
    after: DocumentReference? = nil,
    _ body: (QuerySnapshot) async throws -> Bool
  ) async throws {
    let ordered = order(by: "__name__").limit(size)
    var page = try await (after.map { ordered.start(after: $0) } ?? ordered).get()
    while let last = page.last {
      try Task.checkCancellation()
      guard try await body(page), page.count == size else { return }
      page = try await ordered.start(after: last.reference).get()
    }
  }
}

extension Firestore {
  /// Reads documents in the given order, in small requests.
  func getAll(_ references: [DocumentReference], inPartsOf size: Int) async throws
    -> [DocumentSnapshot]
  {
    var snapshots: [DocumentSnapshot] = []
    for start in stride(from: 0, to: references.count, by: size) {
      snapshots += try await getAll(
        Array(references[start..<min(start + size, references.count)])
      )
    }
    return snapshots
  }
}
