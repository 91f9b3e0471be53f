/// The reading budget of one part of a query, which bounds how long other work waits.
package struct CandidateBudget: Sendable {
  /// The number of documents, index entries and collections that may still be examined.
  private(set) var candidates: Int
  /// The number of stored bytes that may still be read.
  private(set) var bytes: Int
  /// The number of keys read that have not been charged as candidates yet.
  private var keys = 0

  /// Creates a budget; each part examines at least one candidate.
  package init(candidates: Int, bytes: Int) {
    self.candidates = candidates
    self.bytes = bytes
  }

  /// A budget that no query exhausts.
  package static let unlimited = CandidateBudget(candidates: .max, bytes: .max)

  /// True if nothing more may be read.
  package var isSpent: Bool { candidates <= 0 || bytes <= 0 }

  /// The number of keys that cost as much as one candidate.
  static let keysPerCandidate = 16

  /// Charges a key that was read without its document.
  mutating func spendKey() { spendKeys(1) }

  /// Charges keys that were read without their documents.
  mutating func spendKeys(_ count: Int) {
    keys += count
    candidates -= keys / Self.keysPerCandidate
    keys %= Self.keysPerCandidate
  }

  /// Charges one candidate and its bytes.
  mutating func spend(bytes: Int = 0) {
    candidates -= 1
    self.bytes -= bytes
  }
}
