package import DatabaseModel

extension DatabaseRuleset {
  /// Decides whether a node may be read; `query` is nil for the whole node.
  package func read(
    _ path: DatabasePath,
    query: DatabaseQuery?,
    _ request: DatabaseRulesRequest,
    coverage: DatabaseCoverage? = nil
  ) -> DatabaseDecision {
    var decider = Decider(request, query: query, coverage)
    return decider.decision(decider.grants(path, levels(to: path)) { $0.read }, coverage)
  }

  /// Decides about all locations of one write together; one refusal refuses all.
  ///
  /// A location is a path at which the write replaces the node.
  package func write(
    _ locations: [DatabasePath],
    _ request: DatabaseRulesRequest,
    coverage: DatabaseCoverage? = nil
  ) -> DatabaseDecision {
    var decider = Decider(request, query: nil, coverage)
    let isAllowed = locations.allSatisfy { location in
      let levels = levels(to: location)
      return decider.grants(location, levels) { $0.write } && decider.validates(location, levels)
    }
    return decider.decision(isAllowed, coverage)
  }
}

/// One decision.
private struct Decider {
  private var evaluation: Evaluation
  /// The results of rules above a location, which other locations of the write share.
  private var known: [Key: DatabaseDecision.Outcome] = [:]
  /// The rules that decided about the last location, with their results.
  private var decided: [(rule: Rule, level: RuleLevel, outcome: DatabaseDecision.Outcome)] = []

  /// A rule at a path, which also determines its variables.
  private struct Key: Hashable {
    var kind: DatabaseRuleKind
    var path: DatabasePath
  }

  init(_ request: DatabaseRulesRequest, query: DatabaseQuery?, _ coverage: DatabaseCoverage?) {
    evaluation = Evaluation(request, query: query, record: coverage.map { _ in CoverageRecord() })
  }

  /// Returns the decision, with its reasons if it refuses.
  mutating func decision(_ isAllowed: Bool, _ coverage: DatabaseCoverage?) -> DatabaseDecision {
    if let coverage, let record = evaluation.record { coverage.add(record) }
    let answers = decided.prefix(DatabaseDecision.answersMax).map { rule, level, outcome in
      DatabaseDecision.Answer(
        kind: rule.kind,
        rulePath: rule.path,
        path: level.path,
        line: rule.line,
        column: rule.column,
        text: rule.source,
        outcome: outcome,
        reasons: isAllowed || outcome == .isTrue ? [] : evaluation.reasons(rule, at: level)
      )
    }
    return DatabaseDecision(isAllowed: isAllowed, answers: answers)
  }

  /// Returns true if a rule on the way grants the access.
  mutating func grants(
    _ location: DatabasePath,
    _ levels: [RuleLevel],
    _ rule: (RuleNode) -> Rule?
  ) -> Bool {
    decided.removeAll(keepingCapacity: true)
    for level in levels {
      guard let rule = rule(level.node) else { continue }
      let outcome = outcome(rule, level, location)
      decided.append((rule, level, outcome))
      if outcome == .isTrue { return true }
    }
    return false
  }

  /// Returns true if no `.validate` on the way to a location or below it refuses.
  mutating func validates(_ location: DatabasePath, _ levels: [RuleLevel]) -> Bool {
    for level in levels where level.path.count < location.count {
      // Below a node that the write deletes, nothing is left to validate.
      guard exists(level.path) else { return true }
      guard isValid(level, location) else { return false }
    }
    guard let last = levels.last, last.path.count == location.count else { return true }
    return validatesNode(last, location)
  }

  /// Returns true if no `.validate` of a node or below it refuses.
  private mutating func validatesNode(_ level: RuleLevel, _ location: DatabasePath) -> Bool {
    guard level.node.validates, exists(level.path) else { return true }
    guard isValid(level, location) else { return false }
    for (key, node) in level.node.children where node.validates {
      guard let child = level.child(key.text), validatesNode(child, location) else { return false }
    }
    guard level.node.wildcard?.validates == true else { return true }
    let newData = evaluation.request.newData
    var isValid = true
    do {
      try newData?.forEachChild(at: level.path) { key in
        guard level.node.children[key] == nil, let child = level.child(key.text) else {
          return true
        }
        isValid = validatesNode(child, location)
        return isValid
      }
    } catch {
      // Data that cannot be read is not known to be valid.
      return false
    }
    return isValid
  }

  private mutating func isValid(_ level: RuleLevel, _ location: DatabasePath) -> Bool {
    guard let rule = level.node.validate else { return true }
    let outcome = outcome(rule, level, location)
    if outcome == .isTrue { return true }
    decided.append((rule, level, outcome))
    return false
  }

  private func exists(_ path: DatabasePath) -> Bool {
    // Data that cannot be read is validated, and the rules that look at it fail.
    (try? evaluation.request.newData?.exists(at: path)) ?? true
  }

  private mutating func outcome(
    _ rule: Rule,
    _ level: RuleLevel,
    _ location: DatabasePath
  ) -> DatabaseDecision.Outcome {
    if case .literal(.boolean(let flag)) = rule.condition.kind { return flag ? .isTrue : .isFalse }
    guard level.path.count < location.count else { return evaluated(rule, level) }
    let key = Key(kind: rule.kind, path: level.path)
    if let known = known[key] { return known }
    let outcome = evaluated(rule, level)
    known[key] = outcome
    return outcome
  }

  private mutating func evaluated(_ rule: Rule, _ level: RuleLevel) -> DatabaseDecision.Outcome {
    do { return try evaluation.holds(rule, at: level) ? .isTrue : .isFalse } catch {
      return .failed(error.message)
    }
  }
}
