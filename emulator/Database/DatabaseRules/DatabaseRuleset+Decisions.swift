package import DatabaseModel

extension DatabaseRuleset {
  /// Decides whether a node may be read; `query` is nil for the whole node.
  package func read(
    _ path: DatabasePath,
    query: DatabaseQuery?,
    _ request: DatabaseRulesRequest
  ) -> DatabaseDecision {
    var decider = Decider(Evaluation(request, query: query))
    return DatabaseDecision(isAllowed: decider.grants(path, levels(to: path)) { $0.read })
  }

  /// Decides about all locations of one write together; one refusal refuses all.
  ///
  /// A location is a path at which the write replaces the node.
  package func write(
    _ locations: [DatabasePath],
    _ request: DatabaseRulesRequest
  ) -> DatabaseDecision {
    var decider = Decider(Evaluation(request))
    let isAllowed = locations.allSatisfy { location in
      let levels = levels(to: location)
      return decider.grants(location, levels) { $0.write } && decider.validates(location, levels)
    }
    return DatabaseDecision(isAllowed: isAllowed)
  }
}

/// One decision.
private struct Decider {
  private var evaluation: Evaluation
  /// The values of rules above a location, which other locations of the write share.
  private var known: [Key: Bool] = [:]

  /// A rule at a path, which also determines its variables.
  private struct Key: Hashable {
    var kind: Rule.Kind
    var path: DatabasePath
  }

  init(_ evaluation: Evaluation) {
    self.evaluation = evaluation
  }

  /// Returns true if a rule on the way grants the access.
  mutating func grants(
    _ location: DatabasePath,
    _ levels: [RuleLevel],
    _ rule: (RuleNode) -> Rule?
  ) -> Bool {
    for level in levels {
      guard let rule = rule(level.node) else { continue }
      if level.path.count < location.count ? holdsOnce(rule, level) : holds(rule, level) {
        return true
      }
    }
    return false
  }

  /// Returns true if no `.validate` on the way to a location or below it refuses.
  mutating func validates(_ location: DatabasePath, _ levels: [RuleLevel]) -> Bool {
    for level in levels where level.path.count < location.count {
      // Below a node that the write deletes, nothing is left to validate.
      guard exists(level.path) else { return true }
      if let rule = level.node.validate, !holdsOnce(rule, level) { return false }
    }
    guard let last = levels.last, last.path.count == location.count else { return true }
    return validatesNode(last)
  }

  /// Returns true if no `.validate` of a node or below it refuses.
  private mutating func validatesNode(_ level: RuleLevel) -> Bool {
    guard level.node.validates, exists(level.path) else { return true }
    evaluation.workLeft += DatabaseRulesLimits.nodeWork
    if let rule = level.node.validate, !holds(rule, level) { return false }
    for (key, node) in level.node.children where node.validates {
      guard let child = level.child(key.text), validatesNode(child) else { return false }
    }
    guard level.node.wildcard?.validates == true else { return true }
    let newData = evaluation.request.newData
    var isValid = true
    do {
      try newData?.forEachChild(at: level.path) { key in
        guard level.node.children[key] == nil, let child = level.child(key.text) else {
          return true
        }
        isValid = validatesNode(child)
        return isValid
      }
    } catch {
      // Data that cannot be read is not known to be valid.
      return false
    }
    return isValid
  }

  private func exists(_ path: DatabasePath) -> Bool {
    // Data that cannot be read is validated, and the rules that look at it fail.
    (try? evaluation.request.newData?.exists(at: path)) ?? true
  }

  private mutating func holdsOnce(_ rule: Rule, _ level: RuleLevel) -> Bool {
    let key = Key(kind: rule.kind, path: level.path)
    if let known = known[key] { return known }
    let holds = holds(rule, level)
    known[key] = holds
    return holds
  }

  private mutating func holds(_ rule: Rule, _ level: RuleLevel) -> Bool {
    if case .literal(.boolean(let flag)) = rule.condition.kind { return flag }
    do { return try evaluation.holds(rule, at: level) } catch { return false }
  }
}
