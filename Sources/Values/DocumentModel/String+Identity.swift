extension String {
  /// Whether both are the same UTF-8 bytes.
  ///
  /// Swift's own equality folds canonically equivalent scalars (`é` as one scalar or as two), which
  /// Firestore keeps apart. Strings that Swift finds different also differ in bytes.
  package func isIdentical(to other: String) -> Bool {
    utf8.count == other.utf8.count && ValueOrder.compareText(self, other) == .equal
  }
}

extension [String] {
  /// Whether both hold the same UTF-8 bytes, segment by segment.
  package func areIdentical(to other: [String]) -> Bool {
    count == other.count && zip(self, other).allSatisfy { $0.isIdentical(to: $1) }
  }
}
