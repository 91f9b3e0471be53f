public import FirestoreClient

/// How far a long piece of work has got, `migrationCheckpoints/{name}`.
///
/// Only says where to begin: whoever resumes still looks at everything, so that a stale one costs
/// time and never work left undone.
public struct MigrationCheckpoint: Codable, Sendable, Hashable {
  /// Whether the work is over.
  public var status: Status
  /// Which call wrote this; of two calls at once the later one.
  public var run: String
  /// The path of the last document that is done with; nil before the first.
  public var cursor: String?
  /// What that call has done so far.
  public var counts: [String: Int]
  /// Where the backup lies that was made before that call's first write; nil where none is made.
  public var backup: String?
  /// When this was written.
  public var updatedAt: Timestamp?

  /// Whether there is something to resume.
  public enum Status: String, Codable, Sendable, Hashable {
    case running, done
  }

  /// A checkpoint that is not written yet.
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
