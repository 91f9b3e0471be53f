package import DocumentModel
package import Events
package import Identity

/// One event of a commit, as the event log holds it and as a function receives it.
package struct DeliveryEvent: Sendable, Hashable {
  package var content: Content
  /// The time at which the event was recorded.
  package var commitTime: Timestamp
  /// The identity of the client that made the commit.
  package var auth: AuthContext
  /// The trace of the commit, in the format of the W3C header `traceparent`; nil if there is none.
  package var traceParent: String?

  /// The document change or other occurrence that the event reports.
  package enum Content: Sendable, Hashable {
    case document(DocumentChange)
    case occurrence(Occurrence)
  }

  /// Creates an event of a commit.
  package init(
    content: Content,
    commitTime: Timestamp,
    auth: AuthContext,
    traceParent: String? = nil
  ) {
    self.content = content
    self.commitTime = commitTime
    self.auth = auth
    self.traceParent = traceParent
  }

  /// The task that the event carries; nil for other events.
  package var task: EnqueuedTask? {
    if case .occurrence(.task(let task)) = content { task } else { nil }
  }
}

/// The position of an event: its commit, and its index among the commit's changes and occurrences.
struct EventPlace: Sendable, Hashable, Comparable {
  var sequence: UInt64
  var index: UInt32

  static func < (left: EventPlace, right: EventPlace) -> Bool {
    (left.sequence, left.index) < (right.sequence, right.index)
  }
}
