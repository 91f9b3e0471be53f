/// The remaining size of a list in a reply.
struct ListLimit: Sendable, Hashable {
  private var bytes: Int
  /// The size of an entry without its texts, in bytes.
  private static let overhead = 100

  init(bytes: Int) {
    self.bytes = bytes
  }

  /// Reserves space for an entry with texts of the given size, and returns true if it fits.
  ///
  /// After the first entry that does not fit, smaller ones are refused too, so that a list has no
  /// gaps.
  mutating func takes(_ textBytes: Int) -> Bool {
    let size = textBytes + Self.overhead
    guard size <= bytes else {
      bytes = 0
      return false
    }
    bytes -= size
    return true
  }
}
