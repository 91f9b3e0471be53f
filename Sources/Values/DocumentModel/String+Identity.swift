extension String {
  /// Whether both are the same UTF-8 bytes.
  ///
  /// Swift's own equality folds canonically equivalent scalars (`é` as one scalar or as two), which
  /// Firestore keeps apart. Strings that Swift finds different also differ in bytes.
  package func isIdentical(to other: String) -> Bool {
    self == other && utf8.elementsEqual(other.utf8)
  }
}

extension [String] {
  /// Whether both hold the same UTF-8 bytes, segment by segment.
  package func areIdentical(to other: [String]) -> Bool {
    count == other.count && zip(self, other).allSatisfy { $0.isIdentical(to: $1) }
  }
}
