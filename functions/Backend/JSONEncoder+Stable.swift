#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension JSONEncoder {
  /// Creates an encoder whose output is equal for equal values: sorted keys, unescaped slashes.
  ///
  /// Equal requests then have equal bytes, so that a model's server recognizes the prefix of a
  /// prompt.
  static func stable() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}
