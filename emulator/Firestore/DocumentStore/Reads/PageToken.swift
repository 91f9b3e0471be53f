import DocumentModel
import StatusCodes

/// The start of a list's next page, in a form that is opaque to clients.
///
/// A token is bound to its list; it is refused with other parameters.
struct PageToken: Sendable, Equatable {
  /// The cursor after the last element.
  var position: [FirestoreValue]

  private static let version: UInt8 = 1

  /// Decodes a token; nil stands for the first page.
  static func decode(_ text: String?, for list: String) throws(StatusError) -> PageToken? {
    guard let text, !text.isEmpty else { return nil }
    guard let bytes = bytes(hexadecimal: text) else { throw invalid }
    do {
      var decoder = BinaryDecoder(bytes)
      guard try decoder.byte() == version else { throw CorruptDataError("of another version") }
      let isOfList = try decoder.number() == fingerprint(list)
      var position: [FirestoreValue] = []
      for _ in 0..<(try decoder.count()) { position.append(try decoder.value()) }
      guard decoder.isAtEnd, !position.isEmpty else { throw CorruptDataError("trailing bytes") }
      guard isOfList else { throw StatusError.invalidArgument("Invalid page token.") }
      return PageToken(position: position)
    } catch let error as StatusError {
      throw error
    } catch {
      throw invalid
    }
  }

  /// Encodes the token as text.
  func encoded(for list: String) -> String {
    var encoder = BinaryEncoder()
    encoder.append(byte: Self.version)
    encoder.append(Self.fingerprint(list))
    encoder.append(UInt64(position.count))
    for value in position { encoder.append(value) }
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: encoder.bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
      as: UTF8.self
    )
  }

  private static let invalid = StatusError.invalidArgument("invalid page token")

  private static func bytes(hexadecimal text: String) -> [UInt8]? {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }

  /// Returns the FNV-1a hash of a list's parameters.
  ///
  /// Unlike `Hasher`, it is the same in every process. It guards against mistakes, not against
  /// malice.
  private static func fingerprint(_ list: String) -> UInt64 {
    list.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
  }
}
