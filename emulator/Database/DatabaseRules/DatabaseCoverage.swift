import Synchronization

/// The values of the rules' expressions over all requests since they were loaded.
package final class DatabaseCoverage: Sendable {
  /// The number of evaluations of an expression with each result.
  struct Tally: Sendable, Hashable {
    var isTrue = 0
    var isFalse = 0
    /// The evaluations with a value that is no boolean.
    var other = 0
    var failed = 0

    var total: Int { isTrue + isFalse + other + failed }

    mutating func add(_ outcome: CoverageRecord.Outcome) {
      switch outcome {
      case .isTrue: isTrue += 1
      case .isFalse: isFalse += 1
      case .other: other += 1
      case .failed: failed += 1
      }
    }
  }

  /// The tallies by the numbers of the expressions.
  private let tallies = Mutex<[Tally]>([])

  package init() {}

  func add(_ record: CoverageRecord) {
    tallies.withLock { tallies in
      for (number, outcome) in record.entries {
        while tallies.count <= number { tallies.append(Tally()) }
        tallies[number].add(outcome)
      }
    }
  }

  func tally(_ expression: Expression) -> Tally {
    tallies.withLock { tallies in
      tallies.indices.contains(expression.number) ? tallies[expression.number] : Tally()
    }
  }
}

/// The results of the expressions in one decision.
final class CoverageRecord {
  enum Outcome {
    case isTrue, isFalse, other, failed

    init(_ result: Result<RuleValue, EvaluationError>) {
      switch result {
      case .success(.boolean(let flag)): self = flag ? .isTrue : .isFalse
      case .success: self = .other
      case .failure: self = .failed
      }
    }
  }

  private(set) var entries: [(number: Int, outcome: Outcome)] = []

  /// The maximum number of results of one decision, which a big write would exceed.
  private static let entriesMax = 100_000

  func add(_ expression: Expression, _ result: Result<RuleValue, EvaluationError>) {
    guard !expression.isLiteral, entries.count < Self.entriesMax else { return }
    entries.append((expression.number, Outcome(result)))
  }
}

/// The results of one rule over all requests.
package struct DatabaseRuleCoverage: Sendable, Hashable {
  package var kind: DatabaseRuleKind
  package var path: String
  package var line: Int
  /// The number of evaluations that were true; nil for a rule that is constant.
  package var isTrue: Int?
  package var isFalse: Int?
  package var failed: Int?
  /// The expression, on one line.
  package var condition: String
  /// The parts of the expression that were never evaluated although the rule was, as written.
  package var skipped: [String]
}

extension DatabaseRuleset {
  /// Returns the results of all rules, in the order of the file.
  package func rules(in coverage: DatabaseCoverage) -> [DatabaseRuleCoverage] {
    var rules: [DatabaseRuleCoverage] = []
    func visit(_ node: RuleNode) {
      for rule in [node.read, node.write, node.validate].compactMap(\.self) {
        rules.append(DatabaseRuleCoverage(rule, coverage))
      }
      for child in node.children.values { visit(child) }
      node.wildcard.map(visit)
    }
    visit(root)
    return rules.sorted {
      ($0.line, $0.path, $0.kind.rawValue) < ($1.line, $1.path, $1.kind.rawValue)
    }
  }
}

extension DatabaseRuleCoverage {
  fileprivate init(_ rule: Rule, _ coverage: DatabaseCoverage) {
    let tally = coverage.tally(rule.condition)
    let isCounted = !rule.condition.isLiteral
    kind = rule.kind
    path = rule.path
    line = rule.line
    isTrue = isCounted ? tally.isTrue : nil
    isFalse = isCounted ? tally.isFalse : nil
    failed = isCounted ? tally.failed : nil
    condition = DatabaseDecision.excerpt(rule.text(of: rule.condition))
    skipped = tally.total > 0 ? Self.skipped(rule.condition, rule, coverage) : []
  }

  private static func skipped(
    _ expression: Expression,
    _ rule: Rule,
    _ coverage: DatabaseCoverage
  ) -> [String] {
    guard !expression.isLiteral else { return [] }
    guard coverage.tally(expression).total > 0 else {
      return [DatabaseDecision.excerpt(rule.text(of: expression))]
    }
    return expression.children.flatMap { skipped($0, rule, coverage) }
  }
}
