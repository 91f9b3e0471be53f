/// The limits of a message's metadata, of which the index accepts 40 KB per vector.
///
/// Sizes are measured as JSON, in which some characters are longer. Together with ids of at most
/// 1.5 KB each, the metadata always stays below 40 KB.
enum MetadataLimits {
  /// The most bytes of a text that are embedded and stored.
  ///
  /// Models do not read more either.
  private static let textBytesMax = 8192
  private static let nameBytesMax = 1000
  /// The most bytes of the list of members, enough for about 800.
  ///
  /// Members beyond the limit find the chat's messages by the chat's id.
  private static let membersBytesMax = 24_000

  /// Returns the beginning of a text that is embedded and stored; it is not blank.
  static func text(_ text: String) -> String {
    let beginning = beginning(of: text[...], bytesMax: textBytesMax)
    guard beginning.utf8.count < text.utf8.count else { return text }
    // A text that begins with very long white space still has words.
    return String(
      Self.beginning(of: text.drop(while: \.isWhitespace), bytesMax: textBytesMax)
    )
  }

  static func name(_ name: String) -> String {
    String(beginning(of: name[...], bytesMax: nameBytesMax))
  }

  static func members(_ members: [String]) -> [String] {
    var bytes = 0
    // The initial 3 is for two quotation marks and a comma.
    return Array(
      members.prefix { member in
        bytes += member.unicodeScalars.reduce(3) { $0 + jsonBytes($1) }
        return bytes <= membersBytesMax
      }
    )
  }

  /// Returns the prefix of a text that fits into a number of bytes.
  ///
  /// The cut is between scalars, not characters, because one character may be longer than the
  /// limit.
  private static func beginning(of text: Substring, bytesMax: Int) -> Substring {
    var bytes = 0
    let scalars = text.unicodeScalars.prefix { scalar in
      bytes += jsonBytes(scalar)
      return bytes <= bytesMax
    }
    return Substring(scalars)
  }

  private static func jsonBytes(_ scalar: Unicode.Scalar) -> Int {
    switch scalar {
    case "\"", "\\", "/": 2
    case "\0"..<" ": 6
    default: UTF8.width(scalar)
    }
  }
}
