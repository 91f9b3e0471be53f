import FirestoreClient
import PsstModels

/// A user as a migration reads them: whatever the document lacks, it is read.
struct MigratedUser: Sendable, Hashable {
  enum Role: Sendable, Hashable {
    case trainer, client
    /// Stored before roles existed.
    case absent
    /// Something that is no role.
    case unknown
  }

  var role: Role
  var displayName: String
  var email: String

  /// The fields read.
  static let fields = ["role", "displayName", "email"]

  /// Nil where there is no user.
  init?(_ snapshot: DocumentSnapshot) {
    guard snapshot.exists else { return nil }
    role =
      switch snapshot["role"] {
      case nil, .null: .absent
      case .string("trainer"): .trainer
      case .string("client"): .client
      default: .unknown
      }
    displayName = snapshot["displayName"]?.text ?? ""
    email = snapshot["email"]?.text ?? ""
  }

  /// Whether they have contacts of their own; users without a role do.
  var countsAsTrainer: Bool { role == .trainer || role == .absent }

  /// What a trainer's contact calls them; nil when nothing is known to call them by.
  var contactName: String? {
    [displayName, email].first { name in name.contains { !$0.isWhitespace } }
  }
}

/// The members of a chat, as a migration reads them.
struct MigratedChat: Sendable {
  /// Each once.
  var members: Set<String>
  /// When the chat began.
  var createdAt: Timestamp
  /// What is wrong with the members; nil for nothing.
  var flaw: String?

  /// The fields read.
  static let fields = ["members", "createdAt"]

  init(_ snapshot: DocumentSnapshot) {
    createdAt = snapshot.createTime ?? snapshot.readTime
    if case .timestamp(let time)? = snapshot["createdAt"] { createdAt = time }
    guard case .array(let values)? = snapshot["members"] else {
      members = []
      flaw = "its members are no list"
      return
    }
    members = Set(values.compactMap(\.text).filter(Self.isUID))
    if members.count < Set(values).count { flaw = "one of its members is no uid" }
  }

  /// Whether a text can be the id of a document.
  private static func isUID(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= 1500 && !text.utf8.contains(UInt8(ascii: "/"))
      && text != "." && text != ".." && !(text.hasPrefix("__") && text.hasSuffix("__"))
  }
}

/// What becomes of a trainer and somebody they share a chat with.
enum MigrationStep: Hashable {
  /// There is to be a contact, of this name and address.
  case contact(name: String, email: String)
  /// There is to be none, and that is as it should be.
  case nothing
  /// There is to be none, for this reason.
  case skip(String)

  /// Decides; `partner` is nil where the member has no user.
  init(partner: MigratedUser?) {
    guard let partner else {
      self = .skip("this member of the trainer's chats has no user")
      return
    }
    switch partner.role {
    // Of a role that is none the user's own visit tells.
    case .trainer, .absent, .unknown: self = .nothing
    case .client:
      guard let name = partner.contactName else {
        self = .skip("the client has neither a name nor an address")
        return
      }
      self = .contact(name: name, email: partner.email)
    }
  }
}

extension Value {
  fileprivate var text: String? {
    if case .string(let text) = self { text } else { nil }
  }
}

extension DocumentQuery {
  /// All documents in order of their names, in pages, so that no more than one page is held.
  ///
  /// Begins behind `after`. `body` returns whether to go on.
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
  /// Reads documents in the order given, in as many requests as keep each one small.
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
