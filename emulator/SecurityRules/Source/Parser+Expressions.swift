extension Parser {
  mutating func expression() throws(RulesIssue) -> Syntax {
    try nested { parser throws(RulesIssue) in try parser.choice() }
  }

  private mutating func choice() throws(RulesIssue) -> Syntax {
    let start = start
    let condition = try operands("||", from: start) { parser throws(RulesIssue) in
      try parser.operands("&&", from: parser.start) { parser throws(RulesIssue) in
        try parser.binary(0)
      }
    }
    let place = self.start
    guard try skip("?") else { return condition }
    let first = try expression()
    try expect(":")
    let second = try expression()
    return try made(.choice(condition, first, second), from: start, at: place)
  }

  private mutating func operands(
    _ sign: String,
    from start: Int,
    _ operand: (inout Parser) throws(RulesIssue) -> Syntax
  ) throws(RulesIssue) -> Syntax {
    let first = try operand(&self)
    guard isAt(sign) else { return first }
    var operands = [first]
    var place = start
    while isAt(sign) {
      place = self.start
      try advance()
      operands.append(try operand(&self))
    }
    return try made(sign == "&&" ? .and(operands) : .or(operands), from: start, at: place)
  }

  /// The binary operators by increasing precedence; operators in one row are left-associative.
  private static let rows: [Set<String>] = [
    ["in"], ["==", "!=", "is"], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "%"],
  ]

  private mutating func binary(_ row: Int) throws(RulesIssue) -> Syntax {
    guard row < Self.rows.count else { return try unary() }
    let start = start
    var left = try binary(row + 1)
    while true {
      let name: String
      switch token {
      case .sign(let sign): name = sign
      case .identifier(let word): name = word
      default: return left
      }
      guard Self.rows[row].contains(name) else { return left }
      // Production reads a slash before a letter as the start of a path.
      if name == "/", let next = lexer.peek(),
        Lexer.isLetter(next) || Lexer.isDigit(next) || next == "("
      {
        throw issue("Unexpected '/\(next)'. Put a space behind the division.", from: self.start)
      }
      let place = self.start
      try advance()
      if name == "-" || name == "+", isAt(name), self.start == lastEnd { throw increment }
      if name == "is" {
        guard case .identifier(let type) = token else { throw unexpected("the name of a type") }
        try advance()
        left = try made(.typeTest(left, type), from: start, at: place)
      } else {
        guard let operation = BinaryOperator(rawValue: name) else {
          throw unexpected("an operator")
        }
        // The operand is parsed before `made`, so that the range includes it.
        let right = try binary(row + 1)
        left = try made(.binary(operation, left, right), from: start, at: place)
      }
    }
  }

  private mutating func unary() throws(RulesIssue) -> Syntax {
    let start = start
    if isAt("!") || isAt("-") {
      let isNot = isAt("!")
      try advance()
      if !isNot, isAt("-") { throw increment }
      if !isNot, isAt("!") { throw unexpected("an expression") }
      if !isNot, case .int(let magnitude) = token {
        try advance()
        let value = Int64(truncatingIfNeeded: 0 &- magnitude)
        return try postfix(of: try made(.literal(.int(value)), from: start), from: start)
      }
      let operand = try nested { parser throws(RulesIssue) in try parser.unary() }
      return try made(isNot ? .not(operand) : .negative(operand), from: start)
    }
    return try postfix()
  }

  private var increment: RulesIssue {
    issue("Increment (++) and decrement (--) operators are not supported.", from: start)
  }

  private mutating func postfix() throws(RulesIssue) -> Syntax {
    let start = start
    return try postfix(of: try primary(), from: start)
  }

  private mutating func postfix(of first: Syntax, from start: Int) throws(RulesIssue) -> Syntax {
    var value = first
    while true {
      if try skip(".") {
        let place = self.start
        guard case .identifier(let name) = token, name != "service", name != "rules_version" else {
          throw unexpected("the name of a member")
        }
        try advance()
        if isAt("(") {
          let arguments = try arguments()
          let call = Syntax.Kind.call(receiver: value, name: name, arguments: arguments)
          value = try made(call, from: start, at: place)
        } else {
          value = try made(.member(value, name), from: start, at: place)
        }
      } else if try skip("[") {
        let index = isAt(":") ? nil : try expression()
        if try skip(":") {
          let end = isAt("]") ? nil : try expression()
          try expect("]")
          value = try made(.slice(value, from: index, to: end), from: start)
        } else {
          guard let index else { throw unexpected("an index") }
          try expect("]")
          value = try made(.index(value, index), from: start)
        }
      } else {
        return value
      }
    }
  }

  private mutating func arguments() throws(RulesIssue) -> [Syntax] {
    try expect("(")
    var arguments: [Syntax] = []
    while !isAt(")") {
      arguments.append(try expression())
      guard try skip(",") else { break }
    }
    try expect(")")
    return arguments
  }

  private mutating func primary() throws(RulesIssue) -> Syntax {
    let start = start
    switch token {
    case .int(let magnitude):
      guard let value = Int64(exactly: magnitude) else {
        throw issue("Invalid number literal \(magnitude).", from: start)
      }
      return try literal(.int(value))
    case .float(let value): return try literal(.float(value))
    case .string(let value): return try literal(.string(value))
    case .bytes(let value): return try literal(.bytes(value))
    case .identifier("true"): return try literal(.bool(true))
    case .identifier("false"): return try literal(.bool(false))
    case .identifier("null"): return try literal(.null)
    case .identifier:
      let name = try identifier("an expression")
      guard isAt("(") else { return try made(.name(name), from: start) }
      let arguments = try arguments()
      return try made(.call(receiver: nil, name: name, arguments: arguments), from: start)
    case .sign("("):
      try advance()
      let value = try expression()
      try expect(")")
      return value
    case .sign("["):
      try advance()
      var elements: [Syntax] = []
      while !isAt("]") {
        elements.append(try expression())
        guard try skip(",") else { break }
      }
      try expect("]")
      return try made(.list(elements), from: start)
    case .sign("{"):
      try expect("{")
      var entries: [(key: Syntax, value: Syntax)] = []
      while !isAt("}") {
        let key = try expression()
        try expect(":")
        entries.append((key, try expression()))
        guard try skip(",") else { break }
      }
      try expect("}")
      return try made(.map(entries), from: start)
    case .sign("/"): return try path()
    default: throw unexpected("an expression")
    }
  }

  private mutating func literal(_ value: RuleValue) throws(RulesIssue) -> Syntax {
    let start = start
    try advance()
    return try made(.literal(value), from: start)
  }

  mutating func path() throws(RulesIssue) -> Syntax {
    let start = start
    var parts: [PathPart] = []
    lexer.offset = start
    while lexer.peek() == "/" {
      lexer.offset += 1
      guard lexer.peek() == "$", lexer.peek(1) == "(" else {
        let text = pathText()
        if text.isEmpty {
          throw issue("Forward slash '/' found where identifier or binding expected.", from: start)
        }
        parts.append(.text(text))
        continue
      }
      lexer.offset += 2
      try advance()
      parts.append(.value(try expression()))
      guard isAt(")") else { throw unexpected("')'") }
      // The text after the bracket belongs to the path.
      lexer.offset = self.start + 1
    }
    guard !parts.isEmpty else { throw issue("A path's segment is missing.", from: start) }
    try advance()
    return try made(.path(parts), from: start)
  }

  /// Creates an expression that begins at `start`; issues about its value are reported at `place`.
  private func made(
    _ kind: Syntax.Kind,
    from start: Int,
    at place: Int? = nil
  ) throws(RulesIssue) -> Syntax {
    let range = range(from: start)
    let syntax = Syntax(kind, range, at: place.map { lexer.source.range($0, $0 + 1) } ?? range)
    guard syntax.depth <= RulesLimits.nestingMax else {
      throw issue("Expression is too complex to evaluate safely.", from: start)
    }
    return syntax
  }
}
