/// Reads a rules file into its syntax; the first mistake is thrown.
struct Parser {
  private var lexer: Lexer
  private var token: Token = .end
  /// Where the present token begins, and where the one before it ended.
  private var start = 0
  private var lastEnd = 0

  /// Expressions within expressions; deeper ones would exhaust the stack.
  private static let depthMax = 99
  /// How deeply the parser is in expressions and matches now.
  private var depth = 0

  static func parse(_ source: SourceText) throws(RulesIssue) -> FileSyntax {
    var parser = Parser(source)
    try parser.advance()
    return try parser.file()
  }

  private init(_ source: SourceText) { lexer = Lexer(source) }

  // MARK: Tokens

  private mutating func advance() throws(RulesIssue) {
    lastEnd = lexer.offset
    (token, start) = try lexer.next()
  }

  private func isAt(_ sign: String) -> Bool { token == .sign(sign) }

  private func isAt(word: String) -> Bool { token == .identifier(word) }

  /// Passes over a sign if it stands here.
  private mutating func skip(_ sign: String) throws(RulesIssue) -> Bool {
    guard isAt(sign) else { return false }
    try advance()
    return true
  }

  private mutating func expect(_ sign: String) throws(RulesIssue) {
    guard isAt(sign) else { throw unexpected("'\(sign)'") }
    try advance()
  }

  private mutating func expect(word: String) throws(RulesIssue) {
    guard isAt(word: word) else { throw unexpected("'\(word)'") }
    try advance()
  }

  private mutating func identifier(_ what: String) throws(RulesIssue) -> String {
    guard case .identifier(let name) = token, !Self.reserved.contains(name) else {
      throw unexpected(what)
    }
    try advance()
    return name
  }

  /// Words that cannot be names.
  private static let reserved: Set<String> = [
    "true", "false", "null", "in", "is", "if", "let", "return", "function", "match", "allow",
    "service",
  ]

  private func unexpected(_ expected: String) -> RulesIssue {
    issue("Unexpected '\(token.quoted)'. Expected \(expected).", from: start)
  }

  private func issue(_ description: String, from start: Int) -> RulesIssue {
    lexer.issue(description, from: start)
  }

  private func range(from start: Int) -> SourceRange { lexer.source.range(start, lastEnd) }

  /// Runs `body` one level deeper, where that is still allowed.
  private mutating func nested<Result>(
    _ body: (inout Parser) throws(RulesIssue) -> Result
  ) throws(RulesIssue) -> Result {
    depth += 1
    guard depth <= Self.depthMax else {
      throw issue("Expression is too complex to evaluate safely.", from: start)
    }
    let result = try body(&self)
    depth -= 1
    return result
  }

  // MARK: Blocks

  private mutating func file() throws(RulesIssue) -> FileSyntax {
    var file = FileSyntax()
    if isAt(word: "rules_version") {
      try advance()
      try expect("=")
      guard case .string(let version) = token, let number = ["1": 1, "2": 2][version] else {
        throw issue("Unsupported rules version \(token.quoted).", from: start)
      }
      file.version = number
      try advance()
      _ = try skip(";")
    }
    while token != .end {
      if isAt(word: "function") {
        file.functions.append(try function())
      } else if isAt(word: "service") {
        file.services.append(try service())
      } else {
        throw unexpected("'service'")
      }
    }
    return file
  }

  private mutating func service() throws(RulesIssue) -> ServiceSyntax {
    let start = start
    try advance()
    var name = try identifier("the name of a service")
    while try skip(".") { name += "." + (try identifier("the name of a service")) }
    var service = ServiceSyntax(name: name, range: range(from: start))
    try expect("{")
    guard !isAt("}") else {
      throw issue("The 'service' body must contain at least one declaration.", from: self.start)
    }
    while try !skip("}") {
      if isAt(word: "function") {
        service.functions.append(try function())
      } else if isAt(word: "match") {
        service.matches.append(try nested { parser throws(RulesIssue) in try parser.match() })
      } else if isAt("/") {
        throw issue("Missing 'match' keyword before path.", from: self.start)
      } else {
        throw unexpected("'match' or 'function'")
      }
    }
    return service
  }

  private mutating func match() throws(RulesIssue) -> MatchSyntax {
    let start = start
    try advance()
    guard isAt("/") else { throw unexpected("a path") }
    var match = MatchSyntax(path: try pattern(), range: range(from: start))
    try expect("{")
    guard !isAt("}") else {
      throw issue("The 'match' body must contain at least one declaration.", from: self.start)
    }
    while try !skip("}") {
      if isAt(word: "function") {
        match.functions.append(try function())
      } else if isAt(word: "match") {
        match.matches.append(try nested { parser throws(RulesIssue) in try parser.match() })
      } else if isAt(word: "allow") {
        match.allows.append(try allow())
      } else if isAt("/") {
        throw issue("Missing 'match' keyword before path.", from: self.start)
      } else {
        throw unexpected("'allow', 'match' or 'function'")
      }
    }
    return match
  }

  private mutating func pattern() throws(RulesIssue) -> [PatternPart] {
    var parts: [PatternPart] = []
    lexer.offset = start
    while lexer.peek() == "/" {
      lexer.offset += 1
      let start = lexer.offset
      guard lexer.peek() == "{" else {
        let text = pathText()
        guard !text.isEmpty else {
          throw issue("Forward slash '/' found where identifier or binding expected.", from: start)
        }
        parts.append(.text(text))
        continue
      }
      lexer.offset += 1
      try advance()
      let name = try identifier("the name of a wildcard")
      let place = lexer.source.range(start + 1, start + 1 + name.unicodeScalars.count)
      if try skip("=") {
        try expect("*")
        let isGlob = try skip("*")
        parts.append(isGlob ? .glob(name, place) : .capture(name, place))
      } else {
        parts.append(.capture(name, place))
      }
      guard isAt("}") else { throw unexpected("'}'") }
      // The brace is the last thing that was read.
      lastEnd = lexer.offset
    }
    try advance()
    return parts
  }

  private mutating func allow() throws(RulesIssue) -> AllowSyntax {
    let start = start
    try advance()
    var methods: Set<AccessMethod> = []
    var unknownMethods: [String] = []
    repeat {
      guard case .identifier(let word) = token else {
        throw unexpected("'read', 'write', 'get', 'list', 'create', 'update' or 'delete'")
      }
      if let named = AccessMethod.named(word) {
        methods.formUnion(named)
      } else {
        unknownMethods.append(word)
      }
      try advance()
    } while try skip(",")
    var condition: Syntax?
    if try skip(":") {
      try expect(word: "if")
      guard !isAt(";"), !isAt("}"), token != .end else {
        throw issue("Missing conditional expression after 'if'.", from: self.start)
      }
      condition = try expression()
    }
    let place = range(from: start)
    let isEnded = try skip(";") || isAt("}") || isAt(word: "allow") || isAt(word: "match")
    guard isEnded || isAt(word: "function") else { throw unexpected("';'") }
    return AllowSyntax(
      methods: methods,
      unknownMethods: unknownMethods,
      condition: condition,
      range: place
    )
  }

  private mutating func function() throws(RulesIssue) -> FunctionSyntax {
    let start = start
    try advance()
    let name = try identifier("the name of a function")
    var parameters: [(name: String, range: SourceRange)] = []
    try expect("(")
    while !isAt(")") {
      let place = self.start
      let parameter = try identifier("the name of a parameter")
      parameters.append((parameter, range(from: place)))
      guard try skip(",") else { break }
      if isAt(")") { throw unexpected("the name of a parameter") }
    }
    try expect(")")
    let place = range(from: start)
    try expect("{")
    var lets: [(name: String, value: Syntax, range: SourceRange)] = []
    while isAt(word: "let") {
      try advance()
      let place = self.start
      let name = try identifier("the name of a variable")
      let range = range(from: place)
      try expect("=")
      lets.append((name, try expression(), range))
      try expect(";")
    }
    try expect(word: "return")
    let result = try expression()
    _ = try skip(";")
    try expect("}")
    return FunctionSyntax(
      name: name,
      parameters: parameters,
      lets: lets,
      result: result,
      range: place
    )
  }

  // MARK: Expressions

  private mutating func expression() throws(RulesIssue) -> Syntax {
    try nested { parser throws(RulesIssue) in try parser.choice() }
  }

  private mutating func choice() throws(RulesIssue) -> Syntax {
    let start = start
    let condition = try operands("||", from: start) { parser throws(RulesIssue) in
      try parser.operands("&&", from: parser.start) { parser throws(RulesIssue) in
        try parser.binary(0)
      }
    }
    guard try skip("?") else { return condition }
    let first = try expression()
    try expect(":")
    let second = try expression()
    return try made(.choice(condition, first, second), from: start)
  }

  private mutating func operands(
    _ sign: String,
    from start: Int,
    _ operand: (inout Parser) throws(RulesIssue) -> Syntax
  ) throws(RulesIssue) -> Syntax {
    let first = try operand(&self)
    guard isAt(sign) else { return first }
    var operands = [first]
    while try skip(sign) { operands.append(try operand(&self)) }
    return try made(sign == "&&" ? .and(operands) : .or(operands), from: start)
  }

  /// The operators with two operands, loosest first; those of one row are read from the left.
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
      // Production reads a slash before a letter as the beginning of a path.
      if name == "/", let next = lexer.peek(),
        Lexer.isLetter(next) || Lexer.isDigit(next) || next == "("
      {
        throw issue("Unexpected '/\(next)'. Put a space behind the division.", from: self.start)
      }
      try advance()
      if name == "-" || name == "+", isAt(name), self.start == lastEnd { throw increment }
      if name == "is" {
        guard case .identifier(let type) = token else { throw unexpected("the name of a type") }
        try advance()
        left = try made(.typeTest(left, type), from: start)
      } else {
        guard let operation = BinaryOperator(rawValue: name) else {
          throw unexpected("an operator")
        }
        // Before `made`, which would else see where its operator ended.
        let right = try binary(row + 1)
        left = try made(.binary(operation, left, right), from: start)
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
        guard case .identifier(let name) = token, name != "service", name != "rules_version" else {
          throw unexpected("the name of a member")
        }
        try advance()
        if isAt("(") {
          let arguments = try arguments()
          value = try made(.call(receiver: value, name: name, arguments: arguments), from: start)
        } else {
          value = try made(.member(value, name), from: start)
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
      try advance()
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

  private mutating func path() throws(RulesIssue) -> Syntax {
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
      // What follows the bracket is read as a part of the path.
      lexer.offset = self.start + 1
    }
    guard !parts.isEmpty else { throw issue("A path's segment is missing.", from: start) }
    try advance()
    return try made(.path(parts), from: start)
  }

  /// The text of a path's segment from here on.
  private mutating func pathText() -> String {
    var view = String.UnicodeScalarView()
    var brackets = 0
    while let scalar = lexer.peek() {
      switch scalar {
      case "(" where view.isEmpty || brackets > 0: brackets += 1
      case ")" where brackets > 0: brackets -= 1
      case _ where Lexer.isLetter(scalar) || Lexer.isDigit(scalar): break
      case "-", "~", "%", ".", "@", "+", "*": break
      case ":" where lexer.peek(1).map { Lexer.isLetter($0) || Lexer.isDigit($0) } == true: break
      default: return String(view)
      }
      view.append(scalar)
      lexer.offset += 1
    }
    return String(view)
  }

  private func made(_ kind: Syntax.Kind, from start: Int) throws(RulesIssue) -> Syntax {
    let syntax = Syntax(kind, range(from: start))
    guard syntax.depth <= Self.depthMax else {
      throw issue("Expression is too complex to evaluate safely.", from: start)
    }
    return syntax
  }
}
