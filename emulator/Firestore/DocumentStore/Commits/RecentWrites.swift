import DequeModule
import DocumentModel

/// The documents that an access policy read for a commit, and the time as of which it read them.
struct LookUps: Sendable {
  var names: Set<DocumentName> = []
  /// The time up to which the policy's snapshot showed every commit that did not fail.
  var visible = Timestamp(microseconds: 0)
}

/// An error for a commit that was not submitted because its access decision is out of date.
///
/// A document that the access policy read has changed since.
struct LookUpsChangedError: Error {}

/// The documents that recent commits have changed, including commits that are not visible yet.
///
/// Documents are kept as hash values. If two documents have the same hash, a commit may be
/// evaluated again without need.
struct RecentWrites: Sendable {
  /// The maximum number of changes kept: some seconds of fast writing, in two or three megabytes.
  static let changesMax = 65_536

  private let changesMax: Int
  private var latest: [Int: Timestamp] = [:]
  private var order: Deque<(document: Int, time: Timestamp)> = []
  /// The time up to which changes are no longer kept.
  private var forgotten = Timestamp(microseconds: 0)

  /// Creates an empty record; earlier commits must be visible to every snapshot.
  init(changesMax: Int = Self.changesMax) { self.changesMax = changesMax }

  /// Records the documents that the commit of a time changes; times must increase.
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

  /// Records a commit that may change any document.
  mutating func noteEverything(at time: Timestamp) {
    latest = [:]
    order = []
    forgotten = time
  }

  /// Returns true if every document is still as the policy read it; false if that is unknown.
  func areUnchanged(_ lookUps: LookUps) -> Bool {
    guard !lookUps.names.isEmpty else { return true }
    return lookUps.visible >= forgotten
      && lookUps.names.allSatisfy { name in
        latest[name.hashValue].map { $0 <= lookUps.visible } ?? true
      }
  }
}
