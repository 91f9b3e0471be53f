/// An error that a client of the Realtime Database sees.
package struct DatabaseError: Error, Hashable {
  package var kind: Kind
  /// The text that production answers.
  package var message: String

  package enum Kind: Sendable, Hashable {
    case permissionDenied
    /// The condition of a write does not hold.
    case stale
    /// The rules lack an index for a query.
    case missingIndex
    case invalid
    case tooBig
    case unavailable
  }

  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  package static let permissionDenied = DatabaseError(.permissionDenied, "Permission denied")
  package static let tooBig = DatabaseError(
    .tooBig,
    "Data requested exceeds the maximum size that can be accessed with a single request."
  )
  static let unreadable = DatabaseError(.unavailable, "The database could not be read.")
  static let stopping = DatabaseError(.unavailable, "The database is stopping.")
  package static let stale = DatabaseError(.stale, "Transaction hash does not match")
}
