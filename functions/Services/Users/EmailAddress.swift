import Foundation

/// A well-formed email address, in the form in which addresses are stored.
struct EmailAddress: Sendable, Hashable {
  /// The address in lower case, without surrounding white space.
  let text: String
  /// The address as typed, without surrounding white space.
  let typed: String

  /// Reads what a person typed; returns nil if it is not an email address.
  ///
  /// This finds mistakes in typing; only a delivered e-mail proves that an address exists.
  init?(_ typed: String) {
    let trimmed = typed.trimmingCharacters(in: .whitespacesAndNewlines)
    guard trimmed.utf8.count <= Self.bytesMax else { return nil }
    let parts = trimmed.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, Self.isLocalPart(parts[0]), Self.isDomain(parts[1]) else { return nil }
    self.typed = trimmed
    text = trimmed.lowercased()
  }

  private static func isLocalPart(_ part: Substring) -> Bool {
    part.utf8.count <= localBytesMax
      && isDotted(part) { scalar in
        scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
          || "!#$%&'*+-/=?^_`{|}~".unicodeScalars.contains(scalar)
      }
  }

  /// Returns true for at least two labels, as `localhost` is nobody's domain.
  private static func isDomain(_ domain: Substring) -> Bool {
    domain.contains(".")
      && domain.split(separator: ".").allSatisfy { label in
        label.utf8.count <= labelBytesMax && !label.hasPrefix("-") && !label.hasSuffix("-")
      }
      && isDotted(domain) { scalar in
        scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "-"
          || scalar.properties.generalCategory == .nonspacingMark
      }
  }

  private static func isDotted(
    _ text: Substring,
    _ isAllowed: (Unicode.Scalar) -> Bool
  ) -> Bool {
    text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { part in
      !part.isEmpty && part.unicodeScalars.allSatisfy(isAllowed)
    }
  }

  /// The longest address of RFC 5321.
  private static let bytesMax = 254
  private static let localBytesMax = 64
  private static let labelBytesMax = 63
}
