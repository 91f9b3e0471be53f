import FirestoreClient
import PsstModels

/// A user as a migration reads them; no missing field makes the reading fail.
struct MigratedUser: Sendable, Hashable {
  enum Role: Sendable, Hashable {
    case trainer, client
    /// The user was stored before roles existed.
    case absent
    /// The value is not a role.
    case unknown
  }

  var role: Role
  var displayName: String
  var email: String

  /// The fields read.
  static let fields = ["role", "displayName", "email"]

  /// Reads a user; nil when there is none.
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

  /// Whether the user has contacts of their own; users without a role do.
  var countsAsTrainer: Bool { role == .trainer || role == .absent }

  /// The user's name as a trainer's contact; nil when the user has neither name nor address.
  var contactName: String? {
    [displayName, email].first { name in name.contains { !$0.isWhitespace } }
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

/// What a migration does about a trainer and somebody they share a chat with.
enum MigrationStep: Hashable {
  /// There must be a contact with this name and address.
  case contact(name: String, email: String)
  /// There must be no contact, which is as it should be.
  case nothing
  /// There must be no contact, for this reason.
  case skip(String)

  /// Decides on a member; `partner` is nil when the member has no user.
  init(partner: MigratedUser?) {
    guard let partner else {
      self = .skip("this member of the trainer's chats has no user")
      return
    }
    switch partner.role {
    // An invalid role is reported at the user's own visit.
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

extension FirestoreValue {
  fileprivate var text: String? {
    if case .string(let text) = self { text } else { nil }
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
