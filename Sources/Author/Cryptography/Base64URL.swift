/// Base64 with the URL alphabet and without padding, as JWTs use it (RFC 4648, section 5).
package enum Base64URL {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
  )

  /// Encodes bytes as text without padding.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    var buffer = 0
    var bits = 0
    for byte in bytes {
      buffer = buffer << 8 | Int(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(digits[buffer >> bits & 63])
      }
      buffer &= (1 << bits) - 1
    }
    if bits > 0 { text.append(digits[buffer << (6 - bits) & 63]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes text; nil if it has a character outside the alphabet or an impossible length.
  ///
  /// Leftover bits at the end are ignored because some clients do not clear them.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    guard text.utf8.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count * 3 / 4)
    var buffer = 0
    var bits = 0
    for digit in text.utf8 {
      guard let value = value(of: digit) else { return nil }
      buffer = buffer << 6 | value
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(buffer >> bits & 255))
      }
      buffer &= (1 << bits) - 1
    }
    return bytes
  }

  /// Decodes text like `decode`, but only the form that `encode` returns.
  ///
  /// For bytes that identify something, so that there is one text for them.
  package static func decodeCanonical(_ text: some StringProtocol) -> [UInt8]? {
    guard let bytes = decode(text), encode(bytes) == text else { return nil }
    return bytes
  }

  /// Returns true if a byte belongs to the alphabet.
  package static func isDigit(_ byte: UInt8) -> Bool { value(of: byte) != nil }

  private static func value(of byte: UInt8) -> Int? {
    switch byte {
    case 65...90: Int(byte) - 65
    case 97...122: Int(byte) - 71
    case 48...57: Int(byte) + 4
    case 45: 62
    case 95: 63
    default: nil
    }
  }
}
