import DocumentModel

/// A filter prepared for evaluation: the fifteen operators are reduced to four tests.
///
/// `==` becomes `oneOf` with one value; `IS_NOT_NULL` becomes `noneOf` without values. A test that
/// can never hold, such as `< null`, becomes `oneOf` without values.
indirect enum Condition: Sendable, Hashable {
  case and([Condition])
  case or([Condition])
  case field(FieldPath, Test)

  /// A test of one existing field.
  enum Test: Sendable, Hashable {
    case oneOf([FirestoreValue])
    /// The field is not null and equals none of the values.
    case noneOf([FirestoreValue])
    /// The field has the operand's type class and satisfies the inequality.
    case range(RangeOperator, FirestoreValue)
    /// The field is an array with an element that equals one of the values.
    case containsAny([FirestoreValue])
  }

  /// The four inequalities, which compare only within the operand's type.
  enum RangeOperator: Sendable, Hashable {
    case lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual
  }

  /// Creates the condition of a filter that has passed validation.
  init(_ filter: Query.Filter) {
    switch filter {
    case .and(let filters): self = .and(filters.map(Condition.init))
    case .or(let filters): self = .or(filters.map(Condition.init))
    case .unary(let path, let unary): self = .field(path, Self.test(unary))
    case .field(let path, let comparison, let operand):
      self = .field(path, Self.test(comparison, operand))
    }
  }

  /// Returns true if a document satisfies the condition.
  func holds(for document: FirestoreDocument) -> Bool {
    switch self {
    case .and(let conditions): conditions.allSatisfy { $0.holds(for: document) }
    case .or(let conditions): conditions.contains { $0.holds(for: document) }
    case .field(let path, let test):
      document.value(at: path).map(test.holds) ?? false
    }
  }

  private static func test(_ unary: Query.UnaryOperator) -> Test {
    switch unary {
    case .isNull: .oneOf([.null])
    case .isNaN: .oneOf([.double(.nan)])
    case .isNotNull: .noneOf([])
    case .isNotNaN: .noneOf([.double(.nan)])
    }
  }

  private static func test(_ comparison: Query.FieldOperator, _ operand: FirestoreValue) -> Test {
    switch comparison {
    // Null and NaN are matched only by their own operators. Every value differs from NaN, and no
    // value differs from null.
    case .equal: .oneOf([operand].filter { !$0.isNullOrNaN })
    case .notEqual: noneOf([operand])
    case .lessThan: range(.lessThan, operand)
    case .lessThanOrEqual: range(.lessThanOrEqual, operand)
    case .greaterThan: range(.greaterThan, operand)
    case .greaterThanOrEqual: range(.greaterThanOrEqual, operand)
    case .in: .oneOf(elements(operand).filter { !$0.isNullOrNaN })
    case .notIn: noneOf(elements(operand))
    case .arrayContains: .containsAny([operand].filter { !$0.isNullOrNaN })
    case .arrayContainsAny: .containsAny(elements(operand).filter { !$0.isNullOrNaN })
    }
  }

  /// Returns the test for excluded values.
  ///
  /// A null among them excludes everything, as in SQL; a NaN excludes nothing.
  private static func noneOf(_ values: [FirestoreValue]) -> Test {
    values.contains(.null) ? .oneOf([]) : .noneOf(values.filter { !$0.isNullOrNaN })
  }

  private static func range(_ comparison: RangeOperator, _ operand: FirestoreValue) -> Test {
    operand.isNullOrNaN ? .oneOf([]) : .range(comparison, operand)
  }

  private static func elements(_ value: FirestoreValue) -> [FirestoreValue] {
    if case .array(let elements) = value { elements } else { [] }
  }
}

extension Condition.Test {
  /// Returns true if an existing value passes.
  func holds(for value: FirestoreValue) -> Bool {
    switch self {
    case .oneOf(let values):
      values.contains { ValueOrder.areEqual($0, value) }
    case .noneOf(let values):
      value != .null && !values.contains { ValueOrder.areEqual($0, value) }
    case .range(let comparison, let operand):
      Self.holds(comparison, value, operand)
    case .containsAny(let values):
      if case .array(let elements) = value {
        elements.contains { element in values.contains { ValueOrder.areEqual($0, element) } }
      } else {
        false
      }
    }
  }

  private static func holds(
    _ comparison: Condition.RangeOperator,
    _ value: FirestoreValue,
    _ operand: FirestoreValue
  ) -> Bool {
    guard ValueOrder.typeClass(value) == ValueOrder.typeClass(operand), !value.isNullOrNaN else {
      return false
    }
    let order = ValueOrder.compare(value, operand)
    return switch comparison {
    case .lessThan: order == .less
    case .lessThanOrEqual: order != .greater
    case .greaterThan: order == .greater
    case .greaterThanOrEqual: order != .less
    }
  }
}

extension FirestoreValue {
  /// True for null and NaN, which comparison operators treat specially.
  var isNullOrNaN: Bool {
    switch self {
    case .null: true
    case .double(let number): number.isNaN
    default: false
    }
  }
}

extension FirestoreDocument {
  /// Returns the value that filters and orders use for a path; for `__name__`, the reference.
  func value(at path: FieldPath) -> FirestoreValue? {
    path.isDocumentID ? .reference(name) : fields[path]
  }
}
