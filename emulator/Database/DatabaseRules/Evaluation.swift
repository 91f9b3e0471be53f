import DatabaseModel
import JSONText
import LinearRegex

/// The reason why an expression has no value.
struct EvaluationError: Error {
  var message: String
  /// The place of the expression that failed, in the rule's text.
  var range: Range<Int>
}

/// The evaluation of rules for one request, with one limit on its work.
struct Evaluation {
  let request: DatabaseRulesRequest
  let query: DatabaseQuery?
  /// The path of the rule's level.
  var path = DatabasePath.root
  /// The keys of the level's variables.
  var captures: [String] = []
  var workLeft = DatabaseRulesLimits.workMax
  /// The results for coverage; nil if nothing counts them.
  var record: CoverageRecord?

  init(_ request: DatabaseRulesRequest, query: DatabaseQuery? = nil, record: CoverageRecord?) {
    self.request = request
    self.query = query
    self.record = record
  }

  /// Returns the value of a rule at a level.
  mutating func holds(_ rule: Rule, at level: RuleLevel) throws(EvaluationError) -> Bool {
    path = level.path
    captures = level.captures
    workLeft += rule.condition.weight + DatabaseRulesLimits.ruleWork
    return try boolean(rule.condition)
  }

  /// Subtracts work; throws if too much has been done.
  mutating func spend(_ work: Int, for expression: Expression) throws(EvaluationError) {
    workLeft -= work
    guard workLeft >= 0 else {
      throw EvaluationError(message: "The rules take too long.", range: expression.range)
    }
  }

  mutating func value(_ expression: Expression) throws(EvaluationError) -> RuleValue {
    try spend(1, for: expression)
    guard let record else { return try computed(expression) }
    do {
      let value = try computed(expression)
      record.add(expression, .success(value))
      return value
    } catch {
      record.add(expression, .failure(error))
      throw error
    }
  }

  private mutating func computed(_ expression: Expression) throws(EvaluationError) -> RuleValue {
    switch expression.kind {
    case .literal(let value): return value
    case .variable(let variable): return value(of: variable)
    case .capture(let index): return .string(captures[index])
    case .query(let member): return value(of: member)
    case .member(let object, let name):
      return member(name, of: try value(object))
    case .element(let object, let key):
      let object = try value(object)
      return member(try name(key), of: object)
    case .length(let object):
      let text = try text(object)
      try spend(text.utf8.count, for: expression)
      return .number(Double(text.utf16.count))
    case .snapshotCall(let method, let object, let arguments):
      return try call(method, object, arguments, in: expression)
    case .textCall(let method, let object, let arguments):
      return try call(method, object, arguments, in: expression)
    case .matches(let object, let pattern):
      let text = try text(object)
      do { return .boolean(try pattern.matchesWhole(text, work: &workLeft)) } catch {
        throw EvaluationError(message: "The rules take too long.", range: expression.range)
      }
    case .not(let operand): return .boolean(try !boolean(operand))
    case .negative(let operand): return .number(-(try number(operand, "-")))
    case .arithmetic(let operation, let left, let right):
      return try arithmetic(operation, left, right, in: expression)
    case .comparison(let comparison, let left, let right):
      return .boolean(try compare(comparison, left, right, in: expression))
    case .equality(let isEqual, let left, let right):
      let left = try value(left)
      let right = try value(right)
      if case .string(let text) = left { try spend(text.utf8.count / 16, for: expression) }
      return .boolean(left.equals(right) == isEqual)
    case .and(let operands):
      for operand in operands where try !boolean(operand) { return .boolean(false) }
      return .boolean(true)
    case .or(let operands):
      for operand in operands where try boolean(operand) { return .boolean(true) }
      return .boolean(false)
    case .choice(let condition, let first, let second):
      return try value(try boolean(condition) ? first : second)
    case .pattern, .list:
      throw EvaluationError(message: "This has no value.", range: expression.range)
    }
  }

  // MARK: - Operands

  mutating func boolean(_ expression: Expression) throws(EvaluationError) -> Bool {
    let value = try value(expression)
    guard case .boolean(let flag) = value else {
      throw mismatch("a boolean", value, expression)
    }
    return flag
  }

  mutating func text(_ expression: Expression) throws(EvaluationError) -> String {
    let value = try value(expression)
    guard case .string(let text) = value else { throw mismatch("a string", value, expression) }
    return text
  }

  mutating func number(
    _ expression: Expression,
    _ operation: String
  ) throws(EvaluationError) -> Double {
    let value = try value(expression)
    guard case .number(let number) = value else {
      throw mismatch("a number for \(operation)", value, expression)
    }
    return number
  }

  private func mismatch(
    _ expected: String,
    _ value: RuleValue,
    _ expression: Expression
  ) -> EvaluationError {
    EvaluationError(
      message: "Expected \(expected), found \(value.typeName).",
      range: expression.range
    )
  }

  private mutating func name(_ expression: Expression) throws(EvaluationError) -> String {
    let value = try value(expression)
    switch value {
    case .string(let text): return text
    case .number(let number): return RuleValue.text(of: number)
    default: throw mismatch("a string", value, expression)
    }
  }

  // MARK: - Variables

  private func value(of variable: Expression.Variable) -> RuleValue {
    switch variable {
    case .auth: RuleValue(request.auth)
    case .now: .number(Double(request.nowMilliseconds))
    case .root: .snapshot(RuleSnapshot(isNew: false, path: .root))
    case .data: .snapshot(RuleSnapshot(isNew: false, path: path))
    case .newData: .snapshot(RuleSnapshot(isNew: true, path: path))
    case .query: .null
    }
  }

  private func value(of member: Expression.QueryMember) -> RuleValue {
    switch member {
    case .orderByKey: .boolean(query == nil || query?.order == .key)
    case .orderByValue: .boolean(query?.order == .value)
    case .orderByPriority: .boolean(query?.order == .priority)
    case .orderByChild:
      if case .child(let path) = query?.order {
        .string(path.keys.joined(separator: "/"))
      } else {
        .null
      }
    case .startAt: value(of: query?.start)
    case .endAt: value(of: query?.end)
    case .equalTo: query?.isEquality == true ? value(of: query?.start) : .null
    case .limitToFirst: limit(isFromEnd: false)
    case .limitToLast: limit(isFromEnd: true)
    }
  }

  private func value(of bound: DatabaseQuery.Bound?) -> RuleValue {
    // With the order by key, the bound is the key.
    if query?.order == .key {
      if case .key(let key) = bound?.key { .string(key.text) } else { .null }
    } else {
      RuleValue(bound?.value)
    }
  }

  private func limit(isFromEnd: Bool) -> RuleValue {
    guard let limit = query?.limit, limit.isFromEnd == isFromEnd else { return .null }
    return .number(Double(limit.count))
  }

  /// Returns a member of `auth` or of a value in it; null if there is none.
  private func member(_ name: String, of value: RuleValue) -> RuleValue {
    switch value {
    case .json(.object(let members)):
      // The dictionary's own look-up would also find another form of a letter.
      return RuleValue(members.first { $0.key.isExactly(name) }?.value)
    case .json(.array(let elements)):
      if name == "length" { return .number(Double(elements.count)) }
      return RuleValue(Int(name).flatMap { elements.indices.contains($0) ? elements[$0] : nil })
    case .json(.numbers(let numbers)):
      if name == "length" { return .number(Double(numbers.count)) }
      guard let index = Int(name), numbers.indices.contains(index) else { return .null }
      return .number(numbers[index])
    case .string(let text) where name == "length": return .number(Double(text.utf16.count))
    default: return .null
    }
  }
}

extension DatabaseQuery {
  /// True if the bounds select exactly one value, as `equalTo` does.
  fileprivate var isEquality: Bool {
    guard let start, let end, start.isInclusive, end.isInclusive, start.value == end.value else {
      return false
    }
    let keys = (start.key ?? .min, end.key ?? .max)
    return keys.0 == keys.1 || keys == (.min, .max)
  }
}
