import DatabaseModel
import JSONText

extension Evaluation {
  /// The maximum number of reasons of a rule.
  private static let reasonsMax = 5
  /// The work allowed for the reasons of a rule, which takes some milliseconds.
  private static let reasonsWork = 200_000

  /// Returns the parts of a rule that made it false or made it fail, by evaluating them again.
  mutating func reasons(_ rule: Rule, at level: RuleLevel) -> [DatabaseDecision.Reason] {
    (path, captures, record) = (level.path, level.captures, nil)
    workLeft = Self.reasonsWork
    var reasons: [DatabaseDecision.Reason] = []
    explain(rule.condition, wants: true, rule, into: &reasons)
    return Array(reasons.prefix(Self.reasonsMax))
  }

  /// The value of an expression that a reason looks for; nil if it fails or is no boolean.
  private mutating func flag(_ expression: Expression) -> Bool? {
    // The reason itself tells why an expression has no value.
    guard case .boolean(let flag)? = try? value(expression) else { return nil }
    return flag
  }

  /// Adds the parts of an expression that kept it from having the wanted value.
  private mutating func explain(
    _ expression: Expression,
    wants wanted: Bool,
    _ rule: Rule,
    into reasons: inout [DatabaseDecision.Reason]
  ) {
    guard reasons.count < Self.reasonsMax, flag(expression) != wanted else { return }
    switch expression.kind {
    case .and(let operands), .or(let operands):
      // In a conjunction that should be true, one operand decides; otherwise each of them does.
      let isConjunction = if case .and = expression.kind { true } else { false }
      for operand in operands {
        let flag = flag(operand)
        guard flag != wanted else { continue }
        explain(operand, wants: wanted, rule, into: &reasons)
        // The rule has not looked at what follows.
        if flag == nil || isConjunction == wanted { return }
      }
    case .not(let operand): explain(operand, wants: !wanted, rule, into: &reasons)
    case .choice(let condition, let first, let second):
      guard let flag = flag(condition) else {
        return explain(condition, wants: true, rule, into: &reasons)
      }
      explain(flag ? first : second, wants: wanted, rule, into: &reasons)
    default: reasons.append(reason(expression, rule))
    }
  }

  private mutating func reason(
    _ expression: Expression,
    _ rule: Rule
  ) -> DatabaseDecision.Reason {
    var failure: String?
    do { _ = try value(expression) } catch { failure = error.message }
    var operands: [DatabaseDecision.Operand] = []
    for operand in expression.children.isEmpty ? [expression] : expression.children
    where !operand.isLiteral {
      // The failure of an operand is that of the whole expression.
      let value = try? value(operand)
      operands.append(
        DatabaseDecision.Operand(
          text: rule.text(of: operand),
          value: value?.literal ?? "(no value)"
        )
      )
      // The rule has not looked at what follows.
      if value == nil { break }
    }
    return DatabaseDecision.Reason(
      text: rule.text(of: expression),
      operands: operands,
      failure: failure
    )
  }
}

extension RuleValue {
  /// The maximum number of characters of a value in a message.
  private static let shownMax = 200

  /// The value as a rule would write it, shortened if it is long.
  var literal: String {
    switch self {
    case .null: return "null"
    case .boolean(let flag): return String(flag)
    case .number(let number): return Self.text(of: number)
    case .string(let text):
      let start = Self.shortened(text)
      return "'" + start.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    case .json(let json): return Self.shortened(String(decoding: json.bytes, as: UTF8.self))
    case .subtree: return "an object"
    case .snapshot(let snapshot):
      return "snapshot of \(snapshot.path?.description ?? "no path")"
    }
  }

  private static func shortened(_ text: String) -> String {
    let start = text.unicodeScalars.prefix(shownMax)
    return start.endIndex == text.endIndex ? text : String(start) + "…"
  }
}
