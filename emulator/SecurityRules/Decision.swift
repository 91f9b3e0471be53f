/// The decision of the rules about a request, with its reasons.
package struct Decision: Sendable {
  package var isAllowed: Bool
  /// The results of the evaluated rules, in file order.
  ///
  /// Rules after the first one that allows the request are not evaluated.
  package var answers: [Answer]
  /// The values passed to `debug`, in call order; calls beyond a maximum are left out.
  package var debugged: [DebugValue] = []

  /// The maximum number of `debug` calls whose values a decision keeps.
  static let debuggedMax = 20

  /// A value that a rule passed to `debug`.
  package struct DebugValue: Sendable, Hashable {
    /// The position of the call.
    package var range: SourceRange
    /// The argument as it is written in the file.
    package var text: String
    /// The value as a rules file would write it, shortened if it is long.
    package var value: String
  }

  /// The result of one `allow`.
  package struct Answer: Sendable {
    /// The position of the `allow`.
    package var range: SourceRange
    package var outcome: Outcome
    /// The deciding parts of the condition if it refuses; empty if it allows.
    package var reasons: [Reason]
  }

  /// The result of a condition.
  package enum Outcome: Sendable, Hashable {
    case isTrue, isFalse
    case failed(message: String, SourceRange)
  }

  /// A part of a condition that made it false or made it fail.
  package struct Reason: Sendable, Hashable {
    package var range: SourceRange
    /// The expression as it is written in the file.
    package var text: String
    /// The subexpressions and their values, as a rules file would write them.
    package var operands: [Operand]
    /// The reason why the expression has no value; nil if it is false.
    package var failure: String?
  }

  /// A subexpression with its value.
  package struct Operand: Sendable, Hashable {
    package var text: String
    package var value: String
  }

  /// Returns the refusal in the wording of Firebase's emulator, with one entry per rule.
  package func message(for method: AccessMethod) -> String {
    let lines = answers.map { answer in
      switch answer.outcome {
      case .isTrue: "true for '\(method.rawValue)' @ L\(answer.range.line)"
      case .isFalse: "false for '\(method.rawValue)' @ L\(answer.range.line)"
      case .failed(let message, let range):
        message.hasPrefix("Property ") || message.hasPrefix("Null ")
          ? "\(message) for '\(method.rawValue)' @ L\(answer.range.line)"
          : "evaluation error at L\(range.line):\(range.column) for '\(method.rawValue)' "
            + "@ L\(answer.range.line)"
      }
    }
    guard !lines.isEmpty else { return "No matching allow statements" }
    return "\n" + lines.joined(separator: ", ")
  }
}

extension Ruleset {
  /// Evaluates the rules for a request.
  ///
  /// `ledger` counts the documents that the rules access for the whole request. A query is allowed
  /// if every alternative of its filter is allowed. Reasons are determined for refusals only.
  package func decide(
    _ request: RulesRequest,
    documents: any RulesDocuments,
    ledger: AccessLedger,
    coverage: Coverage? = nil
  ) -> Decision {
    let found = PatternSearch.allows(for: request, in: self)
    var answers: [Decision.Answer] = []
    var debugged: [Decision.DebugValue] = []
    let alternatives: [QueryConstraints?] =
      request.constraints.isEmpty ? [nil] : request.constraints
    for constraints in alternatives {
      var isAllowed = false
      let record = coverage.map { _ in CoverageRecord() }
      // All rules share one evaluation, and with it the limits on expressions and accesses.
      let evaluation = Evaluation(
        self,
        request,
        constraints: constraints,
        documents: documents,
        ledger: ledger,
        coverage: record
      )
      var refusals: [(candidate: PatternSearch.Candidate, answer: Decision.Answer)] = []
      for candidate in found {
        evaluation.captures = candidate.captures
        let answer = evaluation.answer(candidate.allow)
        if answer.outcome == .isTrue {
          isAllowed = true
          answers += refusals.map(\.answer) + [answer]
          break
        }
        if answers.count + refusals.count < Self.answersMax { refusals.append((candidate, answer)) }
      }
      ledger.expressions += evaluation.expressionCount
      // The request is decided again with a larger budget, and that decision is counted.
      guard !ledger.isInsufficient else { return Decision(isAllowed: false, answers: []) }
      if let coverage, let record { coverage.add(record) }
      debugged += evaluation.debugged.prefix(Decision.debuggedMax - debugged.count)
      if !isAllowed {
        let again = evaluation.repeated()
        return Decision(
          isAllowed: false,
          answers: refusals.map { candidate, answer in
            var answer = answer
            if let condition = candidate.allow.condition {
              answer.reasons = again.reasons(condition, candidate.captures)
            }
            return answer
          },
          debugged: debugged
        )
      }
    }
    return Decision(isAllowed: true, answers: answers, debugged: debugged)
  }

  /// The maximum number of results that a decision keeps.
  private static let answersMax = 20
}

extension Evaluation {
  fileprivate func answer(_ allow: CompiledAllow) -> Decision.Answer {
    var outcome = Decision.Outcome.isTrue
    if let condition = allow.condition {
      do {
        if try !holds(condition) { outcome = .isFalse }
      } catch {
        outcome = .failed(message: error.message, error.range)
      }
    }
    return Decision.Answer(range: allow.range, outcome: outcome, reasons: [])
  }
}
