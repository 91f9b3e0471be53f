import DequeModule
import DocumentModel

/// The documents that an access policy looked at for a commit, and the state in which it saw them.
struct LookUps: Sendable {
  var names: Set<DocumentName> = []
  /// The time up to which the policy's snapshot showed all commits but those that have failed.
  var visible = Timestamp(microseconds: 0)
}

/// A commit was not handed over because a document that its access policy looked at has changed.
struct LookUpsChangedError: Error {}

/// The documents that commits have changed lately, whether these are visible yet or not.
///
/// Documents are kept as hash values: where two share one, a commit is evaluated again needlessly.
struct RecentWrites: Sendable {
  /// The changes that are kept: seconds of fast writing in two or three megabytes.
  static let changesMax = 65_536

  private let changesMax: Int
  private var latest: [Int: Timestamp] = [:]
  private var order: Deque<(document: Int, time: Timestamp)> = []
  /// Changes up to this time are no longer kept.
  private var forgotten = Timestamp(microseconds: 0)

  /// No changes yet; earlier ones are visible to every snapshot.
  init(changesMax: Int = Self.changesMax) { self.changesMax = changesMax }

  /// Notes the documents that the commit of a time changes; times rise.
  mutating func note(_ documents: [DocumentName], at time: Timestamp) {
    for document in documents {
      let hash = document.hashValue
      latest[hash] = time
      order.append((hash, time))
    }
    while order.count > changesMax, let oldest = order.popFirst() {
      forgotten = oldest.time
      if latest[oldest.document] == oldest.time { latest[oldest.document] = nil }
    }
  }

  /// Notes a commit that may change any document.
  mutating func noteEverything(at time: Timestamp) {
    latest = [:]
    order = []
    forgotten = time
  }

  /// Whether every document still is as the policy saw it; false where that is no longer known.
  func areUnchanged(_ lookUps: LookUps) -> Bool {
    guard !lookUps.names.isEmpty else { return true }
    return lookUps.visible >= forgotten
      && lookUps.names.allSatisfy { name in
        latest[name.hashValue].map { $0 <= lookUps.visible } ?? true
      }
  }
}
