/// What a rollback of one run of the migration did or, in a dry run, would do.
///
/// The counts are of everything; the lists are bounded, so that the report fits into the reply of a
/// callable: 4 MB each.
public struct RollbackReport: Codable, Sendable, Hashable {
  /// Whether nothing was removed.
  public let dryRun: Bool
  /// The run of the migration.
  public let run: String
  /// The paths of the contacts that were removed or would be.
  public private(set) var removed: [String] = []
  /// The contacts of the run that stay, and why.
  public private(set) var kept: [Note] = []
  /// The full count of each kind.
  public private(set) var counts = Counts()
  /// Whether one of the lists lacks entries.
  public private(set) var truncated = false

  private var removedRoom = ListRoom(bytes: 4 << 20)
  private var keptRoom = ListRoom(bytes: 4 << 20)

  private enum CodingKeys: String, CodingKey {
    case dryRun, run, removed, kept, counts, truncated
  }

  init(dryRun: Bool, run: String) {
    self.dryRun = dryRun
    self.run = run
  }

  /// Numbers of a rollback.
  public struct Counts: Codable, Sendable, Hashable {
    /// Contacts removed or, in a dry run, to be removed.
    public var removed = 0
    /// Entries of `kept`.
    public var kept = 0
  }

  mutating func remove(_ path: String) {
    counts.removed += 1
    if removedRoom.takes(path.utf8.count) { removed.append(path) } else { truncated = true }
  }

  mutating func keep(_ path: String, _ reason: String) {
    let note = Note(path: path, reason: reason)
    counts.kept += 1
    if keptRoom.takes(note.textBytes) { kept.append(note) } else { truncated = true }
  }
}
