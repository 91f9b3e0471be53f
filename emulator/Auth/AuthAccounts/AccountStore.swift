package import DocumentModel
package import EventLog
import Events
import Identifiers
import Identity
package import StorageEngine

/// The users of a project, stored beside its documents.
///
/// A change is durable when its call returns. The events of a change are in the same commit, so
/// functions see every user that exists, and none that does not.
package final class AccountStore: Sendable {
  /// The project whose users these are.
  package let project: String
  private let storage: any OrderedStorage
  private let tailer: EventTailer
  private let now: @Sendable () -> Timestamp

  /// Creates the store of a project's users; `tailer` is woken for each event.
  package init(
    storage: any OrderedStorage,
    tailer: EventTailer,
    project: String,
    now: @escaping @Sendable () -> Timestamp
  ) {
    self.storage = storage
    self.tailer = tailer
    self.project = project
    self.now = now
  }

  /// The suite's time.
  package var time: Timestamp { now() }

  /// Runs `body` on a consistent view of all users, synchronously.
  package func read<Result: Sendable>(
    _ body: (AccountView) throws -> sending Result
  ) async throws -> sending Result {
    try await storage.read { try body(AccountView(snapshot: $0)) }
  }

  /// Returns the result of `body` without committing the changes that it makes.
  package func preview<Result: Sendable>(
    _ body: @Sendable (inout AccountChange) throws -> Result
  ) async throws -> Result {
    try await storage.read { snapshot in
      var change = AccountChange(AccountView(snapshot: snapshot))
      return try body(&change)
    }
  }

  /// Commits the changes that `body` makes, completely or not at all; returns its result.
  ///
  /// `body` runs again if anything that it has read has changed since. Throws what `body` throws,
  /// and then changes nothing.
  @discardableResult
  package func change<Result: Sendable>(
    durability: Durability = .synced,
    _ body: @Sendable (inout AccountChange) throws -> Result
  ) async throws -> Result {
    while true {
      let (result, batch, expectations) = try await storage.read { snapshot in
        var change = AccountChange(AccountView(snapshot: snapshot))
        let result = try body(&change)
        var batch = try change.batch()
        let time = now()
        CommitLog.append(
          [],
          change.events.map { .event($0.cloudEvent(of: $1, project: project, time: time)) },
          commitTime: time,
          database: DatabaseName(project: project),
          auth: .admin,
          to: &batch
        )
        return (result, batch, Array(change.expectations))
      }
      guard !batch.operations.isEmpty else { return result }
      do {
        try await storage.commit(batch, expecting: expectations, durability: durability)
        tailer.wake()
        return result
      } catch let error as StorageError where error.kind == .conflict {
        try Task.checkCancellation()
      }
    }
  }

  /// Deletes all users without events; the settings stay.
  package func deleteAll() async throws {
    var batch = StorageBatch()
    batch.deleteRange(AccountRows.users, from: nil, to: nil)
    batch.deleteRange(AccountRows.identities, from: nil, to: nil)
    batch.deleteRange(AccountRows.providerEmails, from: nil, to: nil)
    try await storage.commit(batch)
  }

  /// Returns the secret with which this store's refresh tokens are signed; made at the first call.
  package func tokenSecret() async throws -> [UInt8] {
    let key = AccountRows.secretKey
    while true {
      let stored = try await storage.read { try $0.get(AccountRows.settings, key)?.bytes }
      if let stored { return stored }
      var batch = StorageBatch()
      batch.put(AccountRows.settings, key, Array(RandomID.make(length: 40).utf8))
      do {
        try await storage.commit(
          batch,
          expecting: [VersionExpectation(AccountRows.settings, key, version: nil)]
        )
      } catch let error as StorageError where error.kind == .conflict {
        // Another request has made the secret.
      }
    }
  }
}
