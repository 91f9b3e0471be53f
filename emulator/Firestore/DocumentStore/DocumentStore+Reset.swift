package import DocumentModel
import QueryEngine
import StorageEngine
import Synchronization

extension DocumentStore {
  /// Deletes every document of a database with its past, at once.
  ///
  /// Open transactions of the database end; commits under way finish first and later ones wait. No
  /// event is recorded, so that clearing between two tests fires no function.
  package func reset(_ database: DatabaseName) async throws {
    try await alone(in: database) { owner in try await clear(database, owner) }
  }

  /// Runs `body` while nobody else writes to a database and no transaction of it is open.
  ///
  /// `body` gives the locks of its owner back unless it throws.
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

  private func clear(_ database: DatabaseName, _ owner: LockOwner) async throws {
    let _: Void = try await withCheckedThrowingContinuation { continuation in
      queryEngine.withIndexMaintenance { _ in
        var batch = WriteBatch()
        let time = nextCommitTime(notBefore: Timestamp(microseconds: 0))
        StoredClock.write(time, to: &batch)
        StoredClock.writePastStart(time, to: &batch)
        let prefix = DocumentKeys.databasePrefix(database)
        for keyspace in [DocumentKeys.keyspace, PastVersions.keyspace] {
          batch.deleteRange(keyspace, from: prefix, to: keyAfter(prefix: prefix))
        }
        queryEngine.reset(database, in: &batch)
        storage.submit(batch, expecting: [], durability: .synced) { [locks] result in
          locks.release(owner)
          continuation.resume(with: result.map { _ in })
        }
      }
    }
  }
}
