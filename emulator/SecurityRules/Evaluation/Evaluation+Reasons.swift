import DocumentModel

extension Evaluation {
  /// Reasons that a refusal names.
  private static let reasonsMax = 5
  /// The work that may be done for a value that is shown although the rule did not need it; it lets
  /// names be compared, and no more.
  private static let extraWorkMax = 10_000

  /// The parts of a condition that made it false, or made it fail.
  ///
  /// They are evaluated once more, with what was already looked up; see `repeated`. What the rule
  /// has skipped, such as the pattern after a bound that a text exceeds, is skipped again.
  func reasons(_ condition: Expression, _ captures: [RuleValue?]) -> [Decision.Reason] {
    beginOnce(captures)
    var reasons: [Decision.Reason] = []
    explain(condition, Frame(), wants: true, into: &reasons)
    return Array(reasons.prefix(Self.reasonsMax))
  }

  /// Adds what kept an expression from being what was wanted of it.
  private func explain(
    _ expression: Expression,
    _ frame: Frame,
    wants wanted: Bool,
    into reasons: inout [Decision.Reason]
  ) {
    guard reasons.count < Self.reasonsMax else { return }
    let outcome = outcome(expression, frame)
    guard outcome != .bool(wanted) else { return }
    switch expression.kind {
    case .and(let operands) where wanted, .or(let operands) where !wanted:
      // One operand decides; an error does only where none decides.
      var deciding: Expression?
      for operand in operands {
        let outcome = self.outcome(operand, frame)
        if outcome == .failed { deciding = deciding ?? operand }
        if outcome == .bool(!wanted) {
          deciding = operand
          // The rule has skipped the others, too.
          break
        }
      }
      if let deciding { explain(deciding, frame, wants: wanted, into: &reasons) }
    case .and(let operands), .or(let operands):
      for operand in operands { explain(operand, frame, wants: wanted, into: &reasons) }
    case .not(let operand): explain(operand, frame, wants: !wanted, into: &reasons)
    case .choice(let condition, let first, let second):
      switch self.outcome(condition, frame) {
      case .bool(let isTrue):
        explain(isTrue ? first : second, frame, wants: wanted, into: &reasons)
      default: reasons.append(reason(condition, frame))
      }
    case .call(let number, let arguments):
      let function = ruleset.functions[number]
      let inner = self.frame(of: expression, function, arguments, frame)
      explain(function.result, inner, wants: wanted, into: &reasons)
    default: reasons.append(reason(expression, frame))
    }
  }

  private enum Seen: Equatable {
    case bool(Bool), other, failed
  }

  private func outcome(_ expression: Expression, _ frame: Frame) -> Seen {
    do {
      guard case .bool(let bool) = try value(expression, frame) else { return .other }
      return .bool(bool)
    } catch { return .failed }
  }

  private func reason(_ expression: Expression, _ frame: Frame) -> Decision.Reason {
    var failure: String?
    do {
      let value = try value(expression, frame)
      if case .bool = value {} else { failure = "Expected a bool, found \(value.typeName)." }
    } catch { failure = error.message }
    return Decision.Reason(
      range: expression.range,
      text: ruleset.source.text(expression.range),
      operands: operands(of: expression, frame),
      failure: failure
    )
  }

  private func operands(of expression: Expression, _ frame: Frame) -> [Decision.Operand] {
    let operands = expression.children.isEmpty ? [expression] : expression.children
    var shown: [Decision.Operand] = []
    // The rule has not needed what comes after an operand that failed.
    var isNeeded = true
    for operand in operands {
      if case .literal = operand.kind { continue }
      let work = workLeft
      if !isNeeded { workLeft = min(work, Self.extraWorkMax) }
      let value = try? value(operand, frame)
      if !isNeeded { workLeft = work }
      shown.append(
        Decision.Operand(
          text: ruleset.source.text(operand.range),
          // Why it has none stands in the reason's failure.
          value: value?.literal ?? "(no value)"
        )
      )
      if value == nil { isNeeded = false }
    }
    return shown
  }
}

extension RuleValue {
  /// Characters of a value that messages show.
  private static let shownMax = 200

  /// The value as a rules file would write it, cut where it is long.
  package var literal: String {
    written(depth: 0).shortened(scalarsMax: Self.shownMax)
  }

  private func written(depth: Int) -> String {
    guard depth < 5 else { return "…" }
    func list(_ values: some Collection<RuleValue>) -> String {
      let shown = values.prefix(20).map { $0.written(depth: depth + 1) }
      return (shown + (values.count > 20 ? ["…"] : [])).joined(separator: ", ")
    }
    switch self {
    case .null: return "null"
    case .bool(let value): return String(value)
    case .int(let value): return String(value)
    case .float(let value): return String(value)
    case .string(let text):
      let start = text.prefix(scalarsMax: Self.shownMax)
      return "'" + start.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    case .bytes(let bytes): return "bytes of \(bytes.count)"
    case .timestamp(let time):
      return "timestamp.value(\(time.seconds * 1000 + Int64(time.nanos) / 1_000_000))"
    case .duration(let span): return "duration.value(\(span.totalNanos / 1_000_000), 'ms')"
    case .vector(let numbers): return "vector of \(numbers.count)"
    case .latlng(let point): return "latlng.value(\(point.latitude), \(point.longitude))"
    case .path(let path): return path.text
    case .list(let elements): return "[\(list(elements))]"
    case .set(let set): return "[\(list(set.elements))].toSet()"
    case .map(let map):
      let shown = map.keys.prefix(20).map { key in
        "'\(key)': \(map[key]?.written(depth: depth + 1) ?? "")"
      }
      return "{\((shown + (map.count > 20 ? ["…"] : [])).joined(separator: ", "))}"
    case .mapDiff(let diff):
      return "diff of added \(diff.added), removed \(diff.removed), changed \(diff.changed)"
    case .queried(let part): return "unknown \((["resource"] + part.names).joined(separator: "."))"
    }
  }
}
