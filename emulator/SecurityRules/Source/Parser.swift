/// A parser that turns a rules file into its syntax and collects all syntax errors.
///
/// After an error the parser continues behind it: at the next `;`, at the end of the block, or at
/// the next declaration.
struct Parser {
  /// All syntax errors of a file, in file order.
  struct ParseError: Error {
    var issues: [RulesIssue]
  }

  var lexer: Lexer
  var token: Token = .end
  /// The start of the current token, and the end of the previous one.
  var start = 0
  var lastEnd = 0

  /// The current depth of nested expressions and matches.
  private var depth = 0

  /// The maximum number of reported errors; a file with more is not a rules file.
  static let issuesMax = 100
  var issues: [RulesIssue] = []
  /// The number of open braces of blocks and maps, without the braces of wildcards.
  var braces = 0
  /// True if a part of the file forms no token, such as a string without a closing quote.
  var hasUnreadable = false
  /// The offset at which the parser last continued after an error.
  var resumed = -1

  static func parse(_ source: SourceText) throws(ParseError) -> FileSyntax {
    var parser = Parser(source)
    let file = parser.file()
    guard parser.issues.isEmpty else { throw ParseError(issues: parser.issues) }
    return file
  }

  private init(_ source: SourceText) { lexer = Lexer(source) }

  // MARK: Tokens

  mutating func advance() throws(RulesIssue) {
    lastEnd = lexer.offset
    // After a lexical error, the previous token must not remain.
    (token, start) = (.unreadable, lexer.offset)
    do throws(RulesIssue) { (token, start) = try lexer.next() } catch {
      hasUnreadable = true
      throw error
    }
  }

  func isAt(_ sign: String) -> Bool { token == .sign(sign) }

  func isAt(word: String) -> Bool { token == .identifier(word) }

  /// Skips a sign if it is the current token.
  mutating func skip(_ sign: String) throws(RulesIssue) -> Bool {
    guard isAt(sign) else { return false }
    count(sign)
    try advance()
    return true
  }

  mutating func count(_ sign: String) {
    if sign == "{" { braces += 1 }
    if sign == "}" { braces -= 1 }
  }

  mutating func expect(_ sign: String) throws(RulesIssue) {
    guard isAt(sign) else { throw unexpected("'\(sign)'") }
    count(sign)
    try advance()
  }

  mutating func expect(word: String) throws(RulesIssue) {
    guard isAt(word: word) else { throw unexpected("'\(word)'") }
    try advance()
  }

  mutating func identifier(_ what: String) throws(RulesIssue) -> String {
    guard case .identifier(let name) = token, !Self.reserved.contains(name) else {
      throw unexpected(what)
    }
    try advance()
    return name
  }

  /// The words that cannot be names.
  static let reserved: Set<String> = [
    "true", "false", "null", "in", "is", "if", "let", "return", "function", "match", "allow",
    "service",
  ]

  func unexpected(_ expected: String) -> RulesIssue {
    issue("Unexpected '\(token.quoted)'. Expected \(expected).", from: start)
  }

  func issue(_ description: String, from start: Int) -> RulesIssue {
    lexer.issue(description, from: start)
  }

  func range(from start: Int) -> SourceRange { lexer.source.range(start, lastEnd) }

  /// Runs `body` one level deeper; throws if the maximum depth is exceeded.
  mutating func nested<Result>(
    _ body: (inout Parser) throws(RulesIssue) -> Result
  ) throws(RulesIssue) -> Result {
    depth += 1
    defer { depth -= 1 }
    guard depth <= RulesLimits.nestingMax else {
      throw issue("Expression is too complex to evaluate safely.", from: start)
    }
    return try body(&self)
  }

  /// Reads the text of a path segment.
  mutating func pathText() -> String {
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
}
