/// The results of a rules file's conditions, in the form of a table.
package struct CoverageSummary: Codable, Sendable, Hashable {
  /// A sentence on all conditions.
  package var text: String
  /// The rules in file order.
  package var rules: [Rule]

  /// The results of one rule's condition.
  package struct Rule: Codable, Sendable, Hashable {
    package var line: Int
    /// The methods in their shortest form, such as `read` for `get` and `list`.
    package var methods: String
    /// The number of evaluations that were true; nil for a condition that is constant.
    package var isTrue: Int?
    package var isFalse: Int?
    package var failed: Int?
    /// The results in words, such as `always true`.
    package var outcome: String
    /// The condition as it is written, on one line and not longer than a line.
    package var condition: String
  }
}

extension Ruleset {
  /// Returns the coverage as a table, one row for each rule.
  package func coverageSummary(_ coverage: Coverage) -> CoverageSummary {
    let verdicts = allows.map { CoverageVerdict(of: $0, in: coverage) }.filter { $0 != .constant }
    let whole = verdicts.count { $0 == .both }
    let never = verdicts.count { $0 == .never }
    return CoverageSummary(
      text: "Of \(verdicts.count) conditions, \(whole) came out both true and false; \(never) "
        + "\(never == 1 ? "was" : "were") never evaluated.",
      rules: allows.map { allow in
        let condition = allow.condition.map { text(of: $0) } ?? ""
        return CoverageSummary.Rule(allow, coverage, condition: condition)
      }
    )
  }

  /// Returns an expression as it is written, on one line and cut to a line's length.
  private func text(of expression: Expression) -> String {
    let range = expression.range
    let count = source.scalars.count
    let start = min(range.offset, count)
    var text = String.UnicodeScalarView()
    text.append(contentsOf: source.scalars[start..<max(start, min(range.endOffset + 1, count))])
    let line = String(text).split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return line.count > Self.conditionMax ? "\(line.prefix(Self.conditionMax - 1))…" : line
  }

  private static let conditionMax = 60
}

extension CoverageSummary.Rule {
  init(_ allow: CompiledAllow, _ coverage: Coverage, condition: String) {
    let verdict = CoverageVerdict(of: allow, in: coverage)
    let tally = CoverageTally(allow.condition.flatMap(coverage.node))
    let isCounted = verdict != .constant
    line = allow.range.line
    methods = Self.methods(allow.methods)
    isTrue = isCounted ? tally.isTrue : nil
    isFalse = isCounted ? tally.isFalse : nil
    failed = isCounted ? tally.failed : nil
    outcome = Self.outcome(allow, verdict)
    self.condition = condition
  }

  private static func outcome(_ allow: CompiledAllow, _ verdict: CoverageVerdict) -> String {
    guard verdict == .constant else { return verdict.text }
    return switch allow.condition?.kind {
    case nil, .literal(.bool(true)): "constant: allows"
    default: "constant: refuses"
    }
  }

  private static func methods(_ methods: Set<AccessMethod>) -> String {
    var rest = methods
    var words: [String] = []
    for word in ["read", "write"] {
      guard let meant = AccessMethod.named(word), meant.isSubset(of: rest) else { continue }
      words.append(word)
      rest.subtract(meant)
    }
    words += AccessMethod.allCases.filter(rest.contains).map(\.rawValue)
    return words.joined(separator: ", ")
  }
}

extension CoverageVerdict {
  /// Creates the verdict on a rule's condition.
  init(of allow: CompiledAllow, in coverage: Coverage) {
    if let condition = allow.condition, !condition.isLiteral {
      self = CoverageTally(coverage.node(condition)).verdict
    } else {
      self = .constant
    }
  }
}
