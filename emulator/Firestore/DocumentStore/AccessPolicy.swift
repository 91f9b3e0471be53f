package import DocumentModel
package import Identity

/// An access control policy: decides which reads and writes a caller may make.
///
/// Security rules are one implementation. The policy is consulted for every request except the
/// administrator's. It sees the request's own snapshot and runs before preconditions are checked.
///
/// Calls run inside a storage read, so an implementation must not wait. If it needs more than a few
/// milliseconds and the view is brief, it throws `LongDecisionError`, and the request is evaluated
/// again on another thread. It denies access by throwing; security rules throw `PERMISSION_DENIED`.
package protocol AccessPolicy: Sendable {
  /// True if every caller may do everything in a database.
  func isOpen(_ database: DatabaseName) -> Bool

  /// Throws unless the caller may read all documents of one request, whether they exist or not.
  func authorizeReads(
    _ documents: [(name: DocumentName, document: FirestoreDocument?)],
    auth: AuthContext,
    view: AccessView
  ) throws

  /// Throws unless the caller may run a query or a list.
  ///
  /// Single results are not checked again.
  func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws

  /// Throws for a request reserved for the administrator, unless the database is open.
  ///
  /// Called only for callers other than the administrator.
  func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws

  /// Throws unless the caller may make all writes of a commit.
  ///
  /// `view` also shows the state after the writes.
  func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) throws
}

/// Requests reserved for the administrator because no security rule covers them.
package enum AdministrativeRequest: Sendable, Hashable {
  case listCollections, listMissingDocuments, batchWrite, partition, explain
}

/// One write of a commit, with the states of its document before and after it.
package struct AccessWrite: Sendable {
  package var write: Write
  /// The document before this write, including the effects of earlier writes of the commit.
  package var before: FirestoreDocument?
  /// The document that the write would leave.
  ///
  /// New create and update times are the request's time.
  package var after: FirestoreDocument?
}

/// A view of the stored documents for one access decision; valid only during the call.
///
/// Every document that a policy reads is recorded. When one of them changes, a listener's access is
/// rechecked, and a commit that has not yet been submitted to storage is evaluated again.
package struct AccessView {
  /// The names of the documents that the policy has read.
  final class Notes {
    var names: Set<DocumentName> = []
  }

  /// The request's time, equal to that of its server timestamps.
  package let requestTime: Timestamp
  /// True if the decision runs on a thread that short requests need.
  package let isBrief = !LongDecisions.isSeparated
  private let stored: (DocumentName) throws -> FirestoreDocument?
  private let written: (DocumentName) throws -> FirestoreDocument?

  private let notes: Notes?

  init(
    requestTime: Timestamp,
    notes: Notes? = nil,
    stored: @escaping (DocumentName) throws -> FirestoreDocument?,
    written: ((DocumentName) throws -> FirestoreDocument?)? = nil
  ) {
    self.requestTime = requestTime
    self.notes = notes
    self.stored = stored
    self.written = written ?? stored
  }

  /// Returns a document as it is before the request.
  package func document(_ name: DocumentName) throws -> FirestoreDocument? {
    notes?.names.insert(name)
    return try stored(name)
  }

  /// Returns a document as the whole commit would leave it; for reads, the same as `document`.
  package func documentAfter(_ name: DocumentName) throws -> FirestoreDocument? {
    notes?.names.insert(name)
    return try written(name)
  }
}

/// A policy that allows everything.
package struct OpenAccess: AccessPolicy {
  package init() {}

  package func isOpen(_ database: DatabaseName) -> Bool { true }

  package func authorizeReads(
    _ documents: [(name: DocumentName, document: FirestoreDocument?)],
    auth: AuthContext,
    view: AccessView
  ) {}

  package func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) {}

  package func authorize(_ request: AdministrativeRequest, in database: DatabaseName) {}

  package func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) {}
}
