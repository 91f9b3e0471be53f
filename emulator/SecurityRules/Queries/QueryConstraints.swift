import DocumentModel

/// The conditions that one alternative of a query's filter guarantees for every result.
package struct QueryConstraints: Sendable {
  /// One test that every result passes.
  package struct Predicate: Sendable {
    package enum Test: Sendable {
      case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, contains, notIn
    }

    /// The names of the enclosing maps and of the field.
    package var path: [String]
    package var test: Test
    /// The constant to compare with; a list for `notIn`.
    package var value: RuleValue

    /// Creates a test of a field.
    package init(path: [String], test: Test, value: RuleValue) {
      self.path = path
      self.test = test
      self.value = value
    }
  }

  private let predicates: [Predicate]

  /// Creates constraints from predicates that all hold for every result.
  package init(_ predicates: [Predicate]) { self.predicates = predicates }

  /// Indicates whether every result has a field, because a test requires it.
  private func has(_ key: String, in part: QueriedPart) -> Bool {
    let path = Array(part.names.dropFirst()) + [key]
    return predicates.contains { Array($0.path.prefix(path.count)).areIdentical(to: path) }
  }

  /// Returns true if `hasAny` or `hasAll` of a list holds for every result.
  ///
  /// Returns nil if the query does not prove it.
  func proof(ofMethod name: String, _ part: QueriedPart, _ arguments: [RuleValue]) -> Bool? {
    guard case .list(let wanted) = arguments.first, arguments.count == 1 else { return nil }
    let contained = predicates(of: part).filter { $0.test == .contains }.map(\.value)
    guard !contained.isEmpty else { return nil }
    func isContained(_ element: RuleValue) -> Bool { contained.contains { $0.isSame(as: element) } }
    switch name {
    case "hasAny": return wanted.contains(where: isContained) ? true : nil
    case "hasAll": return wanted.allSatisfy(isContained) ? true : nil
    default: return nil
    }
  }

  private func predicates(of part: QueriedPart) -> [Predicate] {
    predicates.filter { $0.path.areIdentical(to: Array(part.names.dropFirst())) }
  }

  /// Returns the value that a field has in every result; nil if the query does not determine it.
  func equalValue(of part: QueriedPart) -> RuleValue? {
    predicates(of: part).first { $0.test == .equal }?.value
  }

  /// Returns the result of a comparison with a field that holds for every query result.
  ///
  /// The field is the left operand. For `isIn` the field is the list, at the right. Returns nil if
  /// the query proves neither true nor false.
  func proof(of operation: BinaryOperator, _ part: QueriedPart, _ constant: RuleValue) -> Bool? {
    // The document itself and its fields always exist.
    if part.names.count < 2, constant.isNull {
      switch operation {
      case .equal: return false
      case .notEqual: return true
      default: return nil
      }
    }
    let known = predicates(of: part)
    switch operation {
    case .equal: return known.contains { $0.excludes(constant) } ? false : nil
    case .notEqual: return known.contains { $0.excludes(constant) } ? true : nil
    case .isIn:
      if part.names.first == "data", case .string(let key) = constant, has(key, in: part) {
        return true
      }
      return known.contains { $0.test == .contains && $0.value.isSame(as: constant) } ? true : nil
    case .greater, .greaterOrEqual, .less, .lessOrEqual:
      for predicate in known {
        if let proof = predicate.proof(of: operation, constant) { return proof }
      }
      return nil
    default: return nil
    }
  }
}

extension QueryConstraints.Predicate {
  /// Indicates whether no value that passes the test equals the constant.
  fileprivate func excludes(_ constant: RuleValue) -> Bool {
    guard value.isExactlyComparable(to: constant) else { return false }
    switch test {
    case .equal: return !value.equals(constant)
    // An inequality does not match a missing or null value either.
    case .notEqual: return value.equals(constant) || constant.isNull
    case .notIn:
      guard case .list(let values) = value else { return false }
      return constant.isNull
        || values.contains { $0.isExactlyComparable(to: constant) && $0.equals(constant) }
    case .contains:
      return constant.isNull
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      if constant.isNull { return true }
      return proof(of: .equal, constant) == false
    }
  }

  /// Returns the result of a comparison with the constant that a range test proves; nil if none.
  fileprivate func proof(of operation: BinaryOperator, _ constant: RuleValue) -> Bool? {
    guard value.isExactlyComparable(to: constant), let order = RuleOperators.order(value, constant)
    else { return nil }
    let isAtLeast = order != .less
    let isAtMost = order != .greater
    switch test {
    case .greater:
      switch operation {
      case .greater, .greaterOrEqual: return isAtLeast ? true : nil
      case .less, .lessOrEqual, .equal: return isAtLeast ? false : nil
      default: return nil
      }
    case .greaterOrEqual:
      switch operation {
      case .greaterOrEqual: return isAtLeast ? true : nil
      case .greater: return order == .greater ? true : nil
      case .less: return isAtLeast ? false : nil
      case .lessOrEqual, .equal: return order == .greater ? false : nil
      default: return nil
      }
    case .less:
      switch operation {
      case .less, .lessOrEqual: return isAtMost ? true : nil
      case .greater, .greaterOrEqual, .equal: return isAtMost ? false : nil
      default: return nil
      }
    case .lessOrEqual:
      switch operation {
      case .lessOrEqual: return isAtMost ? true : nil
      case .less: return order == .less ? true : nil
      case .greater: return isAtMost ? false : nil
      case .greaterOrEqual, .equal: return order == .less ? false : nil
      default: return nil
      }
    default: return nil
    }
  }
}

extension RuleValue {
  /// Indicates whether queries and rules compare the two values alike.
  ///
  /// Queries compare integers and doubles exactly. Rules compare them as `float`s, which represent
  /// all integers exactly only up to 2⁵³. A query for values other than 2⁵³ + 1 finds 2⁵³, but
  /// rules consider the two equal.
  fileprivate func isExactlyComparable(to other: RuleValue) -> Bool {
    [self, other].allSatisfy { value in
      switch value {
      case .int(let number): number.magnitude < 1 << 53
      case .float(let number): !(number.magnitude >= 0x1p53)
      default: true
      }
    }
  }
}
