/// The parts of a message that fit into a vector's metadata, of which an index takes 40 KB.
///
/// Sizes are those of JSON, because some characters are longer there. Together with ids of at most
/// 1.5 KB each, the parts stay below 40 KB whatever they hold.
enum MetadataLimits {
  /// The part of a text that is embedded and stored; models read no more either.
  private static let textBytesMax = 8192
  private static let nameBytesMax = 1000
  /// Some 800 members; those cut off find the chat's messages by its id.
  private static let membersBytesMax = 24_000

  /// The beginning of a text that is not blank, as it is embedded and stored.
  static func text(_ text: String) -> String {
    let beginning = beginning(of: text[...], bytesMax: textBytesMax)
    guard beginning.utf8.count < text.utf8.count else { return text }
    // A text that begins with very much white space still has words.
    return String(
      Self.beginning(of: text.drop(while: \.isWhitespace), bytesMax: textBytesMax)
    )
  }

  static func name(_ name: String) -> String {
    String(beginning(of: name[...], bytesMax: nameBytesMax))
  }

  static func members(_ members: [String]) -> [String] {
    var bytes = 0
    // Two quotation marks and a comma.
    return Array(
      members.prefix { member in
        bytes += member.unicodeScalars.reduce(3) { $0 + jsonBytes($1) }
        return bytes <= membersBytesMax
      }
    )
  }

  /// Cuts between scalars, not characters: one character may be longer than any limit.
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
