/// A parser that turns a rules file into its syntax and collects all syntax errors.
///
/// After an error the parser continues behind it: at the next `;`, at the end of the block, or at
/// the next declaration.
struct Parser {
  /// All syntax errors of a file, in file order.
  struct ParseError: Error {
    var issues: [RulesIssue]
  }

  private var lexer: Lexer
  private var token: Token = .end
  /// The start of the current token, and the end of the previous one.
  private var start = 0
  private var lastEnd = 0

  /// The maximum depth of nested expressions; deeper nesting would exhaust the stack.
  private static let depthMax = 99
  /// The current depth of nested expressions and matches.
  private var depth = 0

  /// The maximum number of reported errors; a file with more is not a rules file.
  private static let issuesMax = 100
  private var issues: [RulesIssue] = []
  /// The number of open braces of blocks and maps, without the braces of wildcards.
  private var braces = 0
  /// True if a part of the file forms no token, such as a string without a closing quote.
  private var hasUnreadable = false
  /// The offset at which the parser last continued after an error.
  private var resumed = -1

  static func parse(_ source: SourceText) throws(ParseError) -> FileSyntax {
    var parser = Parser(source)
    let file = parser.file()
    guard parser.issues.isEmpty else { throw ParseError(issues: parser.issues) }
    return file
  }

  private init(_ source: SourceText) { lexer = Lexer(source) }

  // MARK: Tokens

  private mutating func advance() throws(RulesIssue) {
    lastEnd = lexer.offset
    // After a lexical error, the previous token must not remain.
    (token, start) = (.unreadable, lexer.offset)
    do throws(RulesIssue) { (token, start) = try lexer.next() } catch {
      hasUnreadable = true
      throw error
    }
  }

  private func isAt(_ sign: String) -> Bool { token == .sign(sign) }

  private func isAt(word: String) -> Bool { token == .identifier(word) }

  /// Skips a sign if it is the current token.
  private mutating func skip(_ sign: String) throws(RulesIssue) -> Bool {
    guard isAt(sign) else { return false }
    count(sign)
    try advance()
    return true
  }

  private mutating func count(_ sign: String) {
    if sign == "{" { braces += 1 }
    if sign == "}" { braces -= 1 }
  }

  private mutating func expect(_ sign: String) throws(RulesIssue) {
    guard isAt(sign) else { throw unexpected("'\(sign)'") }
    count(sign)
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

  /// The words that cannot be names.
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

  /// Runs `body` one level deeper; throws if the maximum depth is exceeded.
  private mutating func nested<Result>(
    _ body: (inout Parser) throws(RulesIssue) -> Result
  ) throws(RulesIssue) -> Result {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.depthMax else {
      throw issue("Expression is too complex to evaluate safely.", from: start)
    }
    return try body(&self)
  }

  // MARK: Errors

  /// Records an error; a second error at the same offset follows from the first and is dropped.
  private mutating func record(_ issue: RulesIssue) {
    guard issues.count < Self.issuesMax, issues.last?.range.offset != issue.range.offset else {
      return
    }
    issues.append(issue)
    if issues.count == Self.issuesMax { stop() }
  }

  /// Skips the rest of the file.
  private mutating func stop() {
    lexer.offset = lexer.source.scalars.count
    (token, start) = (.end, lexer.offset)
  }

  /// The words that begin a declaration and occur nowhere else.
  private static let declarations: Set<String> = ["allow", "match", "function", "service"]

  private var isAtDeclaration: Bool {
    if case .identifier(let word) = token { Self.declarations.contains(word) } else { false }
  }

  /// Skips one token, even if it is unreadable.
  private mutating func pass() {
    if case .sign(let sign) = token { count(sign) }
    let before = lexer.offset
    do { try advance() } catch {
      // Only the first error of a statement is reported; further errors are in skipped text.
      if lexer.offset == before { lexer.offset += 1 }
    }
  }

  /// Records an error in a statement and continues behind it.
  ///
  /// `block` is the number of open braces in the enclosing block.
  private mutating func resume(after issue: RulesIssue, braces block: Int) {
    record(issue)
    // A token that stopped the parser at the same offset before is skipped.
    if resumed == start, token != .end { pass() }
    while token != .end, !isAtDeclaration {
      if isAt("}"), braces <= block { break }
      let isEnd = isAt(";") && braces <= block
      pass()
      if isEnd { break }
    }
    braces = block
    resumed = start
  }

  /// Records an error in the head of a block and enters the block if there is one.
  private mutating func enterBlock(after issue: RulesIssue, _ words: Set<String>) -> Bool {
    record(issue)
    let block = braces
    while token != .end, !isAtDeclaration, !isAt(";") {
      let isBrace = isAt("{")
      pass()
      guard isBrace, case .identifier(let word) = token, words.contains(word) else { continue }
      braces = block + 1
      return true
    }
    braces = block
    return false
  }

  /// Skips a statement at a position that allows none.
  private mutating func passJunk() {
    while token != .end {
      let isEnd = isAt(";") || isAt("}")
      pass()
      if isEnd || isAtDeclaration || isAt("}") { return }
    }
  }

  /// Records a misspelled word and replaces it with the most similar candidate.
  ///
  /// Returns false if no candidate is similar enough.
  private mutating func correct(_ candidates: [String]) -> Bool {
    guard case .identifier(let word) = token, let meant = Spelling.nearest(to: word, in: candidates)
    else { return false }
    record(
      issue(
        "Unexpected '\(word)'. Did you mean '\(meant)'?",
        from: start
      )
    )
    token = .identifier(meant)
    return true
  }

  // MARK: Blocks

  private mutating func file() -> FileSyntax {
    var file = FileSyntax()
    do throws(RulesIssue) {
      try advance()
      if !isAtDeclaration, !isAt(word: "rules_version") { _ = correct(["rules_version"]) }
      file.version = try version()
    } catch {
      resume(after: error, braces: 0)
    }
    while token != .end {
      do throws(RulesIssue) {
        if !isAtDeclaration { _ = correct(["service", "function"]) }
        if isAt(word: "function") {
          file.functions += try function().map { [$0] } ?? []
        } else if isAt(word: "service") {
          file.services += try service().map { [$0] } ?? []
        } else {
          record(unexpected(isAt("}") ? "no further '}'" : "'service'"))
          // A match outside a service is still parsed, to report the errors in it.
          if isAt(word: "match") { _ = try nestedMatch() } else { passJunk() }
          braces = 0
        }
      } catch {
        resume(after: error, braces: 0)
      }
    }
    if file.services.isEmpty, issues.isEmpty {
      record(
        issue(
          "The file has no rules: a service, such as 'service cloud.firestore { … }', is missing.",
          from: start
        )
      )
    }
    return file
  }

  private mutating func version() throws(RulesIssue) -> Int {
    guard isAt(word: "rules_version") else { return 1 }
    try advance()
    try expect("=")
    guard case .string(let version) = token, let number = ["1": 1, "2": 2][version] else {
      throw issue("Unsupported rules version \(token.quoted).", from: start)
    }
    try advance()
    _ = try skip(";")
    return number
  }

  private mutating func service() throws(RulesIssue) -> ServiceSyntax? {
    let start = start
    try advance()
    var service = ServiceSyntax(name: "", range: range(from: start))
    do throws(RulesIssue) {
      var name = try identifier("the name of a service")
      while try skip(".") { name += "." + (try identifier("the name of a service")) }
      service.name = name
      service.range = range(from: start)
      try expect("{")
    } catch {
      guard enterBlock(after: error, ["match", "function"]) else { return nil }
    }
    if isAt("}") {
      record(
        issue("The 'service' body must contain at least one declaration.", from: self.start)
      )
    }
    let block = braces
    while token != .end, !isAt("}") {
      do throws(RulesIssue) {
        if !isAtDeclaration { _ = correct(["match", "function"]) }
        if isAt(word: "function") {
          service.functions += try function().map { [$0] } ?? []
        } else if isAt(word: "match") {
          service.matches += try nestedMatch().map { [$0] } ?? []
        } else if isAt("/") {
          service.matches += try unnamedMatch().map { [$0] } ?? []
        } else {
          throw unexpected("'match' or 'function'")
        }
      } catch {
        resume(after: error, braces: block)
      }
    }
    try endBlock()
    return service
  }

  /// Skips the brace that ends a block, or reports that the file ends before it.
  private mutating func endBlock() throws(RulesIssue) {
    guard token == .end else {
      _ = try skip("}")
      return
    }
    // An unreadable part of the file may contain braces.
    if !hasUnreadable { record(issue("Unexpected '<EOF>'. Missing '}'.", from: start)) }
  }

  private mutating func nestedMatch() throws(RulesIssue) -> MatchSyntax? {
    try nested { parser throws(RulesIssue) in try parser.match() }
  }

  /// Parses a match whose keyword is missing before its path.
  private mutating func unnamedMatch() throws(RulesIssue) -> MatchSyntax? {
    record(issue("Missing 'match' keyword before path.", from: start))
    return try nested { parser throws(RulesIssue) in
      try parser.match(from: parser.start)
    }
  }

  private mutating func match() throws(RulesIssue) -> MatchSyntax? {
    let start = start
    try advance()
    return try match(from: start)
  }

  /// Parses a match from its path on.
  private mutating func match(from start: Int) throws(RulesIssue) -> MatchSyntax? {
    var match = MatchSyntax(path: [], range: range(from: start))
    do throws(RulesIssue) {
      guard isAt("/") else { throw unexpected("a path") }
      match.path = try pattern()
      match.range = range(from: start)
      try expect("{")
    } catch {
      guard enterBlock(after: error, ["allow", "match", "function"]) else { return nil }
    }
    if isAt("}") {
      record(issue("The 'match' body must contain at least one declaration.", from: self.start))
    }
    let block = braces
    while token != .end, !isAt("}") {
      do throws(RulesIssue) {
        if !isAtDeclaration { _ = correct(["allow", "match", "function"]) }
        if isAt(word: "function") {
          match.functions += try function().map { [$0] } ?? []
        } else if isAt(word: "match") {
          match.matches += try nestedMatch().map { [$0] } ?? []
        } else if isAt(word: "allow") {
          match.allows.append(try allow())
        } else if isAt("/") {
          match.matches += try unnamedMatch().map { [$0] } ?? []
        } else {
          throw unexpected("'allow', 'match' or 'function'")
        }
      } catch {
        resume(after: error, braces: block)
      }
    }
    try endBlock()
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
      // The brace is the last token that was read.
      lastEnd = lexer.offset
    }
    try advance()
    return parts
  }

  private mutating func allow() throws(RulesIssue) -> AllowSyntax {
    let start = start
    try advance()
    var methods: Set<AccessMethod> = []
    var unknownMethods: [(name: String, range: SourceRange)] = []
    repeat {
      guard case .identifier(let word) = token, !Self.reserved.contains(word) else {
        throw unexpected("'read', 'write', 'get', 'list', 'create', 'update' or 'delete'")
      }
      let place = self.start
      try advance()
      if let named = AccessMethod.named(word) {
        methods.formUnion(named)
      } else {
        unknownMethods.append((word, range(from: place)))
      }
    } while try skip(",")
    let condition = try condition()
    let place = range(from: start)
    let isEnded = try skip(";") || isAt("}") || isAtDeclaration
    guard isEnded else { throw unexpected("';'") }
    return AllowSyntax(
      methods: methods,
      unknownMethods: unknownMethods,
      condition: condition,
      range: place
    )
  }

  /// Parses the rest of an `allow` after its methods: nothing, or `: if` and an expression.
  private mutating func condition() throws(RulesIssue) -> Syntax? {
    if isAt(word: "if") {
      record(issue("Missing ':' before 'if' condition.", from: start))
    } else if try !skip(":") {
      return nil
    }
    if isAt(word: "if") {
      try advance()
    } else {
      record(issue("Missing 'if' before conditional expression.", from: start))
    }
    guard !isAt(";"), !isAt("}"), token != .end else {
      throw issue("Missing conditional expression after 'if'.", from: start)
    }
    return try expression()
  }

  private mutating func function() throws(RulesIssue) -> FunctionSyntax? {
    try advance()
    let block = braces
    var function = FunctionSyntax(
      name: "",
      parameters: [],
      lets: [],
      result: nil,
      range: range(from: start)
    )
    do throws(RulesIssue) {
      let start = start
      function.name = try identifier("the name of a function")
      function.range = range(from: start)
      function.parameters = try parameters()
      try expect("{")
    } catch {
      guard enterBlock(after: error, ["let", "return"]) else { return nil }
    }
    var isBroken = false
    while token != .end, !isAt("}"), !isAtDeclaration {
      do throws(RulesIssue) {
        if function.result != nil { throw unexpected("'}'") }
        if isAt(word: "let") {
          function.lets.append(try binding())
        } else {
          try expect(word: "return")
          function.result = try expression()
          _ = try skip(";")
        }
      } catch {
        isBroken = true
        resume(after: error, braces: block + 1)
      }
    }
    if isAtDeclaration { throw unexpected("'}'") }
    if function.result == nil, !isBroken, token != .end { record(unexpected("'return'")) }
    try endBlock()
    return function
  }

  private mutating func parameters() throws(RulesIssue) -> [(name: String, range: SourceRange)] {
    var parameters: [(name: String, range: SourceRange)] = []
    try expect("(")
    while !isAt(")") {
      let place = start
      let parameter = try identifier("the name of a parameter")
      parameters.append((parameter, range(from: place)))
      guard try skip(",") else { break }
      if isAt(")") { throw unexpected("the name of a parameter") }
    }
    try expect(")")
    return parameters
  }

  private mutating func binding() throws(RulesIssue) -> LetSyntax {
    try advance()
    let place = start
    let name = try identifier("the name of a variable")
    let range = range(from: place)
    try expect("=")
    let binding = LetSyntax(name: name, value: try expression(), range: range)
    if isAt(word: "let") || isAt(word: "return") {
      record(issue("Unexpected '\(token.quoted)'. Expected ';' before it.", from: start))
    } else {
      try expect(";")
    }
    return binding
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
      // The text after the bracket belongs to the path.
      lexer.offset = self.start + 1
    }
    guard !parts.isEmpty else { throw issue("A path's segment is missing.", from: start) }
    try advance()
    return try made(.path(parts), from: start)
  }

  /// Reads the text of a path segment.
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

  /// Creates an expression that begins at `start`; issues about its value are reported at `place`.
  private func made(
    _ kind: Syntax.Kind,
    from start: Int,
    at place: Int? = nil
  ) throws(RulesIssue) -> Syntax {
    let range = range(from: start)
    let syntax = Syntax(kind, range, at: place.map { lexer.source.range($0, $0 + 1) } ?? range)
    guard syntax.depth <= Self.depthMax else {
      throw issue("Expression is too complex to evaluate safely.", from: start)
    }
    return syntax
  }
}
