package import DocumentModel
import QueryEngine
import StorageEngine
import Synchronization

extension DocumentDatabase {
  /// Deletes every document of a database with its past, at once.
  ///
  /// Open transactions of the database end; commits under way finish first and later ones wait. No
  /// event is recorded, so that clearing between two tests fires no function.
  package func reset(_ database: DatabaseName) async throws {
    try await alone(in: database) { owner in try await clear(database, owner) }
  }

  /// Runs `body` while nobody else writes to a database and no transaction of it is open.
  ///
  /// `body` releases its owner's locks unless it throws.
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
    try await sequencer.commit { time, batch in
      StoredClock.writePastStart(of: database, time, to: &batch)
      let prefix = DocumentKeys.databasePrefix(database)
      for keyspace in [DocumentKeys.keyspace, PastVersions.keyspace] {
        batch.deleteRange(keyspace, from: prefix, to: keyAfter(prefix: prefix))
      }
      queryRunner.reset(database, in: &batch)
      return .init(durability: .synced) { [locks] _ in locks.release(owner) }
    }
  }
}
