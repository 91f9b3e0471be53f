/// The bytes that a list of a reply may still take.
struct ListRoom: Sendable, Hashable {
  private var bytes: Int
  /// The bytes of an entry besides its texts.
  private static let overhead = 100

  init(bytes: Int) {
    self.bytes = bytes
  }

  /// Whether there is room for an entry with texts of so many bytes; takes it if there is.
  ///
  /// After the first entry without room there is none for smaller ones: a list has no gaps.
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
