import DocumentModel

/// A filter made ready for evaluation: the fifteen operators become four tests.
///
/// `==` becomes `oneOf` with one value, `IS_NOT_NULL` becomes `noneOf` with no value. A test that
/// can never hold, such as `< null`, becomes `oneOf` with no value.
indirect enum Condition: Sendable, Hashable {
  case and([Condition])
  case or([Condition])
  case field(FieldPath, Test)

  /// What is asked of one field that exists.
  enum Test: Sendable, Hashable {
    case oneOf([FirestoreValue])
    /// The field is not null and equals none of the values.
    case noneOf([FirestoreValue])
    /// The field has the operand's type class and satisfies the inequality.
    case range(RangeOperator, FirestoreValue)
    /// The field is an array with an element that equals one of the values.
    case containsAny([FirestoreValue])
  }

  /// The four inequalities that stay inside the operand's type.
  enum RangeOperator: Sendable, Hashable {
    case lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual
  }

  /// The condition for a filter that validation has accepted.
  init(_ filter: Query.Filter) {
    switch filter {
    case .and(let filters): self = .and(filters.map(Condition.init))
    case .or(let filters): self = .or(filters.map(Condition.init))
    case .unary(let path, let unary): self = .field(path, Self.test(unary))
    case .field(let path, let comparison, let operand):
      self = .field(path, Self.test(comparison, operand))
    }
  }

  /// Whether a document fulfils the condition.
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
    // Nothing equals null or NaN but by the operators of their own; everything differs from NaN,
    // and nothing is known to differ from null.
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

  /// A null among the excluded values excludes everything, as in SQL; a NaN excludes nothing.
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
  /// Whether an existing value passes.
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
  /// Whether the value is null or NaN, which order below all others of use in a comparison.
  var isNullOrNaN: Bool {
    switch self {
    case .null: true
    case .double(let number): number.isNaN
    default: false
    }
  }
}

extension FirestoreDocument {
  /// The value that a filter or an order sees at a path; `__name__` is the document's reference.
  func value(at path: FieldPath) -> FirestoreValue? {
    path.isDocumentID ? .reference(name) : fields[path]
  }
}
