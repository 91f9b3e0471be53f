import DocumentModel

extension Evaluation {
  /// The maximum number of reasons in a refusal.
  private static let reasonsMax = 5
  /// The work allowed for a value that is shown although the rule did not need it.
  ///
  /// It suffices to compare names but not for more.
  private static let extraWorkMax = 10_000

  /// Returns the parts of a condition that made it false or made it fail.
  ///
  /// The parts are evaluated again with the documents that were already read; see `repeated`. Parts
  /// that the rule skipped, such as a pattern match after a length check that failed, are skipped
  /// again.
  func reasons(_ condition: Expression, _ captures: [RuleValue?]) -> [Decision.Reason] {
    beginOnce(captures)
    var reasons: [Decision.Reason] = []
    explain(condition, Frame(), wants: true, into: &reasons)
    return Array(reasons.prefix(Self.reasonsMax))
  }

  /// Adds the parts of an expression that kept it from having the wanted value.
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
      // One operand decides. An error decides only if no operand has the opposite value.
      var deciding: Expression?
      for operand in operands {
        let outcome = self.outcome(operand, frame)
        if outcome == .failed { deciding = deciding ?? operand }
        if outcome == .bool(!wanted) {
          deciding = operand
          // The rule has skipped the remaining operands too.
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
    // The rule did not need the operands after one that failed.
    var isNeeded = true
    for operand in operands {
      if case .literal = operand.kind { continue }
      let work = workLeft
      if !isNeeded { workLeft = min(work, Self.extraWorkMax) }
      // An operand that fails is shown without a value.
      let value = try? value(operand, frame)
      if !isNeeded { workLeft = work }
      shown.append(
        Decision.Operand(
          text: ruleset.source.text(operand.range),
          // The reason's `failure` explains why there is no value.
          value: value?.literal ?? "(no value)"
        )
      )
      if value == nil { isNeeded = false }
    }
    return shown
  }
}

extension RuleValue {
  /// The maximum number of characters of a value in a message.
  private static let shownMax = 200

  /// The value as a rules file would write it, shortened if it is long.
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
