import Foundation

/// A name with a visible character, without surrounding white space.
///
/// The access rules accept the same names.
public struct DisplayName: Sendable, Hashable {
  /// The name.
  public let text: String

  /// Returns nil for a name that is blank, or longer than 100 characters.
  public init?(_ typed: String) {
    let trimmed = typed.trimmingCharacters(in: .whitespacesAndNewlines)
    guard trimmed.utf16.count <= Self.lengthMax, Self.isVisible(trimmed) else { return nil }
    text = trimmed
  }

  /// Returns the beginning of a stored name, or the first of the alternatives that is a name.
  public init?(stored name: String, or alternatives: String...) {
    for candidate in [name] + alternatives {
      if let name = DisplayName(candidate) {
        self = name
        return
      }
      let beginning = candidate.trimmingCharacters(in: .whitespacesAndNewlines)
        .prefix(utf16Max: Self.lengthMax)
      if let name = DisplayName(beginning) {
        self = name
        return
      }
    }
    return nil
  }

  /// Returns true if the text has a visible character.
  ///
  /// White space of any script, control and format characters, marks without a letter and blank
  /// letters are not visible.
  public static func isVisible(_ text: String) -> Bool {
    text.unicodeScalars.contains { scalar in
      switch scalar.properties.generalCategory {
      case .spaceSeparator, .lineSeparator, .paragraphSeparator, .control, .format, .surrogate,
        .privateUse, .unassigned, .nonspacingMark, .spacingMark, .enclosingMark:
        false
      default: !shapeless.contains(scalar)
      }
    }
  }

  /// The fillers of Hangul and the empty braille pattern.
  private static let shapeless: Set<Unicode.Scalar> = [
    "\u{115F}", "\u{1160}", "\u{2800}", "\u{3164}", "\u{FFA0}",
  ]

  /// The maximum number of UTF-16 code units.
  public static let lengthMax = 100
}

extension String {
  /// Returns the longest prefix of whole characters with at most this many UTF-16 code units.
  fileprivate func prefix(utf16Max: Int) -> String {
    guard utf16.count > utf16Max else { return self }
    var length = 0
    return String(
      prefix { character in
        length += character.utf16.count
        return length <= utf16Max
      }
    )
  }
}
