import RuntimeSupport
import VectorIndex

/// A metadata filter in JSON: `{"field": value}`, `{"field": {"$op": value}}`, `$and`, `$or`.
struct FilterObject: Decodable {
  var filter: MetadataFilter

  init(from decoder: any Decoder) throws {
    filter = try Self.filter(decoder, depth: 0)
  }

  /// Nesting beyond this is refused, so that a request cannot exhaust the stack.
  private static let depthMax = 32

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// A nested filter; `Decodable` so that arrays of filters decode.
  private struct Nested: Decodable {
    var filter: MetadataFilter
    init(from decoder: any Decoder) throws {
      filter = try FilterObject.filter(decoder, depth: decoder.codingPath.count / 2)
    }
  }

  private static func filter(_ decoder: any Decoder, depth: Int) throws -> MetadataFilter {
    guard depth <= depthMax else {
      throw StatusError.invalidArgument("The filter is nested deeper than \(depthMax) levels.")
    }
    let container = try decoder.container(keyedBy: Key.self)
    var parts: [MetadataFilter] = []
    for key in container.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
      switch key.stringValue {
      case "$and":
        parts.append(.and(try container.decode([Nested].self, forKey: key).map(\.filter)))
      case "$or": parts.append(.or(try container.decode([Nested].self, forKey: key).map(\.filter)))
      case let name where name.hasPrefix("$"):
        throw StatusError.invalidArgument(
          "\(name) is not allowed at the top level of a filter; only $and and $or are."
        )
      case let name: parts += try conditions(on: name, in: container, at: key)
      }
    }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private static func conditions(
    on name: String,
    in container: KeyedDecodingContainer<Key>,
    at key: Key
  ) throws -> [MetadataFilter] {
    guard let operators = try? container.nestedContainer(keyedBy: Key.self, forKey: key) else {
      return [.equal(name, try container.decode(MetadataValue.self, forKey: key))]
    }
    return try operators.allKeys.sorted { $0.stringValue < $1.stringValue }.map { op in
      func value() throws -> MetadataValue { try operators.decode(MetadataValue.self, forKey: op) }
      func values() throws -> [MetadataValue] {
        try operators.decode([MetadataValue].self, forKey: op)
      }
      func comparison(_ comparison: MetadataFilter.Comparison) throws -> MetadataFilter {
        guard case .number(let number) = try value() else {
          throw StatusError.invalidArgument(
            "the \(op.stringValue) operator must be followed by a number, got another type"
          )
        }
        return .compare(name, comparison, number)
      }
      switch op.stringValue {
      case "$eq": return .equal(name, try value())
      case "$ne": return .notEqual(name, try value())
      case "$gt": return try comparison(.greater)
      case "$gte": return try comparison(.greaterOrEqual)
      case "$lt": return try comparison(.less)
      case "$lte": return try comparison(.lessOrEqual)
      case "$in": return .isIn(name, try values())
      case "$nin": return .isNotIn(name, try values())
      case "$exists": return .exists(name, try operators.decode(Bool.self, forKey: op))
      default:
        throw StatusError.invalidArgument("\(op.stringValue) is not a valid operator")
      }
    }
  }
}
