package import DocumentModel
package import Events
package import Identity

/// What a function is told: one event of a commit, as the event log holds it.
package struct DeliveryEvent: Sendable, Hashable {
  package var content: Content
  /// When the event was recorded.
  package var commitTime: Timestamp
  /// Who committed.
  package var auth: AuthContext
  /// The trace that the commit belongs to, as the W3C's header `traceparent`; nil for none.
  package var traceParent: String?

  /// What happened.
  package enum Content: Sendable, Hashable {
    case document(DocumentChange)
    case occurrence(Occurrence)
  }

  /// An event of a commit.
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

  /// The task that the event brings; nil for other events.
  package var task: EnqueuedTask? {
    if case .occurrence(.task(let task)) = content { task } else { nil }
  }
}

/// The place of an event: its commit, and its index among the commit's changes and occurrences.
struct EventPlace: Sendable, Hashable, Comparable {
  var sequence: UInt64
  var index: UInt32

  static func < (left: EventPlace, right: EventPlace) -> Bool {
    (left.sequence, left.index) < (right.sequence, right.index)
  }
}
