public import PsstModels
public import PsstServices

/// The report of a migration of chats, or of its dry run.
///
/// The counts are complete. The lists are limited, so that the report fits into the reply of a
/// callable: to 8 MB of contacts, and 1 MB each of skips and errors.
public struct MigrationReport: Codable, Sendable, Hashable {
  /// True if the run wrote nothing.
  public let dryRun: Bool
  /// The run's unique id, which is also the source of the contacts that it creates.
  public let run: String
  /// The contacts that this run created or would create, as they are stored.
  public private(set) var contacts: [MigratedContact] = []
  /// The complete counts.
  public internal(set) var counts = Counts()
  /// The documents that were skipped, and users whose role had to be assumed.
  public private(set) var skips: [Note] = []
  /// The documents that are malformed or could not be written; the run continued after each.
  public private(set) var errors: [Note] = []
  /// The location of the backup; nil for a dry run.
  @Nullable public internal(set) var backup: String?
  /// True if one of the lists is incomplete.
  public private(set) var truncated = false

  private var contactRoom = ListLimit(bytes: 8 << 20)
  private var skipRoom = ListLimit(bytes: 1 << 20)
  private var errorRoom = ListLimit(bytes: 1 << 20)

  private enum CodingKeys: String, CodingKey {
    case dryRun, run, contacts, counts, skips, errors, backup, truncated
  }

  init(dryRun: Bool, run: String) {
    self.dryRun = dryRun
    self.run = run
    _backup = Nullable(wrappedValue: nil)
  }

  /// The counts of a migration.
  public struct Counts: Codable, Sendable, Hashable {
    /// The number of trainers examined, including users without a role.
    public var trainers = 0
    /// The number of contacts created or, in a dry run, to be created.
    public var created = 0
    /// The number of contacts that already existed.
    public var existing = 0
    /// The number of skipped documents, including any omitted from `skips`.
    public var skipped = 0
    /// The number of errors, including any omitted from `errors`.
    public var errors = 0
  }

  mutating func skip(_ path: String, _ reason: String) {
    let note = Note(path: path, reason: reason)
    counts.skipped += 1
    if skipRoom.takes(note.textBytes) { skips.append(note) } else { truncated = true }
  }

  mutating func fail(_ path: String, _ reason: String) {
    let note = Note(path: path, reason: reason)
    counts.errors += 1
    if errorRoom.takes(note.textBytes) { errors.append(note) } else { truncated = true }
  }

  mutating func create(_ contact: MigratedContact) {
    counts.created += 1
    if contactRoom.takes(contact.textBytes) { contacts.append(contact) } else { truncated = true }
  }
}

/// A remark on a document.
public struct Note: Codable, Sendable, Hashable {
  /// The path of the document.
  public var path: String
  /// The text of the remark.
  public var reason: String

  var textBytes: Int { path.utf8.count + reason.utf8.count }
}

/// A contact that a migration creates.
public struct MigratedContact: Codable, Sendable, Hashable {
  /// The path of the contact.
  public var path: String
  /// The fields of the contact.
  public var data: Client

  fileprivate var textBytes: Int {
    // The uid and the run's id each occur about twice.
    path.utf8.count + 2 * data.clientId.utf8.count + data.displayName.utf8.count
      + data.email.utf8.count
  }
}
