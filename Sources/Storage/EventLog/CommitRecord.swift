package import DocumentModel
package import Events
package import Identity

/// The record of one commit for listeners and triggers, with everything that changed in it.
package struct CommitRecord: Sendable, Hashable {
  /// The commit's number, which orders all events for listeners and triggers.
  package var sequence: UInt64
  package var commitTime: Timestamp
  package var database: DatabaseName
  /// One change per document.
  ///
  /// Writes that changed nothing are left out.
  package var changes: [DocumentChange]
  /// Other events of the commit.
  ///
  /// A record for events has at least one change or occurrence.
  package var occurrences: [Occurrence]
  /// The identity of the caller that committed.
  package var auth: AuthContext
  /// The id of the delivery whose function made the commit; nil if unknown.
  package var cause: String?
  /// The readers for which the record is meant.
  package var purpose: Purpose

  /// The purpose of a record.
  package enum Purpose: Sendable, Hashable {
    /// Triggers fire, and listeners are notified.
    case events
    /// Only listeners are notified. The listed changes are complete.
    case listenersOnly
    /// Listeners must read the database again, because it was changed in ways that are not listed.
    case discontinuity
  }

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
