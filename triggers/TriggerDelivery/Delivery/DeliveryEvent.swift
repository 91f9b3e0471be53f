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
  /// The number of the node among those of a change in the Realtime Database; 0 for other events.
  var node: UInt32 = 0

  /// The index and the node as one number, in the order of events within their commit.
  var rank: UInt64 { UInt64(node) << 32 | UInt64(index) }

  init(sequence: UInt64, index: UInt32, node: UInt32 = 0) {
    self.sequence = sequence
    self.index = index
    self.node = node
  }

  init(sequence: UInt64, rank: UInt64) {
    self.init(
      sequence: sequence,
      index: UInt32(truncatingIfNeeded: rank),
      node: UInt32(truncatingIfNeeded: rank >> 32)
    )
  }

  static func < (left: EventPlace, right: EventPlace) -> Bool {
    (left.sequence, left.rank) < (right.sequence, right.rank)
  }
}
