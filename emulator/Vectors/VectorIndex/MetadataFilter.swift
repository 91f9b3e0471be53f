/// A condition on metadata, in Pinecone's filter language.
package indirect enum MetadataFilter: Sendable, Hashable {
  case and([MetadataFilter])
  case or([MetadataFilter])
  case equal(String, MetadataValue)
  case notEqual(String, MetadataValue)
  case compare(String, Comparison, Double)
  case isIn(String, [MetadataValue])
  case isNotIn(String, [MetadataValue])
  case exists(String, Bool)

  /// The order comparisons, which hold for numbers only.
  package enum Comparison: Sendable, Hashable {
    case greater, greaterOrEqual, less, lessOrEqual

    /// Indicates whether the comparison holds for two numbers; never for NaN.
    func holds(_ number: Double, _ operand: Double) -> Bool {
      switch self {
      case .greater: number > operand
      case .greaterOrEqual: number >= operand
      case .less: number < operand
      case .lessOrEqual: number <= operand
      }
    }
  }

  /// Indicates whether a record with this metadata matches.
  ///
  /// A list matches a positive operator if one of its elements matches. It matches `$ne` and `$nin`
  /// if no element equals an operand. A missing key matches `$ne` and `$nin`.
  package func matches(_ metadata: [String: MetadataValue]) -> Bool {
    switch self {
    case .and(let filters): filters.allSatisfy { $0.matches(metadata) }
    case .or(let filters): filters.contains { $0.matches(metadata) }
    case .equal(let key, let value): Self.contains(metadata[key], value)
    case .notEqual(let key, let value): !Self.contains(metadata[key], value)
    case .isIn(let key, let values): values.contains { Self.contains(metadata[key], $0) }
    case .isNotIn(let key, let values): !values.contains { Self.contains(metadata[key], $0) }
    case .exists(let key, let expected): (metadata[key] != nil) == expected
    case .compare(let key, let comparison, let operand):
      if case .number(let number) = metadata[key] {
        comparison.holds(number, operand)
      } else {
        false
      }
    }
  }

  private static func contains(_ stored: MetadataValue?, _ value: MetadataValue) -> Bool {
    if case .strings(let elements) = stored, case .string(let text) = value {
      return elements.contains(text)
    }
    return stored == value
  }
}
