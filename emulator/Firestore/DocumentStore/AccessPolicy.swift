package import DocumentModel
package import Identity

/// Decides who may read and write what: the place of security rules.
///
/// A policy is asked for every request except the administrator's, on the request's own snapshot
/// and before preconditions. It runs inside a storage read, so it must not wait. When it needs more
/// than a few milliseconds and the view is brief, it throws `LongDecisionError` and is asked again.
/// It refuses by throwing, as a rule `PERMISSION_DENIED`.
package protocol AccessPolicy: Sendable {
  /// Whether everybody may do everything in a database.
  func isOpen(_ database: DatabaseName) -> Bool

  /// Whether all documents of one request, existing or not, may be read.
  func authorizeReads(
    _ documents: [(name: DocumentName, document: FirestoreDocument?)],
    auth: AuthContext,
    view: AccessView
  ) throws

  /// Whether a query or a list may run; it is not asked again for single results.
  func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws

  /// Whether a request may be made that no rule can allow, but only the administrator.
  func authorize(_ request: AdministrativeRequest, in database: DatabaseName) throws

  /// Whether all writes of a commit may be made; `view` also shows the state after them.
  func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) throws
}

/// Requests that ask for more than documents that a rule could allow.
package enum AdministrativeRequest: Sendable, Hashable {
  case listCollections, listMissingDocuments, batchWrite, partition, explain
}

/// One write as a policy sees it.
package struct AccessWrite: Sendable {
  package var write: Write
  /// The document before this write, earlier writes of the commit included.
  package var before: FirestoreDocument?
  /// The document that the write would leave; new times are the request's.
  package var after: FirestoreDocument?
}

/// What a policy may look at while it decides; valid only during the call.
///
/// What it looks at is noted: when it changes, a listener loses access, and a commit that is not
/// yet handed to storage is decided again.
package struct AccessView {
  /// The documents that were looked at.
  final class Notes {
    var names: Set<DocumentName> = []
  }

  /// The request's time, equal to that of its server timestamps.
  package let requestTime: Timestamp
  /// Whether the decision is made on a thread that short requests need.
  package let isBrief = !LongDecisions.isOneOfThem
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

  /// A document as the request finds it.
  package func document(_ name: DocumentName) throws -> FirestoreDocument? {
    notes?.names.insert(name)
    return try stored(name)
  }

  /// A document as the whole commit would leave it; the same as `document` for reads.
  package func documentAfter(_ name: DocumentName) throws -> FirestoreDocument? {
    notes?.names.insert(name)
    return try written(name)
  }
}

/// The policy that allows everything.
package struct OpenAccess: AccessPolicy {
  /// The policy of a store without rules.
  package init() {}

  /// Always.
  package func isOpen(_ database: DatabaseName) -> Bool { true }

  /// Allows every read.
  package func authorizeReads(
    _ documents: [(name: DocumentName, document: FirestoreDocument?)],
    auth: AuthContext,
    view: AccessView
  ) {}

  /// Allows every query.
  package func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) {}

  /// Allows every request of an administrator.
  package func authorize(_ request: AdministrativeRequest, in database: DatabaseName) {}

  /// Allows every write.
  package func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) {}
}
