import Identifiers

/// The recovery after syntax errors.
extension Parser {
  /// Records an error; a second error at the same offset follows from the first and is dropped.
  mutating func record(_ issue: RulesIssue) {
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

  var isAtDeclaration: Bool {
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
  mutating func resume(after issue: RulesIssue, braces block: Int) {
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
  mutating func enterBlock(after issue: RulesIssue, _ words: Set<String>) -> Bool {
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
  mutating func passJunk() {
    while token != .end {
      let isEnd = isAt(";") || isAt("}")
      pass()
      if isEnd || isAtDeclaration || isAt("}") { return }
    }
  }

  /// Records a misspelled word and replaces it with the most similar candidate.
  ///
  /// Returns false if no candidate is similar enough.
  mutating func correct(_ candidates: [String]) -> Bool {
    guard case .identifier(let word) = token,
      let meant = NearestName.of(word, among: candidates, takesBeginning: false)
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
}
