import DatabaseModel

extension Evaluation {
  mutating func arithmetic(
    _ operation: Expression.Arithmetic,
    _ left: Expression,
    _ right: Expression,
    in expression: Expression
  ) throws(EvaluationError) -> RuleValue {
    guard operation != .plus else { return try sum(left, right, in: expression) }
    let left = try number(left, operation.rawValue)
    let right = try number(right, operation.rawValue)
    let result =
      switch operation {
      case .plus: left + right
      case .minus: left - right
      case .times: left * right
      // Unlike in JavaScript, a division by zero is no infinity.
      case .divided: right == 0 ? .nan : left / right
      case .remainder: left.truncatingRemainder(dividingBy: right)
      }
    return .number(result)
  }

  private mutating func sum(
    _ left: Expression,
    _ right: Expression,
    in expression: Expression
  ) throws(EvaluationError) -> RuleValue {
    let values = (try value(left), try value(right))
    if case (.number(let left), .number(let right)) = values { return .number(left + right) }
    let text = try addend(values.0, left) + addend(values.1, right)
    try checkSize(of: text, in: expression)
    return .string(text)
  }

  private func addend(
    _ value: RuleValue,
    _ expression: Expression
  ) throws(EvaluationError) -> String {
    switch value {
    case .string(let text): return text
    case .number(let number): return RuleValue.text(of: number)
    default:
      throw EvaluationError(
        message: "Expected a number or string for +, found \(value.typeName).",
        range: expression.range
      )
    }
  }

  /// Counts the work of a new text; throws if it is too long.
  mutating func checkSize(of text: String, in expression: Expression) throws(EvaluationError) {
    try spend(text.utf8.count, for: expression)
    guard text.utf8.count <= DatabaseRulesLimits.textBytesMax else {
      throw EvaluationError(message: "The string has become too long.", range: expression.range)
    }
  }

  mutating func compare(
    _ comparison: Expression.Comparison,
    _ left: Expression,
    _ right: Expression,
    in expression: Expression
  ) throws(EvaluationError) -> Bool {
    switch (try value(left), try value(right)) {
    case (.number(let left), .number(let right)):
      return switch comparison {
      case .less: left < right
      case .lessOrEqual: left <= right
      case .greater: left > right
      case .greaterOrEqual: left >= right
      }
    case (.string(let left), .string(let right)):
      try spend(min(left.utf8.count, right.utf8.count), for: expression)
      return switch comparison {
      case .less: left.precedes(right)
      case .lessOrEqual: !right.precedes(left)
      case .greater: right.precedes(left)
      case .greaterOrEqual: !left.precedes(right)
      }
    case (let left, let right):
      throw EvaluationError(
        message: "Expected two numbers or two strings for \(comparison.rawValue), found "
          + "\(left.typeName) and \(right.typeName).",
        range: expression.range
      )
    }
  }
}
