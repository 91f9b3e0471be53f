extension Ruleset {
  /// Returns the coverage as one self-contained HTML page.
  ///
  /// A table of the rules is followed by the text of the file. Each condition has a color for its
  /// results. Each expression shows its values and their counts while the pointer is over it.
  package func coverageHTML(_ coverage: Coverage) -> String {
    CoveragePage(self, coverage).text
  }
}

/// The results of a condition over all requests.
enum CoverageVerdict: String, CaseIterable {
  case never, alwaysTrue, alwaysFalse, both, error
  /// A literal or a missing condition, which is not counted.
  case constant

  /// The result in words, as the page shows it.
  var text: String {
    switch self {
    case .never: "never evaluated"
    case .alwaysTrue: "always true"
    case .alwaysFalse: "always false"
    case .both: "both true and false"
    case .error: "failed"
    case .constant: "constant"
    }
  }
}

/// The number of evaluations in which a condition was true, was false, or failed.
struct CoverageTally {
  var isTrue = 0
  var isFalse = 0
  /// The number of failures, including values that are not a `bool`.
  var failed = 0

  init(_ node: Coverage.Node?) {
    for (outcome, count) in node?.counts ?? [] {
      switch outcome {
      case .bool(true): isTrue += count
      case .bool(false): isFalse += count
      default: break
      }
    }
    failed = (node?.total ?? 0) - isTrue - isFalse
  }

  var verdict: CoverageVerdict {
    if isTrue > 0, isFalse > 0 { return .both }
    if failed > 0 { return .error }
    if isTrue > 0 { return .alwaysTrue }
    return isFalse > 0 ? .alwaysFalse : .never
  }
}

/// The generator of the page.
private struct CoveragePage {
  private let ruleset: Ruleset
  private let coverage: Coverage
  private let allows: [CompiledAllow]

  init(_ ruleset: Ruleset, _ coverage: Coverage) {
    self.ruleset = ruleset
    self.coverage = coverage
    allows = ruleset.allows
  }

  var text: String {
    let name = escaped(ruleset.source.name)
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta http-equiv="Content-Security-Policy" \
      content="default-src 'none'; style-src 'unsafe-inline'">
      <title>Coverage of \(name)</title>
      <style>
      \(Self.style)
      </style>
      </head>
      <body>
      <h1>Coverage of <code>\(name)</code></h1>
      \(summary)
      \(legend)
      <div class="file">
      <pre class="numbers">\(numbers)</pre>
      <pre class="source"><code>\(source)</code></pre>
      </div>
      </body>
      </html>

      """
  }

  // MARK: Summary

  private var summary: String {
    let rows = allows.map(row)
    return """
      <p>\(ruleset.coverageSummary(coverage).text)</p>
      <table>
      <thead><tr><th>Line</th><th>Methods</th><th>True</th><th>False</th><th>Error</th>\
      <th>Outcome</th></tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table>
      """
  }

  private func row(_ allow: CompiledAllow) -> String {
    let rule = CoverageSummary.Rule(allow, coverage, condition: "")
    var cells = ["<a href=\"#L\(rule.line)\">\(rule.line)</a>", rule.methods]
    cells += [rule.isTrue, rule.isFalse, rule.failed].map { $0.map(String.init) ?? "–" }
    cells.append("<span class=\"\(verdict(allow).rawValue)\">\(rule.outcome)</span>")
    return "<tr>\(cells.map { "<td>\($0)</td>" }.joined())</tr>"
  }

  private func verdict(_ allow: CompiledAllow) -> CoverageVerdict {
    CoverageVerdict(of: allow, in: coverage)
  }

  private var legend: String {
    let items = CoverageVerdict.allCases.map { verdict in
      "<li><span class=\"\(verdict.rawValue)\">\(verdict.text)</span></li>"
    }
    return "<ul class=\"legend\">\(items.joined())</ul>"
  }

  // MARK: Source

  private var numbers: String {
    let count = ruleset.source.scalars.count { $0 == "\n" } + 1
    return (1...count).map { "<a id=\"L\($0)\" href=\"#L\($0)\">\($0)</a>" }
      .joined(separator: "\n")
  }

  /// The text of the file with its rules and expressions marked.
  private var source: String {
    let rules = allows.map { ($0.range, mark($0)) }
    let bodies = ruleset.functionBodies.map { ($0.range, mark($0, isWhole: true)) }
    return covered(0..<ruleset.source.scalars.count, rules + bodies)
  }

  /// Returns the escaped text of a range of scalars, with parts of it replaced by marked-up text.
  private func covered(_ scalars: Range<Int>, _ parts: [(SourceRange, String)]) -> String {
    var text = ""
    var place = scalars.lowerBound
    for (range, marked) in parts.sorted(by: { $0.0.offset < $1.0.offset }) {
      let end = range.endOffset + 1
      guard range.offset >= place, end <= scalars.upperBound else { continue }
      text += escaped(ruleset.source.scalars[place..<range.offset]) + marked
      place = end
    }
    return text + escaped(ruleset.source.scalars[place..<scalars.upperBound])
  }

  private func scalars(_ range: SourceRange) -> Range<Int> {
    let count = ruleset.source.scalars.count
    let start = min(range.offset, count)
    return start..<max(start, min(range.endOffset + 1, count))
  }

  private func mark(_ allow: CompiledAllow) -> String {
    let inner = covered(
      scalars(allow.range),
      allow.condition.map { [($0.range, mark($0, isWhole: true))] } ?? []
    )
    let verdict = verdict(allow)
    let rule = CoverageSummary.Rule(allow, coverage, condition: "")
    let title = "allow \(rule.methods): \(rule.outcome)"
    return "<span class=\"rule \(verdict.rawValue)\" title=\"\(escaped(title))\">\(inner)</span>"
  }

  /// Marks up an expression.
  ///
  /// `isWhole` is true for a condition, a `let` value or a function's result.
  private func mark(_ expression: Expression, isWhole: Bool) -> String {
    let inner = covered(
      scalars(expression.range),
      expression.children.map { ($0.range, mark($0, isWhole: false)) }
    )
    guard !expression.isLiteral else { return inner }
    let seen = coverage.node(expression)
    // The members of `request` are looked up without evaluating `request` itself.
    if seen == nil, case .request = expression.kind { return inner }
    var classes = [isWhole ? "whole" : "part"]
    if let verdict = color(seen) { classes.append(verdict.rawValue) }
    return "<span class=\"\(classes.joined(separator: " "))\" title=\"\(escaped(title(seen)))\">"
      + "\(inner)</span>"
  }

  /// Returns the verdict that selects the color; nil if no value is Boolean or an error.
  private func color(_ node: Coverage.Node?) -> CoverageVerdict? {
    guard let node else { return .never }
    let isPlain = node.counts.allSatisfy { entry in
      switch entry.outcome {
      case .bool, .failed: false
      default: true
      }
    }
    return isPlain ? nil : CoverageTally(node).verdict
  }

  /// Returns the tooltip: the values of an expression and their counts.
  private func title(_ node: Coverage.Node?) -> String {
    guard let node else { return "never evaluated" }
    var lines = node.counts.map { "\(shown($0.outcome)): \($0.count)×" }
    let listed = node.counts.reduce(0) { $0 + $1.count }
    if node.total > listed { lines.append("other values: \(node.total - listed)×") }
    return lines.joined(separator: "\n")
  }

  private func shown(_ outcome: CoverageOutcome) -> String {
    switch outcome {
    case .null: "null"
    case .bool(let value): String(value)
    case .int(let value): String(value)
    case .float(let value): String(value)
    case .string(let text): RuleValue.string(text).literal
    case .path(let segments): RulePath(segments).text
    case .kind(let type): "a \(type)"
    case .failed(let message, let range): "error at \(range.line):\(range.column): \(message)"
    }
  }

  // MARK: Text

  private func escaped(_ text: String) -> String { escaped(text.unicodeScalars) }

  private func escaped(_ scalars: some Sequence<Unicode.Scalar>) -> String {
    var text = String.UnicodeScalarView()
    for scalar in scalars {
      switch scalar {
      case "&": text.append(contentsOf: "&amp;".unicodeScalars)
      case "<": text.append(contentsOf: "&lt;".unicodeScalars)
      case ">": text.append(contentsOf: "&gt;".unicodeScalars)
      case "\"": text.append(contentsOf: "&quot;".unicodeScalars)
      case "'": text.append(contentsOf: "&#39;".unicodeScalars)
      // A browser would treat it as a line break, and the line would have no number.
      case "\r": break
      case _ where scalar.value < 0x20 && scalar != "\n" && scalar != "\t":
        text.append("\u{FFFD}")
      default: text.append(scalar)
      }
    }
    return String(text)
  }

  private static let style = """
    :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
    body { margin: 2rem; max-width: 75rem; }
    code, pre { font: 13px/1.6 ui-monospace, Menlo, Consolas, monospace; }
    h1 { font-size: 1.4rem; } h1 code { font-size: inherit; }
    table { border-collapse: collapse; margin: 1rem 0; }
    th, td { padding: .2rem .9rem .2rem 0; text-align: left; }
    th { border-bottom: 1px solid #8888; font-weight: 600; }
    td:nth-child(3), td:nth-child(4), td:nth-child(5) { font-variant-numeric: tabular-nums; }
    .legend { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
    .legend span, td span { padding: .1rem .5rem; border-radius: .3rem; }
    .file { display: flex; border: 1px solid #8886; border-radius: .4rem; overflow-x: auto; }
    .file pre { margin: 0; padding: .8rem; }
    .numbers { text-align: right; border-right: 1px solid #8886; user-select: none; }
    .numbers a { color: #888; text-decoration: none; }
    .numbers a:target { color: inherit; font-weight: 700; }
    .source span { border-radius: .2rem; cursor: default; }
    .source .rule { background: none; }
    .never { background: #8883; }
    .alwaysTrue { background: #e6b80055; }
    .alwaysFalse { background: #ff8c0055; }
    .both { background: #2ea04355; }
    .error { background: #e5484d66; }
    .constant { background: #4a90e233; }
    .source .part { background: none; }
    .source .part.never { opacity: .6; }
    .source .part.error { text-decoration: underline wavy #e5484d; }
    .source .part:hover, .source .whole:hover { outline: 1px solid currentColor; }
    """
}
