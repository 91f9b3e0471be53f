/// The report of a rollback of one run of the migration, or of its dry run.
///
/// The counts are complete. The lists are limited to 4 MB each, so that the report fits into the
/// reply of a callable.
public struct RollbackReport: Codable, Sendable, Hashable {
  /// True if the run removed nothing.
  public let dryRun: Bool
  /// The id of the migration's run.
  public let run: String
  /// The paths of the contacts that were removed or would be removed.
  public private(set) var removed: [String] = []
  /// The contacts of the run that were kept, with the reasons.
  public private(set) var kept: [Note] = []
  /// The complete counts.
  public private(set) var counts = Counts()
  /// True if one of the lists is incomplete.
  public private(set) var truncated = false

  private var removedRoom = ListLimit(bytes: 4 << 20)
  private var keptRoom = ListLimit(bytes: 4 << 20)

  private enum CodingKeys: String, CodingKey {
    case dryRun, run, removed, kept, counts, truncated
  }

  init(dryRun: Bool, run: String) {
    self.dryRun = dryRun
    self.run = run
  }

  /// The counts of a rollback.
  public struct Counts: Codable, Sendable, Hashable {
    /// The number of contacts removed or, in a dry run, to be removed.
    public var removed = 0
    /// The number of contacts kept, including any omitted from `kept`.
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
