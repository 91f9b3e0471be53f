package import DocumentModel
package import Events
package import Identity

/// One commit as listeners and triggers see it: everything it changed, at once.
package struct CommitRecord: Sendable, Hashable {
  /// The commit's place in the only clock that listeners and triggers share.
  package var sequence: UInt64
  package var commitTime: Timestamp
  package var database: DatabaseName
  /// At least one; one per document; writes that changed nothing are left out.
  package var changes: [DocumentChange]
  /// Who committed.
  package var auth: AuthContext

  /// A record as the log returns it.
  package init(
    sequence: UInt64,
    commitTime: Timestamp,
    database: DatabaseName,
    changes: [DocumentChange],
    auth: AuthContext
  ) {
    self.sequence = sequence
    self.commitTime = commitTime
    self.database = database
    self.changes = changes
    self.auth = auth
  }
}
