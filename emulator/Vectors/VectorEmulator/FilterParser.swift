import JSONText
import StatusCodes
import VectorIndex

/// A parser of metadata filters: `{"field": value}`, `{"field": {"$op": value}}`, `$and`, `$or`.
struct FilterParser {
  /// The name of the vector field, which a filter must not use.
  var vectorField: String?
  private var conditions = 0

  /// The maximum number of conditions in one filter, at all levels together.
  ///
  /// Each condition may be checked for many records.
  private static let conditionsMax = 1000
  private static let listMax = 10_000
  private static let depthMax = 32

  /// Creates a parser for one filter.
  init(vectorField: String? = nil) {
    self.vectorField = vectorField
  }

  /// Parses a filter from a JSON value; an empty object matches everything.
  mutating func parse(_ json: JSONValue) throws -> MetadataFilter {
    try filter(json, depth: 0)
  }

  private mutating func filter(_ json: JSONValue, depth: Int) throws -> MetadataFilter {
    guard case .object(let members) = json else {
      throw StatusError.invalidArgument("A filter must be an object, got \(json.kind).")
    }
    guard depth <= Self.depthMax else {
      throw StatusError.invalidArgument(
        "The filter is nested deeper than \(Self.depthMax) levels."
      )
    }
    var parts: [MetadataFilter] = []
    for (name, value) in members.sorted(by: { $0.key < $1.key }) {
      switch name {
      case "$and": parts.append(.and(try filters(name, value, depth: depth)))
      case "$or": parts.append(.or(try filters(name, value, depth: depth)))
      case _ where name.hasPrefix("$"):
        throw StatusError.invalidArgument(
          "\(name) is not allowed at the top level of a filter; only $and and $or are."
        )
      default: parts += try conditions(on: name, value)
      }
    }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private mutating func filters(
    _ name: String,
    _ json: JSONValue,
    depth: Int
  ) throws -> [MetadataFilter] {
    guard case .array(let elements) = json, !elements.isEmpty else {
      throw StatusError.invalidArgument(
        "the \(name) operator must be followed by a list of filters that is not empty, got "
          + json.kind
      )
    }
    return try elements.map { try filter($0, depth: depth + 1) }
  }

  private mutating func conditions(on field: String, _ json: JSONValue) throws -> [MetadataFilter] {
    if field == vectorField || field == "_id" {
      throw StatusError.invalidArgument("Field \(field) is not metadata; a filter cannot name it.")
    }
    guard case .object(let operators) = json else {
      try count()
      return [.equal(field, try scalar("$eq", json))]
    }
    guard !operators.isEmpty else {
      throw StatusError.invalidArgument("Illegal condition for field \(field), got {}")
    }
    return try operators.sorted { $0.key < $1.key }.map { name, operand in
      try count()
      return try condition(on: field, name, operand)
    }
  }

  private func condition(
    on field: String,
    _ name: String,
    _ operand: JSONValue
  ) throws -> MetadataFilter {
    switch name {
    case "$eq": return .equal(field, try scalar(name, operand))
    case "$ne": return .notEqual(field, try scalar(name, operand))
    case "$gt": return .compare(field, .greater, try number(name, operand))
    case "$gte": return .compare(field, .greaterOrEqual, try number(name, operand))
    case "$lt": return .compare(field, .less, try number(name, operand))
    case "$lte": return .compare(field, .lessOrEqual, try number(name, operand))
    case "$in": return .isIn(field, try list(name, operand))
    case "$nin": return .isNotIn(field, try list(name, operand))
    case "$exists":
      guard case .boolean(let expected) = operand else { throw wrong(name, "a boolean", operand) }
      return .exists(field, expected)
    case "$match_phrase", "$match_all", "$match_any":
      throw StatusError.notEmulated(
        "Full-text search (\(name)) is",
        "filter by metadata with $eq, $in and the comparisons."
      )
    case _ where name.hasPrefix("$"):
      throw StatusError.invalidArgument("\(name) is not a valid operator")
    default:
      throw StatusError.invalidArgument(
        "Illegal condition for field \(field): \(name) is not an operator, and metadata has no "
          + "objects."
      )
    }
  }

  private mutating func count() throws {
    conditions += 1
    guard conditions <= Self.conditionsMax else {
      throw StatusError.invalidArgument(
        "The filter has more than \(Self.conditionsMax) conditions."
      )
    }
  }

  private func scalar(_ name: String, _ json: JSONValue) throws -> MetadataValue {
    switch json {
    case .string(let text): return .string(text)
    case .number(let number): return .number(number)
    case .boolean(let flag): return .boolean(flag)
    default: throw wrong(name, "a string, number or boolean", json)
    }
  }

  private func number(_ name: String, _ json: JSONValue) throws -> Double {
    guard case .number(let number) = json else { throw wrong(name, "a number", json) }
    return number
  }

  private func list(_ name: String, _ json: JSONValue) throws -> [MetadataValue] {
    let values: [MetadataValue]
    switch json {
    case .numbers(let numbers): values = numbers.map { .number($0) }
    case .array(let elements):
      values = try elements.map { element in
        switch element {
        case .string(let text): return .string(text)
        case .number(let number): return .number(number)
        default: throw wrong(name, "a list of strings or numbers", element)
        }
      }
    default: throw wrong(name, "a list of strings or numbers", json)
    }
    guard values.count <= Self.listMax else {
      throw StatusError.invalidArgument(
        "the \(name) operator takes at most \(Self.listMax) values, got \(values.count)"
      )
    }
    return values
  }

  private func wrong(_ name: String, _ expected: String, _ json: JSONValue) -> StatusError {
    .invalidArgument(
      "the \(name) operator must be followed by \(expected), got \(json.kind) instead"
    )
  }
}
