/// The comparison of a field with a value.
public enum FilterOperator: Sendable, Hashable, CaseIterable {
  case equal, notEqual, lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual
  /// The field is an array that contains the value.
  case arrayContains
  /// The field is an array that contains at least one of the values.
  case arrayContainsAny
  /// The field is equal to one of the values.
  case `in`
  /// The field exists and is equal to none of the values.
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

/// A condition that documents must meet to be in the result of a query.
public struct QueryFilter: Sendable {
  let result: Result<Query.Filter, any Error>

  /// Returns the condition that a field satisfies a comparison with a value.
  ///
  /// The field `__name__` stands for the document itself. An invalid path or value throws when the
  /// query runs.
  public static func field(
    _ field: String,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> QueryFilter {
    compared(Result { try FieldPath.parse(field) }, relation, value)
  }

  /// Returns the condition that the field at a path satisfies a comparison with a value.
  ///
  /// `FieldPath.documentID` stands for the document itself. An invalid value throws when the query
  /// runs.
  public static func field(
    _ field: FieldPath,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> QueryFilter {
    compared(.success(field), relation, value)
  }

  private static func compared(
    _ field: Result<FieldPath, any Error>,
    _ relation: FilterOperator,
    _ value: some Encodable
  ) -> QueryFilter {
    QueryFilter(
      result: Result {
        let path = try field.get()
        let value = try ValueEncoder().encode(value)
        // The protocol has separate operators for equality with null and NaN.
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

  /// Returns a condition that requires all of the given conditions.
  public static func and(_ filters: QueryFilter...) -> QueryFilter {
    QueryFilter(result: Result { .and(try filters.map { try $0.result.get() }) })
  }

  /// Returns a condition that requires at least one of the given conditions.
  public static func or(_ filters: QueryFilter...) -> QueryFilter {
    QueryFilter(result: Result { .or(try filters.map { try $0.result.get() }) })
  }
}
