package import DocumentModel
package import Events
package import Identity

/// One commit as listeners and triggers see it: everything that happened in it, at once.
package struct CommitRecord: Sendable, Hashable {
  /// The commit's place in the only clock that listeners and triggers share.
  package var sequence: UInt64
  package var commitTime: Timestamp
  package var database: DatabaseName
  /// One change per document; writes that changed nothing are left out.
  package var changes: [DocumentChange]
  /// Other events of the commit; a record has at least one change or occurrence.
  package var occurrences: [Occurrence]
  /// Who committed.
  package var auth: AuthContext
  /// The delivery on whose behalf the commit was made, if one is known.
  package var cause: String?

  /// A record as the log returns it.
  package init(
    sequence: UInt64,
    commitTime: Timestamp,
    database: DatabaseName,
    changes: [DocumentChange],
    occurrences: [Occurrence] = [],
    auth: AuthContext,
    cause: String? = nil
  ) {
    self.sequence = sequence
    self.commitTime = commitTime
    self.database = database
    self.changes = changes
    self.occurrences = occurrences
    self.auth = auth
    self.cause = cause
  }
}
