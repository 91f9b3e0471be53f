package import DocumentModel
package import Identity

/// Decides who may read and write what: the place of security rules.
///
/// A policy is asked for every request except the administrator's, on the request's own snapshot
/// and before preconditions. It runs inside a storage read, so it must neither wait nor take long.
/// It refuses by throwing, as a rule `PERMISSION_DENIED`.
package protocol AccessPolicy: Sendable {
  /// Whether one document, existing or not, may be read.
  func authorizeRead(
    _ name: DocumentName,
    _ document: FirestoreDocument?,
    auth: AuthContext,
    view: AccessView
  ) throws

  /// Whether a query or a list may run; it is not asked again for single results.
  func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) throws

  /// Whether the ids of the collections below a document or the root may be listed.
  func authorizeCollectionList(
    _ parent: ResourcePath,
    in database: DatabaseName,
    auth: AuthContext,
    view: AccessView
  ) throws

  /// Whether all writes of a commit may be made; `view` also shows the state after them.
  func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) throws
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
package struct AccessView {
  /// The request's time, equal to that of its server timestamps.
  package let requestTime: Timestamp
  private let stored: (DocumentName) throws -> FirestoreDocument?
  private let written: (DocumentName) throws -> FirestoreDocument?

  init(
    requestTime: Timestamp,
    stored: @escaping (DocumentName) throws -> FirestoreDocument?,
    written: ((DocumentName) throws -> FirestoreDocument?)? = nil
  ) {
    self.requestTime = requestTime
    self.stored = stored
    self.written = written ?? stored
  }

  /// A document as the request finds it.
  package func document(_ name: DocumentName) throws -> FirestoreDocument? { try stored(name) }

  /// A document as the whole commit would leave it; the same as `document` for reads.
  package func documentAfter(_ name: DocumentName) throws -> FirestoreDocument? {
    try written(name)
  }
}

/// The policy that allows everything.
package struct OpenAccess: AccessPolicy {
  /// The policy of a store without rules.
  package init() {}

  /// Allows every read.
  package func authorizeRead(
    _ name: DocumentName,
    _ document: FirestoreDocument?,
    auth: AuthContext,
    view: AccessView
  ) {}

  /// Allows every query.
  package func authorizeQuery(_ query: Query, auth: AuthContext, view: AccessView) {}

  /// Allows every list of collections.
  package func authorizeCollectionList(
    _ parent: ResourcePath,
    in database: DatabaseName,
    auth: AuthContext,
    view: AccessView
  ) {}

  /// Allows every write.
  package func authorizeWrites(_ writes: [AccessWrite], auth: AuthContext, view: AccessView) {}
}
