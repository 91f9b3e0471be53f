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
  /// Other events of the commit; a record for events has at least one change or occurrence.
  package var occurrences: [Occurrence]
  /// Who committed.
  package var auth: AuthContext
  /// The delivery on whose behalf the commit was made, if one is known.
  package var cause: String?
  /// What the record is there for.
  package var purpose: Purpose

  /// What a commit wants to be known of it.
  package enum Purpose: Sendable, Hashable {
    /// Triggers fire and listeners are told.
    case events
    /// Only listeners are told: the changes are all that was changed.
    case listenersOnly
    /// Listeners must read the database again: it was changed in ways that are not listed.
    case discontinuity
  }

  /// A record as the log returns it.
  package init(
    sequence: UInt64,
    commitTime: Timestamp,
    database: DatabaseName,
    changes: [DocumentChange],
    occurrences: [Occurrence] = [],
    auth: AuthContext,
    cause: String? = nil,
    purpose: Purpose = .events
  ) {
    self.sequence = sequence
    self.commitTime = commitTime
    self.database = database
    self.changes = changes
    self.occurrences = occurrences
    self.auth = auth
    self.cause = cause
    self.purpose = purpose
  }
}
