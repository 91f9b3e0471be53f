#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Decodable {
  /// Decodes a value from JSON.
  ///
  /// With `valuesMax`, the text is first checked strictly: throws `JSONSyntaxError` if it is not
  /// JSON or has more values. Give it where a body is large enough to be long work. Otherwise
  /// throws `DecodingError`.
  package init(decodingJSON text: some Sequence<UInt8>, valuesMax: Int = .max) throws {
    let data = Data(text)
    if valuesMax < .max { try checkJSON(data, valuesMax: valuesMax) }
    self = try JSONDecoder().decode(Self.self, from: data)
  }
}

extension Encodable {
  /// Returns the value as JSON with sorted keys and unescaped slashes.
  ///
  /// Equal values have equal bytes. Throws the errors of `encode(to:)`.
  package func jsonBytes(isPretty: Bool = false) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
    return Array(try encoder.encode(self))
  }
}
