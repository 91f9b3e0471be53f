package import DocumentModel

/// The subject of a listener: a query or a set of documents.
package enum ListenTarget: Sendable, Hashable {
  /// The results of a query; its projection is ignored.
  case query(Query)
  /// Documents, whether they exist or not.
  case documents([DocumentName])
}

/// The point from which a reconnecting listener resumes.
package enum ResumePoint: Sendable, Hashable {
  /// A token of an earlier stream, as sent by the client.
  case token([UInt8])
  /// A time as of which the listener had the target's documents.
  case readTime(Timestamp)
}

/// A client's request to listen to one target.
package struct ListenRequest: Sendable, Hashable {
  package var target: ListenTarget
  package var resumePoint: ResumePoint?
  /// The number of documents that the target had at the resume point, according to the client.
  package var expectedCount: Int?
  /// True if the target is removed once its documents have been sent.
  package var isOnce: Bool

  /// Creates a request to listen to `target` until it is removed.
  package init(
    _ target: ListenTarget,
    resumePoint: ResumePoint? = nil,
    expectedCount: Int? = nil,
    isOnce: Bool = false
  ) {
    self.target = target
    self.resumePoint = resumePoint
    self.expectedCount = expectedCount
    self.isOnce = isOnce
  }
}
