extension String {
  /// Returns true if both strings have the same UTF-8 bytes.
  ///
  /// Swift's own equality ignores the difference between canonically equivalent scalars (`é` as one
  /// scalar or as two), which Firestore keeps apart. Strings that Swift considers unequal always
  /// differ in bytes.
  package func isIdentical(to other: String) -> Bool {
    utf8.count == other.utf8.count && ValueOrder.compareText(self, other) == .equal
  }

  /// Hashes the UTF-8 bytes, so that strings that are not identical hash differently.
  ///
  /// Swift's own hash is that of the canonical form.
  package func hashBytes(into hasher: inout Hasher) {
    var text = self
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    // This byte never occurs in UTF-8, so adjacent strings cannot hash like one combined string.
    hasher.combine(0xFF as UInt8)
  }
}

extension [String] {
  /// Returns true if both arrays hold the same UTF-8 bytes, element by element.
  package func areIdentical(to other: [String]) -> Bool {
    count == other.count && zip(self, other).allSatisfy { $0.isIdentical(to: $1) }
  }

  /// Hashes the UTF-8 bytes of each segment.
  package func hashBytes(into hasher: inout Hasher) {
    hasher.combine(count)
    for segment in self { segment.hashBytes(into: &hasher) }
  }
}
