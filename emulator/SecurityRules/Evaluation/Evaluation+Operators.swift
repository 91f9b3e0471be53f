/// The operators, and the limits on the values that they create.
extension Evaluation {
  func binary(
    _ operation: BinaryOperator,
    _ left: Expression,
    _ right: Expression,
    _ frame: Frame,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue {
    let first = try value(left, frame)
    let second = try value(right, frame)
    switch (first, second) {
    case (.queried(let part), .queried): throw unproven(part, left)
    case (.queried(let part), .null) where part.names.count < 2 && operation.isEquality,
      (.null, .queried(let part)) where part.names.count < 2 && operation.isEquality:
      // Every result exists and has data.
      return .bool(operation == .notEqual)
    case (.queried(let part), let constant):
      // For a list of constants, only an equality filter shows if it contains the field.
      guard operation != .isIn, let proof = constraints?.proof(of: operation, part, constant) else {
        throw unproven(part, left)
      }
      return .bool(proof)
    case (let constant, .queried(let part)):
      guard let turned = operation.turned,
        let proof = constraints?.proof(of: turned, part, constant)
      else { throw unproven(part, right) }
      return .bool(proof)
    default: break
    }
    let result: RuleValue
    do {
      try spend(first.work(of: operation, second, atMost: ledger.work))
      result = try RuleOperators.value(operation, first, second)
    } catch {
      throw failure(error.message, expression)
    }
    return try bounded(result, expression)
  }

  /// Subtracts work from the request's budget.
  func spend(_ work: Int) throws(OperationError) {
    ledger.work -= work
    guard ledger.work >= 0 else { throw .tooMuchWork }
  }

  /// Returns a created value and counts its weight, which one evaluation limits.
  ///
  /// Without the limit, each expression could double the size of the previous result.
  func bounded(
    _ value: RuleValue,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue {
    madeWeight += value.weight(atMost: RulesLimits.madeWeightMax)
    guard madeWeight <= RulesLimits.madeWeightMax else {
      throw failure("The values of the rules have become too large.", expression)
    }
    return value
  }

  func negated(
    _ value: RuleValue,
    _ expression: Expression
  ) throws(RuleError) -> RuleValue {
    do { return try RuleOperators.negated(value) } catch {
      throw failure(error.message, expression)
    }
  }

  func path(_ parts: [Expression.Part], _ frame: Frame) throws(RuleError) -> RulePath {
    var whole = RulePath([])
    whole.segments.reserveCapacity(parts.count)
    for part in parts {
      switch part {
      case .text(let text): whole.segments.append(text)
      case .value(let expression):
        switch try known(expression, frame) {
        case .path(let path):
          whole.segments += path.segments
          whole.hasPlaceholders = whole.hasPlaceholders || path.hasPlaceholders
        case let other:
          guard let text = RuleConversions.text(other) else {
            throw failure(
              "Unsupported operation error. Received: string(\(other.typeName)).",
              expression
            )
          }
          whole.segments.append(text)
        }
      }
    }
    return whole
  }
}

extension BinaryOperator {
  fileprivate var isEquality: Bool { self == .equal || self == .notEqual }

  /// The operator with the same meaning when its operands are exchanged; nil if there is none.
  fileprivate var turned: BinaryOperator? {
    switch self {
    case .less: .greater
    case .lessOrEqual: .greaterOrEqual
    case .greater: .less
    case .greaterOrEqual: .lessOrEqual
    case .equal, .notEqual: self
    // `x in list of the document` is a condition on the list.
    case .isIn: .isIn
    default: nil
    }
  }
}
