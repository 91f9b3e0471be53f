import JSONText

extension Ruleset {
  /// Returns the coverage as JSON in the format of Firebase's emulator.
  ///
  /// The report has one tree per condition, in file order, then one per `let` and per function
  /// result. A node has `values` if the expression or an enclosing expression was evaluated. A
  /// value `{}` counts the evaluations in which the expression was skipped. Literals have no node.
  /// Lists, maps and similar values appear only as their kind: `{"mapValue": {}}`.
  package func coverageJSON(_ coverage: Coverage) -> String {
    let (name, content) = file
    var json = "{\"rules\":{\"files\":[{\"name\":\(jsonQuoted(name)),"
    json += "\"content\":\(jsonQuoted(content))}]}"
    let roots = (allows.compactMap(\.condition) + functionBodies)
      .filter { !$0.isLiteral }
      .map { node($0, in: coverage, outer: nil) }
    if !roots.isEmpty { json += ",\"report\":[\(roots.joined(separator: ","))]" }
    return json + "}"
  }

  /// The rules of the file, in file order.
  var allows: [CompiledAllow] {
    func below(_ match: CompiledMatch) -> [CompiledAllow] {
      match.allows + match.matches.flatMap(below)
    }
    return matches.flatMap(below).sorted { $0.range.offset < $1.range.offset }
  }

  /// The `let` values and results of the file's functions, in file order.
  var functionBodies: [Expression] {
    functions.flatMap { $0.lets + [$0.result] }.sorted { $0.range.offset < $1.range.offset }
  }

  /// Returns the tree of an expression.
  ///
  /// `outer` has the number of times the enclosing expression was reached, and the number of times
  /// it was evaluated.
  private func node(
    _ expression: Expression,
    in coverage: Coverage,
    outer: (visits: Int, total: Int)?
  ) -> String {
    let seen = coverage.node(expression)
    var values = (seen?.counts ?? []).map { (json($0.outcome), $0.count) }
    var total = seen?.total ?? 0
    if total == 0, case .request = expression.kind, let outer, outer.total > 0 {
      // The members of `request` are looked up without evaluating `request` itself.
      values = [(json(.kind("map")), outer.total)]
      total = outer.total
    }
    let visits = max(total, outer?.visits ?? 0)
    if visits > total { values.append(("{}", visits - total)) }
    var members = ["\"sourcePosition\":\(json(expression.range))"]
    if !values.isEmpty {
      let list = values.map { "{\"value\":\($0.0),\"count\":\($0.1)}" }
      members.append("\"values\":[\(list.joined(separator: ","))]")
    }
    let children = expression.children.filter { !$0.isLiteral }
    if !children.isEmpty {
      let list = children.map { node($0, in: coverage, outer: (visits, total)) }
      members.append("\"children\":[\(list.joined(separator: ","))]")
    }
    return "{\(members.joined(separator: ","))}"
  }

  private func json(_ range: SourceRange) -> String {
    "{\"fileName\":\(jsonQuoted(source.name)),\"line\":\(range.line),\"column\":\(range.column),"
      + "\"currentOffset\":\(range.offset),\"endOffset\":\(range.endOffset)}"
  }

  private func json(_ outcome: CoverageOutcome) -> String {
    switch outcome {
    case .null: return "{\"nullValue\":null}"
    case .bool(let value): return "{\"boolValue\":\(value)}"
    case .int(let value): return "{\"intValue\":\"\(value)\"}"
    case .float(let value): return "{\"floatValue\":\(json(value))}"
    case .string(let text): return "{\"stringValue\":\(jsonQuoted(text))}"
    case .path(let segments):
      let steps = segments.map { "{\"simple\":\(jsonQuoted($0))}" }
      return "{\"pathValue\":{\"segments\":[\(steps.joined(separator: ","))]}}"
    case .kind(let type): return "{\(jsonQuoted(Self.tag(of: type))):{}}"
    case .failed(let message, let range):
      return "{\"undefined\":{\"sourcePosition\":\(json(range)),"
        + "\"causeMessage\":\(jsonQuoted(message))}}"
    }
  }

  /// Encodes a number.
  ///
  /// JSON has no literals for NaN and infinity. Protobuf's JSON encodes them as strings.
  private func json(_ number: Double) -> String {
    if number.isNaN { return "\"NaN\"" }
    if number.isInfinite { return number < 0 ? "\"-Infinity\"" : "\"Infinity\"" }
    return String(number)
  }

  /// Returns the name of the member that holds a value of a type: `mapDiffValue` for `map_diff`.
  private static func tag(of type: String) -> String {
    let words = type.split(separator: "_")
    let rest = words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }
    return (words.prefix(1).map(String.init) + rest).joined() + "Value"
  }
}

extension Expression {
  /// True for a literal, whose value never changes and which is left out of coverage.
  var isLiteral: Bool { if case .literal = kind { true } else { false } }
}
