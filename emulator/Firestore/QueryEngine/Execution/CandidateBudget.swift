/// How much one part of a query may read before others get their turn.
package struct CandidateBudget: Sendable {
  /// Documents, index entries and collections that may still be looked at.
  private(set) var candidates: Int
  /// Stored bytes that may still be read.
  private(set) var bytes: Int
  /// Keys read since the last candidate that was counted for some.
  private var keys = 0

  /// A budget; a part looks at one candidate at least.
  package init(candidates: Int, bytes: Int) {
    self.candidates = candidates
    self.bytes = bytes
  }

  /// A budget that no query spends.
  package static let unlimited = CandidateBudget(candidates: .max, bytes: .max)

  /// Whether nothing more may be read.
  package var isSpent: Bool { candidates <= 0 || bytes <= 0 }

  /// Keys that cost as much as a candidate.
  static let keysPerCandidate = 16

  /// Counts a key that was read without its document.
  mutating func spendKey() { spendKeys(1) }

  /// Counts keys that were read without their documents.
  mutating func spendKeys(_ count: Int) {
    keys += count
    candidates -= keys / Self.keysPerCandidate
    keys %= Self.keysPerCandidate
  }

  /// Counts one candidate of so many bytes.
  mutating func spend(bytes: Int = 0) {
    candidates -= 1
    self.bytes -= bytes
  }
}
