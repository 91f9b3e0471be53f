/// The declarations: services, matches, allow statements and functions.
extension Parser {
  mutating func file() -> FileSyntax {
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

  mutating func service() throws(RulesIssue) -> ServiceSyntax? {
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
  mutating func condition() throws(RulesIssue) -> Syntax? {
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
}
