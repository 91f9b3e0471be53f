public import FirestoreClient

/// How far a long piece of work has got, `migrationCheckpoints/{name}`.
///
/// It only says where to begin: a resumed run still looks at everything, so a stale checkpoint
/// costs time but never leaves work undone.
public struct MigrationCheckpoint: Codable, Sendable, Hashable {
  /// Whether the work is over.
  public var status: Status
  /// The call that wrote this; of two calls at once, the later one.
  public var run: String
  /// The path of the last finished document; nil before the first.
  public var cursor: String?
  /// What that call has done so far.
  public var counts: [String: Int]
  /// The place of the backup made before that call's first write; nil when none is made.
  public var backup: String?
  /// When the checkpoint was written.
  public var updatedAt: Timestamp?

  /// Whether there is something to resume.
  public enum Status: String, Codable, Sendable, Hashable {
    case running, done
  }

  /// A checkpoint that has not been written yet.
  public init(
    status: Status = .running,
    run: String,
    cursor: String? = nil,
    counts: [String: Int] = [:],
    backup: String? = nil
  ) {
    self.status = status
    self.run = run
    self.cursor = cursor
    self.counts = counts
    self.backup = backup
  }

  /// Where checkpoints are stored.
  public static let collection = "migrationCheckpoints"
}
