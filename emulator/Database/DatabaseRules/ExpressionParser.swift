/// The parser of an expression, which also checks its types.
struct ExpressionParser {
  private let text: [Unicode.Scalar]
  private let variables: [String]
  private let hasNewData: Bool
  private(set) var nextNumber: Int
  private var lexer: ExpressionLexer
  private var token = ExpressionToken.end
  private var tokenStart = 0
  /// The end of the token before the current one.
  private var lastEnd = 0
  private var nesting = 0

  init(
    _ text: [Unicode.Scalar],
    variables: [String],
    hasNewData: Bool,
    firstNumber: Int
  ) {
    self.text = text
    self.variables = variables
    self.hasNewData = hasNewData
    nextNumber = firstNumber
    lexer = ExpressionLexer(text)
  }

  /// Parses the whole text as an expression of a rule, which must be boolean.
  mutating func parse() throws(ExpressionError) -> Expression {
    try advance()
    let result = try expression()
    guard token == .end else { throw unexpected() }
    guard result.type == .boolean else {
      throw error(at: result, "Rule expression must be boolean.")
    }
    return result
  }

  // MARK: - Tokens

  private mutating func advance() throws(ExpressionError) {
    lastEnd = lexer.offset
    token = try lexer.next(start: &tokenStart)
  }

  private mutating func take(_ symbol: String) throws(ExpressionError) -> Bool {
    guard token == .symbol(symbol) else { return false }
    try advance()
    return true
  }

  private mutating func expect(_ symbol: String) throws(ExpressionError) {
    guard try take(symbol) else {
      throw ExpressionError(offset: tokenStart, message: "Expected '\(symbol)'.")
    }
  }

  private func unexpected() -> ExpressionError {
    let message =
      switch token {
      case .end: "Unexpected end of expression."
      case .symbol(let symbol): "Syntax error: an unexpected '\(symbol)'."
      case .name(let name): "Syntax error: an unexpected '\(name)'."
      case .string, .number: "Syntax error: an unexpected literal."
      }
    return ExpressionError(offset: tokenStart, message: message)
  }

  private func error(at expression: Expression, _ message: String) -> ExpressionError {
    ExpressionError(offset: expression.range.lowerBound, message: message)
  }

  private mutating func make(
    _ kind: Expression.Kind,
    _ type: StaticType,
    from start: Int
  ) throws(ExpressionError) -> Expression {
    let expression = Expression(kind, type: type, range: start..<lastEnd, number: nextNumber)
    guard expression.depth <= DatabaseRulesLimits.nestingMax else {
      throw error(at: expression, "Expressions are nested too deeply.")
    }
    nextNumber += 1
    return expression
  }

  // MARK: - Operators

  private mutating func expression() throws(ExpressionError) -> Expression {
    nesting += 1
    defer { nesting -= 1 }
    guard nesting <= DatabaseRulesLimits.nestingMax else {
      throw ExpressionError(offset: tokenStart, message: "Expressions are nested too deeply.")
    }
    let start = tokenStart
    let condition = try binary(1)
    guard try take("?") else { return condition }
    guard condition.type == .boolean else {
      throw error(at: condition, "Condition of ? must be boolean.")
    }
    let first = try expression()
    try expect(":")
    let second = try expression()
    let type: StaticType =
      first.type == second.type
      ? first.type : first.type.isPrimitive && second.type.isPrimitive ? .primitive : .any
    return try make(.choice(condition, first, second), type, from: start)
  }

  /// The operators with two operands; those with a higher number bind stronger.
  private static let strengths = [
    "||": 1, "&&": 2, "==": 3, "===": 3, "!=": 3, "!==": 3, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
  ]

  private mutating func binary(_ strengthMin: Int) throws(ExpressionError) -> Expression {
    let start = tokenStart
    var left = try unary()
    while case .symbol(let name) = token, let strength = Self.strengths[name],
      strength >= strengthMin
    {
      try advance()
      if name == "&&" || name == "||" {
        left = try logical(left, name, strength, from: start)
      } else {
        left = try operation(left, name, try binary(strength + 1), from: start)
      }
    }
    return left
  }

  /// Parses all operands of `&&` or `||` at once, so that a long chain is not deep.
  private mutating func logical(
    _ left: Expression,
    _ name: String,
    _ strength: Int,
    from start: Int
  ) throws(ExpressionError) -> Expression {
    var operands = [left]
    repeat { operands.append(try binary(strength + 1)) } while try take(name)
    for (index, operand) in operands.enumerated() where operand.type != .boolean {
      throw error(
        at: operand,
        "\(index == 0 ? "Left" : "Right") operand of \(name) must be boolean."
      )
    }
    return try make(name == "&&" ? .and(operands) : .or(operands), .boolean, from: start)
  }

  private mutating func operation(
    _ left: Expression,
    _ name: String,
    _ right: Expression,
    from start: Int
  ) throws(ExpressionError) -> Expression {
    func check(_ types: StaticType..., words: String) throws(ExpressionError) {
      for (side, operand) in [("left", left), ("right", right)]
      where !operand.type.isOpen && !types.contains(operand.type) {
        throw error(at: operand, "Invalid \(name) expression: \(side) operand is not \(words).")
      }
    }
    if let comparison = Expression.Comparison(rawValue: name) {
      try check(.string, .number, .null, words: "a number or string")
      guard left.type.isOpen || right.type.isOpen || left.type == right.type else {
        throw error(at: left, "Invalid \(name) expression: left and right operands differ in type.")
      }
      return try make(.comparison(comparison, left, right), .boolean, from: start)
    }
    if name == "+" {
      try check(.string, .number, words: "a number or string")
      let isString = left.type == .string || right.type == .string
      let isNumber = left.type == .number && right.type == .number
      let type: StaticType = isString ? .string : isNumber ? .number : .primitive
      return try make(.arithmetic(.plus, left, right), type, from: start)
    }
    if let arithmetic = Expression.Arithmetic(rawValue: name) {
      try check(.number, words: "a number")
      return try make(.arithmetic(arithmetic, left, right), .number, from: start)
    }
    try check(
      .string,
      .number,
      .boolean,
      .null,
      words: "a number, boolean, string or null"
    )
    return try make(
      .equality(isEqual: name.first == "=", left, right),
      .boolean,
      from: start
    )
  }

  private mutating func unary() throws(ExpressionError) -> Expression {
    let start = tokenStart
    guard token == .symbol("!") || token == .symbol("-") else { return try postfix() }
    nesting += 1
    defer { nesting -= 1 }
    guard nesting <= DatabaseRulesLimits.nestingMax else {
      throw ExpressionError(offset: start, message: "Expressions are nested too deeply.")
    }
    if try take("!") {
      let operand = try unary()
      guard operand.type == .boolean else {
        throw error(at: operand, "Operand of ! must be boolean.")
      }
      return try make(.not(operand), .boolean, from: start)
    }
    try advance()
    let operand = try unary()
    guard operand.type.isOne(of: .number) else {
      throw error(at: operand, "Operand of - must be a number.")
    }
    return try make(.negative(operand), .number, from: start)
  }

  // MARK: - Members and calls

  private mutating func postfix() throws(ExpressionError) -> Expression {
    let start = tokenStart
    var object = try primary()
    while true {
      let place = tokenStart
      if try take(".") {
        let place = tokenStart
        guard case .name(let name) = token, name.first != "$" else {
          throw ExpressionError(offset: tokenStart, message: "Expected a name.")
        }
        try advance()
        object = try member(object, name, at: place, from: start)
      } else if try take("[") {
        let key = try expression()
        try expect("]")
        if case .literal(.string(let name)) = key.kind {
          object = try member(object, name, at: place, from: start)
        } else {
          guard object.type == .any, token != .symbol("("), key.type.isOne(of: .string, .number)
          else { throw ExpressionError(offset: place, message: "Invalid property access.") }
          object = try make(.element(object, key), .any, from: start)
        }
      } else if token == .symbol("(") {
        throw ExpressionError(
          offset: place,
          message: "Type error: Function call on target that is not a function."
        )
      } else {
        return object
      }
    }
  }

  private mutating func member(
    _ object: Expression,
    _ name: String,
    at place: Int,
    from start: Int
  ) throws(ExpressionError) -> Expression {
    let isCall = token == .symbol("(")
    let unknown = ExpressionError(offset: place, message: "No such method/property '\(name)'.")
    let noFunction = ExpressionError(
      offset: place,
      message: "Type error: Function call on target that is not a function."
    )
    let uncalled = ExpressionError(
      offset: place,
      message: "Type error: '\(name)' is a method, which needs ()."
    )
    switch object.type {
    case .snapshot:
      guard let method = Expression.SnapshotMethod(rawValue: name) else { throw unknown }
      guard isCall else { throw uncalled }
      return try call(method, object, from: start)
    case .query:
      guard let member = Expression.QueryMember(rawValue: name) else { throw unknown }
      guard !isCall else { throw noFunction }
      return try make(.query(member), member.type, from: start)
    case .any where !isCall:
      return try make(.member(object, name), .any, from: start)
    case .any, .string, .primitive:
      if name == "length" {
        guard !isCall else { throw noFunction }
        return try make(.length(object), .number, from: start)
      }
      guard let method = Expression.TextMethod(rawValue: name) else { throw unknown }
      guard isCall else { throw uncalled }
      return try call(method, object, from: start)
    default: throw unknown
    }
  }

  private mutating func call(
    _ method: Expression.SnapshotMethod,
    _ object: Expression,
    from start: Int
  ) throws(ExpressionError) -> Expression {
    let place = tokenStart
    var arguments = try arguments()
    if method == .hasChildren {
      guard arguments.count <= 1 else {
        throw ExpressionError(offset: place, message: "Too many arguments to hasChildren.")
      }
      if let list = arguments.first {
        guard case .list(let names) = list.kind else {
          throw error(at: list, "hasChildren takes 1 argument: an array of strings.")
        }
        guard !names.isEmpty else {
          throw error(at: list, "hasChildren got an empty array, expected some strings in there.")
        }
        for name in names where !name.type.isOne(of: .string) {
          throw error(at: name, "hasChildren got an array with a non-string value.")
        }
        arguments = names
      }
    } else {
      try check(arguments, count: method.parameterCount, at: place)
    }
    return try make(.snapshotCall(method, object, arguments), method.type, from: start)
  }

  private mutating func call(
    _ method: Expression.TextMethod,
    _ object: Expression,
    from start: Int
  ) throws(ExpressionError) -> Expression {
    let place = tokenStart
    let arguments = try arguments()
    if method == .matches, arguments.count == 1 {
      guard case .pattern(let pattern) = arguments[0].kind else {
        throw error(at: arguments[0], "method expects argument 1 to be a regular expression.")
      }
      return try make(.matches(object, pattern), .boolean, from: start)
    }
    try check(arguments, count: method.parameterCount, at: place)
    return try make(.textCall(method, object, arguments), method.type, from: start)
  }

  private func check(
    _ arguments: [Expression],
    count: Int,
    at place: Int
  ) throws(ExpressionError) {
    guard arguments.count == count else {
      throw ExpressionError(
        offset: place,
        message: "method expects \(count) arguments, but got \(arguments.count) instead."
      )
    }
    for (index, argument) in arguments.enumerated() where !argument.type.isOne(of: .string) {
      throw error(
        at: argument,
        "method expects argument \(index + 1) to be a string, but got \(argument.type.rawValue)."
      )
    }
  }

  private mutating func arguments() throws(ExpressionError) -> [Expression] {
    try expect("(")
    return try elements(until: ")")
  }

  private mutating func elements(until end: String) throws(ExpressionError) -> [Expression] {
    var elements: [Expression] = []
    if try take(end) { return [] }
    repeat { elements.append(try expression()) } while try take(",")
    try expect(end)
    return elements
  }

  // MARK: - Primary expressions

  private mutating func primary() throws(ExpressionError) -> Expression {
    let start = tokenStart
    switch token {
    case .number(let number):
      try advance()
      return try make(.literal(.number(number)), .number, from: start)
    case .string(let text):
      try advance()
      return try make(.literal(.string(text)), .string, from: start)
    case .name(let name):
      try advance()
      return try variable(name, from: start)
    case .symbol("("):
      try advance()
      let inner = try expression()
      try expect(")")
      return inner
    case .symbol("["):
      try advance()
      return try make(.list(try elements(until: "]")), .list, from: start)
    case .symbol("/"):
      let literal = try lexer.pattern(from: start)
      let pattern = try RegexLiteral.compile(text, literal.body, flags: literal.flags)
      try advance()
      return try make(.pattern(pattern), .pattern, from: start)
    default: throw unexpected()
    }
  }

  private mutating func variable(
    _ name: String,
    from start: Int
  ) throws(ExpressionError) -> Expression {
    switch name {
    case "true", "false":
      return try make(.literal(.boolean(name == "true")), .boolean, from: start)
    case "null": return try make(.literal(.null), .null, from: start)
    default: break
    }
    if let index = variables.firstIndex(of: name) {
      return try make(.capture(index), .string, from: start)
    }
    guard let variable = Expression.Variable(rawValue: name), variable != .newData || hasNewData
    else { throw ExpressionError(offset: start, message: "Unknown variable '\(name)'.") }
    let type: StaticType =
      switch variable {
      case .auth: .any
      case .now: .number
      case .query: .query
      case .root, .data, .newData: .snapshot
      }
    return try make(.variable(variable), type, from: start)
  }
}
