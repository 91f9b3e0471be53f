package import DocumentModel
import EventLog
import Events
import Identity
import QueryEngine
package import StatusCodes
import StorageEngine
import Synchronization

/// Importing documents unchanged, including their times.
extension DocumentDatabase {
  /// Throws if no write could have made a document, with the error that a write would throw.
  package static func check(_ document: FirestoreDocument) throws(StatusError) {
    let write = Write(.update(document.name, fields: document.fields, mask: nil, transforms: []))
    try WriteValidation.check(write, in: document.name.database, takesAnyVector: true)
    try DocumentLimits.check(document.name, document.fields)
  }

  /// Stores documents that have passed `check`, replacing existing documents of the same names.
  ///
  /// Stores all or none and returns how many differ from what was stored. Writers wait while it
  /// runs, and open transactions of the database end. With `recordsEvents`, each change is recorded
  /// as an event that fires triggers. Without it, only listeners are notified, and the state up to
  /// now can no longer be read.
  package func load(
    _ documents: [FirestoreDocument],
    into database: DatabaseName,
    recordsEvents: Bool
  ) async throws -> Int {
    if recordsEvents { try checkEventLog() }
    return try await alone(in: database) { owner in
      let changes = try await changes(documents)
      guard !changes.isEmpty else {
        locks.release(owner)
        return 0
      }
      try await submit(changes, database, owner, recordsEvents)
      return changes.count
    }
  }

  /// Returns the changes that store these documents; of several with one name, the last counts.
  private func changes(_ documents: [FirestoreDocument]) async throws -> [DocumentChange] {
    let wanted = Self.inOrder(documents)
    return try await storage.read { snapshot in
      let reader = SnapshotReader(snapshot)
      var changes: [DocumentChange] = []
      for after in wanted {
        let before = try reader.document(after.name)
        if before != after {
          changes.append(DocumentChange(name: after.name, before: before, after: after))
        }
      }
      return changes
    }
  }

  /// Returns the documents ordered by name, of several with one name the last.
  private static func inOrder(_ documents: [FirestoreDocument]) -> [FirestoreDocument] {
    // Most exports are in this order, and sorting takes a quarter of the time of an import.
    let isInOrder = zip(documents, documents.dropFirst()).allSatisfy { $0.name < $1.name }
    guard !isInOrder else { return documents }
    let last = Dictionary(documents.map { ($0.name, $0) }) { $1 }
    return last.keys.sorted().compactMap { last[$0] }
  }

  private func submit(
    _ changes: [DocumentChange],
    _ database: DatabaseName,
    _ owner: LockOwner,
    _ recordsEvents: Bool
  ) async throws {
    try await sequencer.commit { time, batch in
      let maintainer = queryRunner.indexMaintainer
      for change in changes {
        guard let after = change.after else { continue }
        let key = DocumentKeys.key(change.name)
        batch.put(DocumentKeys.keyspace, key, DocumentKeys.encode(after))
        maintainer.append(change, to: &batch)
        if recordsEvents { PastVersions.keep(change, documentKey: key, at: time, in: &batch) }
      }
      if !recordsEvents { StoredClock.writePastStart(of: database, time, to: &batch) }
      CommitLog.append(
        recordsEvents ? changes : [],
        commitTime: time,
        database: database,
        auth: .admin,
        purpose: recordsEvents ? .events : .discontinuity,
        to: &batch
      )
      return .init(durability: .relaxed, changes: .everything) { [locks, tailer] _ in
        locks.release(owner)
        tailer.wake()
      }
    }
  }
}
