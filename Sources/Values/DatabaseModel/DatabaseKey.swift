/// The name of a child in the Realtime Database, with the order that children have.
///
/// Keys that are integers come first, by value; all others follow by their UTF-16 code units, as in
/// Firebase's clients.
package struct DatabaseKey: Sendable, Hashable {
  package let text: String
  /// The value of a key that is an integer of 32 bits; nil for any other.
  package let integer: Int32?

  package init(_ text: String) {
    self.text = text
    integer = Self.integer(text.utf8)
  }

  /// The maximum length of a key in UTF-8.
  package static let bytesMax = 768

  /// Returns true if clients may use `text` as a key.
  package static func isValid(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.count <= bytesMax && text.utf8.allSatisfy(isValidByte)
  }

  package static func == (left: DatabaseKey, right: DatabaseKey) -> Bool {
    left.text.isExactly(right.text)
  }

  package func hash(into hasher: inout Hasher) {
    text.hashExactly(into: &hasher)
  }

  private static func isValidByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0..<0x20, 0x7F: false
    case UInt8(ascii: "."), UInt8(ascii: "$"), UInt8(ascii: "#"), UInt8(ascii: "["),
      UInt8(ascii: "]"), UInt8(ascii: "/"):
      false
    default: true
    }
  }

  /// Parses `-?0*\d{1,10}` within the range of 32 bits.
  private static func integer(_ text: String.UTF8View) -> Int32? {
    var digits = text[...]
    let isNegative = digits.first == UInt8(ascii: "-")
    if isNegative { digits = digits.dropFirst() }
    // No key that clients may use is longer, however many zeros it begins with.
    guard !digits.isEmpty, digits.count <= bytesMax else { return nil }
    var value: Int64 = 0
    for byte in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), value < 10_000_000_000 else {
        return nil
      }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
    }
    return Int32(exactly: isNegative ? -value : value)
  }
}

extension DatabaseKey: Comparable {
  package static func < (left: DatabaseKey, right: DatabaseKey) -> Bool {
    switch (left.integer, right.integer) {
    case (let left?, let right?) where left != right: return left < right
    case (_?, _?):
      let (leftCount, rightCount) = (left.text.utf8.count, right.text.utf8.count)
      // `-0` and `00` are equal in value and in length.
      return leftCount != rightCount ? leftCount < rightCount : left.text.precedes(right.text)
    case (_?, nil): return true
    case (nil, _?): return false
    case (nil, nil): return left.text.precedes(right.text)
    }
  }
}

extension String {
  /// Returns true if the texts are the same; `==` is also true for other forms of a character.
  package func isExactly(_ other: String) -> Bool {
    utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
  }

  /// Hashes the text as `isExactly` compares it.
  package func hashExactly(into hasher: inout Hasher) {
    var text = self
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }

  /// Returns true if the text comes before another one in the order of UTF-16 code units.
  ///
  /// UTF-8 has the same order, but for characters beyond U+FFFF, whose surrogates come before
  /// U+E000.
  package func precedes(_ other: String) -> Bool {
    var others = other.utf8.makeIterator()
    for byte in utf8 {
      guard let otherByte = others.next() else { return false }
      if byte != otherByte { return Self.utf16Rank(byte) < Self.utf16Rank(otherByte) }
    }
    return others.next() != nil
  }

  /// Returns a byte of UTF-8 that keeps the order of UTF-16: U+E000 to U+FFFF come last.
  package static func utf16Rank(_ byte: UInt8) -> UInt8 {
    byte == 0xEE ? 0xF6 : byte == 0xEF ? 0xF7 : byte
  }
}
