package import DocumentModel
import EventLog
import Events
import Identity
import QueryEngine
import StorageEngine
import Synchronization

extension DocumentDatabase {
  /// Deletes all documents of a database and their past versions, in one commit.
  ///
  /// Open transactions of the database end. Commits in progress finish first; later ones wait. Only
  /// listeners are notified, so that clearing the database between two tests fires no function.
  package func reset(_ database: DatabaseName) async throws {
    try await alone(in: database) { owner in
      let deletions = try await deletions(in: database)
      try await clear(database, telling: deletions, owner)
    }
  }

  /// Returns the deletion of every document of a database; nil if there are too many to list.
  private func deletions(in database: DatabaseName) async throws -> [DocumentChange]? {
    try await storage.read { snapshot in
      var deletions: [DocumentChange] = []
      var bytes = 0
      let prefix = DocumentKeys.databasePrefix(database)
      try snapshot.scan(DocumentKeys.keyspace, prefix: prefix) { _, value in
        let document = try DocumentKeys.decode(value.bytes)
        deletions.append(DocumentChange(name: document.name, before: document, after: nil))
        bytes += value.bytes.count
        return deletions.count <= Self.listedDeletionsMax && bytes <= CommitLog.pageBytesMax
      }
      let isListed = deletions.count <= Self.listedDeletionsMax && bytes <= CommitLog.pageBytesMax
      return isListed ? deletions : nil
    }
  }

  /// The maximum number of deletions that are reported to listeners one by one.
  private static let listedDeletionsMax = 1000

  /// Runs `body` while no other request writes to a database and no transaction of it is open.
  ///
  /// `body` must release its owner's locks unless it throws.
  func alone<Answer>(
    in database: DatabaseName,
    _ body: (LockOwner) async throws -> Answer
  ) async throws -> Answer {
    let ended = transactions.withLock { $0.endAll(in: database) }
    for owner in ended { locks.release(owner) }
    let owner = makeOwner()
    do {
      try await locks.acquire(
        LockRequest(documents: [Self.lockKey(database): .exclusive]),
        by: owner,
        until: lockDeadline()
      )
      return try await body(owner)
    } catch {
      locks.release(owner)
      throw error
    }
  }

  private func clear(
    _ database: DatabaseName,
    telling deletions: [DocumentChange]?,
    _ owner: LockOwner
  ) async throws {
    try await sequencer.commit { time, batch in
      StoredClock.writePastStart(of: database, time, to: &batch)
      let prefix = DocumentKeys.databasePrefix(database)
      for keyspace in [DocumentKeys.keyspace, PastVersions.keyspace] {
        batch.deleteRange(keyspace, from: prefix, to: keyAfter(prefix: prefix))
      }
      queryRunner.reset(database, in: &batch)
      CommitLog.append(
        deletions ?? [],
        commitTime: time,
        database: database,
        auth: .admin,
        purpose: deletions == nil ? .discontinuity : .listenersOnly,
        to: &batch
      )
      return .init(durability: .synced, changes: .everything) { [locks, tailer] _ in
        locks.release(owner)
        tailer.wake()
      }
    }
  }
}
