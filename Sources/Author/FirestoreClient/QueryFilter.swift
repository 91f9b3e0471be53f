/// How a field relates to a value.
public enum FilterOperator: Sendable, Hashable, CaseIterable {
  case equal, notEqual, lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual
  /// The field is an array with this element.
  case arrayContains
  /// The field is an array with one of these elements.
  case arrayContainsAny
  /// The field equals one of these values.
  case `in`
  /// The field exists and equals none of these values.
  case notIn

  var wire: Query.FieldOperator {
    switch self {
    case .equal: .equal
    case .notEqual: .notEqual
    case .lessThan: .lessThan
    case .lessThanOrEqual: .lessThanOrEqual
    case .greaterThan: .greaterThan
    case .greaterThanOrEqual: .greaterThanOrEqual
    case .arrayContains: .arrayContains
    case .arrayContainsAny: .arrayContainsAny
    case .in: .in
    case .notIn: .notIn
    }
  }
}

/// A condition on documents.
public struct QueryFilter: Sendable {
  let result: Result<Query.Filter, any Error>

  /// A field that relates to a value as the operator says; `__name__` is the document itself.
  ///
  /// A path or value that cannot be used throws when the query runs.
  public static func field(
    _ field: String,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> QueryFilter {
    QueryFilter(
      result: Result {
        let path = try FieldPath.parse(field)
        let value = try ValueEncoder().encode(value)
        // On the wire, equality with null and NaN has its own operators.
        return switch (relation, value) {
        case (.equal, .null): .unary(path, .isNull)
        case (.notEqual, .null): .unary(path, .isNotNull)
        case (.equal, .double(let number)) where number.isNaN: .unary(path, .isNaN)
        case (.notEqual, .double(let number)) where number.isNaN: .unary(path, .isNotNaN)
        default: .field(path, relation.wire, value)
        }
      }
    )
  }

  /// All of the conditions.
  public static func and(_ filters: QueryFilter...) -> QueryFilter {
    QueryFilter(result: Result { .and(try filters.map { try $0.result.get() }) })
  }

  /// At least one of the conditions.
  public static func or(_ filters: QueryFilter...) -> QueryFilter {
    QueryFilter(result: Result { .or(try filters.map { try $0.result.get() }) })
  }
}
