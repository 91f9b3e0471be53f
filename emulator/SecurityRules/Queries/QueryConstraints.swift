import DocumentModel

/// What one alternative of a query's filter says of every result.
package struct QueryConstraints: Sendable {
  /// One test that every result passes.
  package struct Predicate: Sendable {
    package enum Test: Sendable {
      case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, contains, notIn
    }

    /// The names of the field and of the maps around it.
    package var path: [String]
    package var test: Test
    /// A list for `notIn`.
    package var value: RuleValue

    /// A test of a field.
    package init(path: [String], test: Test, value: RuleValue) {
      self.path = path
      self.test = test
      self.value = value
    }
  }

  private let predicates: [Predicate]

  /// All of these hold for every result.
  package init(_ predicates: [Predicate]) { self.predicates = predicates }

  /// Whether every result has a field, because only then it passes some test.
  private func has(_ key: String, in part: QueriedPart) -> Bool {
    let path = Array(part.names.dropFirst()) + [key]
    return predicates.contains { Array($0.path.prefix(path.count)).areIdentical(to: path) }
  }

  /// Whether `hasAny` or `hasAll` of a list is true for every result; nil when the query does not say.
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

  /// The value that a field has in every result, if the query says so.
  func equalValue(of part: QueriedPart) -> RuleValue? {
    predicates(of: part).first { $0.test == .equal }?.value
  }

  /// Whether a comparison of a field, at its left, is true or false for every result.
  ///
  /// With `isIn` the field is the list, at the right. Nil when the query does not say.
  func proof(of operation: BinaryOperator, _ part: QueriedPart, _ constant: RuleValue) -> Bool? {
    // The document itself, with its fields, is always there.
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
  /// Whether no value that passes the test equals the constant.
  fileprivate func excludes(_ constant: RuleValue) -> Bool {
    guard value.isExactlyComparable(to: constant) else { return false }
    switch test {
    case .equal: return !value.equals(constant)
    // What has no value, or null, is not found by an inequality either.
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

  /// Whether the test of a range proves or refutes a comparison with the constant.
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
  /// Whether queries and rules compare the two alike.
  ///
  /// Queries compare numbers of both types exactly, rules as `float`s, which are whole only up to
  /// here: a query for what is not 2⁵³ + 1 finds 2⁵³, and the rules hold the two for equal.
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
