public import PsstModels

/// What a migration of chats did or, in a dry run, would do.
///
/// The counts are of everything; the lists are bounded, and `isTruncated` says when a list lacks
/// entries.
public struct MigrationReport: Sendable, Hashable {
  /// Whether nothing was written.
  public var isDryRun: Bool
  /// The contacts that this run wrote or would write, as they are stored.
  public var contacts = BoundedList<MigratedContact>(bytesMax: 8 << 20)
  /// The full count of each kind.
  public var counts = Counts()
  /// What was left out although a chat calls for it, and users whose role had to be guessed.
  public var skips = BoundedList<Note>(bytesMax: 1 << 20)
  /// What is malformed or could not be written; the run went on after each.
  public var errors = BoundedList<Note>(bytesMax: 1 << 20)
  /// The place of the backup; nil for a dry run.
  public var backup: String?
  /// The state of the database at the end or, for a dry run, the state it would have.
  public var validation = MigrationValidation()
  /// The trainer after whom an unfinished run was resumed; nil for a run from the start.
  public var resumedAfter: String?

  /// Numbers of a migration.
  public struct Counts: Codable, Sendable, Hashable {
    /// Trainers looked at, including users without a role.
    public var trainers = 0
    /// Contacts written or, in a dry run, to be written.
    public var created = 0
    /// Contacts that already existed.
    public var existing = 0
    /// Entries of `skips`.
    public var skipped = 0
    /// Entries of `errors`.
    public var errors = 0
  }

  /// A remark on one document.
  public struct Note: Codable, Sendable, Hashable {
    /// The document.
    public var path: String
    /// The remark.
    public var reason: String
  }

  /// Whether a list lacks some of its entries.
  public var isTruncated: Bool {
    contacts.isTruncated || skips.isTruncated || errors.isTruncated
  }

  mutating func skip(_ path: String, _ reason: String) {
    counts.skipped += 1
    skips.append(Note(path: path, reason: reason), bytes: path.utf8.count + reason.utf8.count)
  }

  mutating func fail(_ path: String, _ reason: String) {
    counts.errors += 1
    errors.append(Note(path: path, reason: reason), bytes: path.utf8.count + reason.utf8.count)
  }

  mutating func create(_ contact: MigratedContact) {
    counts.created += 1
    let data = contact.data
    contacts.append(
      contact,
      bytes: contact.path.utf8.count + data.clientId.utf8.count + data.displayName.utf8.count
        + data.email.utf8.count
    )
  }
}

/// One contact that a migration writes.
public struct MigratedContact: Codable, Sendable, Hashable {
  /// Where it is stored.
  public var path: String
  /// What is stored.
  public var data: Contact
}

/// Whether contacts, users and chats are consistent.
public struct MigrationValidation: Codable, Sendable, Hashable {
  /// Whether all contacts have a user, and all trainers and clients of a chat a contact.
  public var ok = true
  /// How many contacts were looked at.
  public var contactsChecked = 0
  /// How many chats were looked at.
  public var chatsChecked = 0
  /// How many contacts have no user.
  public var contactsWithoutUserCount = 0
  /// The first contacts without a user.
  public var contactsWithoutUser: [String] = []
  /// How many contacts are missing, counted once for each chat that asks for one.
  public var missingContactsCount = 0
  /// The first missing contacts.
  public var missingContacts: [String] = []

  /// The longest list: enough to see what is wrong; the counts say how often.
  private static let listedMax = 100

  mutating func contactWithoutUser(_ path: String) {
    ok = false
    contactsWithoutUserCount += 1
    if contactsWithoutUser.count < Self.listedMax { contactsWithoutUser.append(path) }
  }

  mutating func missingContact(_ path: String) {
    ok = false
    missingContactsCount += 1
    if missingContacts.count < Self.listedMax { missingContacts.append(path) }
  }
}

/// A list that keeps what fits and knows whether something did not.
public struct BoundedList<Element: Sendable & Hashable>: Sendable, Hashable {
  /// The first entries.
  public private(set) var elements: [Element] = []
  /// Whether there were more.
  public private(set) var isTruncated = false
  private let bytesMax: Int
  private var bytes = 0
  /// The bytes of an entry besides its texts.
  private static var overhead: Int { 100 }

  init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  mutating func append(_ element: Element, bytes size: Int) {
    guard !isTruncated, bytes + size + Self.overhead <= bytesMax else {
      isTruncated = true
      return
    }
    bytes += size + Self.overhead
    elements.append(element)
  }
}
