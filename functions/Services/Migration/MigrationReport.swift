public import PsstModels

/// What a migration of chats did or, in a dry run, would do.
///
/// The counts are of everything; the lists are bounded, so that the report fits into the reply of a
/// callable: 8 MB of contacts, and 1 MB each of skips and errors.
public struct MigrationReport: Codable, Sendable, Hashable {
  /// Whether nothing was written.
  public let dryRun: Bool
  /// The run's id, which is the source of the contacts that it makes; every run has its own.
  public let run: String
  /// The contacts that this run made or would make, as they are stored.
  public private(set) var contacts: [MigratedContact] = []
  /// The full count of each kind.
  public internal(set) var counts = Counts()
  /// What was left out although a chat calls for it, and users whose role had to be guessed.
  public private(set) var skips: [Note] = []
  /// What is malformed or could not be written; the run went on after each.
  public private(set) var errors: [Note] = []
  /// The place of the backup; nil for a dry run.
  @Nullable public internal(set) var backup: String?
  /// Whether one of the lists lacks entries.
  public private(set) var truncated = false

  private var contactRoom = ListRoom(bytes: 8 << 20)
  private var skipRoom = ListRoom(bytes: 1 << 20)
  private var errorRoom = ListRoom(bytes: 1 << 20)

  private enum CodingKeys: String, CodingKey {
    case dryRun, run, contacts, counts, skips, errors, backup, truncated
  }

  init(dryRun: Bool, run: String) {
    self.dryRun = dryRun
    self.run = run
    _backup = Nullable(wrappedValue: nil)
  }

  /// Numbers of a migration.
  public struct Counts: Codable, Sendable, Hashable {
    /// Trainers looked at, including users without a role.
    public var trainers = 0
    /// Contacts made or, in a dry run, to be made.
    public var created = 0
    /// Contacts that already existed.
    public var existing = 0
    /// Entries of `skips`.
    public var skipped = 0
    /// Entries of `errors`.
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

/// A remark on one document.
public struct Note: Codable, Sendable, Hashable {
  /// The document.
  public var path: String
  /// The remark.
  public var reason: String

  var textBytes: Int { path.utf8.count + reason.utf8.count }
}

/// One contact that a migration makes.
public struct MigratedContact: Codable, Sendable, Hashable {
  /// The place of the contact.
  public var path: String
  /// The stored fields.
  public var data: Contact

  fileprivate var textBytes: Int {
    // The uid and the run are each there twice or so.
    path.utf8.count + 2 * data.clientId.utf8.count + data.displayName.utf8.count
      + data.email.utf8.count
  }
}
