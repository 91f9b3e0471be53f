import FirestoreClient
import PsstModels

/// Reads and writes the checkpoint of one piece of work, for one run.
///
/// Nothing is written before `claim`, so a run with nothing to do leaves no trace. The newest run
/// owns the checkpoint: a killed run never stands in the way of the next one, and a run that is
/// still alive learns from `save` that it has been taken over.
struct CheckpointKeeper: Sendable {
  let reference: DocumentReference
  let run: String
  /// Where the run begins; nil at the start.
  private(set) var cursor: String?
  /// When this run last wrote the checkpoint; nil until it has.
  private var written: Timestamp?
  private var backup: String?
  /// Whether another run has taken over the work.
  private(set) var isTakenOver = false
  /// Whether an earlier run left the work unfinished.
  private(set) var isResumed = false

  /// The most attempts: a write may meet a newer write of the same run that was thought lost.
  private static let attemptsMax = 5

  /// Reads what an earlier run has left; with `ignoring` it begins anew.
  init(_ name: String, in firestore: Firestore, ignoring: Bool) async throws {
    let checkpoints = firestore.collection(MigrationCheckpoint.collection)
    reference = checkpoints.document(name)
    run = checkpoints.document().id
    guard !ignoring else { return }
    let snapshot = try await reference.get()
    // An unreadable checkpoint is as good as none, because it only says where to begin.
    guard snapshot.exists,
      let left = try snapshot.data(as: Lenient<MigrationCheckpoint>.self).value,
      left.status == .running
    else { return }
    isResumed = true
    cursor = left.cursor
  }

  /// Whether this run has written the checkpoint.
  var isClaimed: Bool { written != nil }

  /// Makes this run the checkpoint's owner; called before the work's first write.
  mutating func claim(backup: String? = nil) async throws {
    guard !isClaimed else { return }
    self.backup = backup
    let start = MigrationCheckpoint(run: run, cursor: cursor, backup: backup)
    let result = try await reference.set(try fields(of: start))
    written = result.updateTime
  }

  /// Writes how far the run has got; returns false, without writing, when it was taken over.
  ///
  /// Does nothing before `claim`.
  @discardableResult
  mutating func save(
    cursor: String?,
    counts: [String: Int],
    status: MigrationCheckpoint.Status = .running
  ) async throws -> Bool {
    guard isClaimed, !isTakenOver else { return !isTakenOver }
    let checkpoint = MigrationCheckpoint(
      status: status,
      run: run,
      cursor: cursor,
      counts: counts,
      backup: backup
    )
    for _ in 0..<Self.attemptsMax {
      do {
        let result = try await reference.update(try fields(of: checkpoint), lastUpdated: written)
        written = result.updateTime
        return true
      } catch let error as FirestoreError
        where error.code == .failedPrecondition || error.code == .notFound
      {
        let snapshot = try await reference.get()
        guard snapshot["run"] == .string(run) else {
          isTakenOver = true
          return false
        }
        written = snapshot.updateTime
      }
    }
    throw FirestoreError(.aborted, "the checkpoint \(reference.path) keeps changing; call again")
  }

  /// Ends the work, so that the next run begins at the start.
  mutating func finish(counts: [String: Int]) async throws {
    // Work that an earlier run left and that turns out to be done is finished too.
    if isResumed { try await claim(backup: backup) }
    try await save(cursor: nil, counts: counts, status: .done)
  }

  private func fields(of checkpoint: MigrationCheckpoint) throws -> [String: FieldValue] {
    var fields: [String: FieldValue] = [
      "status": .value(checkpoint.status.rawValue), "run": .value(checkpoint.run),
      "counts": .value(checkpoint.counts), "updatedAt": .serverTimestamp,
    ]
    fields["cursor"] = .value(checkpoint.cursor)
    fields["backup"] = .value(checkpoint.backup)
    return fields
  }
}
