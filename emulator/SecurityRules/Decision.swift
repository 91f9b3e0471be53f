/// What the rules say to a request, and why.
package struct Decision: Sendable {
  package var isAllowed: Bool
  /// The rules that were asked, in the order of the file; those after one that allows were not.
  package var answers: [Answer]
  /// What the rules gave to `debug`, in the order of its calls; calls after so many are left out.
  package var debugged: [DebugValue] = []

  /// Calls of `debug` whose values a decision keeps.
  static let debuggedMax = 20

  /// A value that the rules gave to `debug`.
  package struct DebugValue: Sendable, Hashable {
    /// Where the call stands.
    package var range: SourceRange
    /// The argument as it stands in the file.
    package var text: String
    /// Its value as the file would write it, cut where it is long.
    package var value: String
  }

  /// What one `allow` says.
  package struct Answer: Sendable {
    /// Where the `allow` stands.
    package var range: SourceRange
    package var outcome: Outcome
    /// For a refusal, what decided; empty for a permission.
    package var reasons: [Reason]
  }

  /// How a condition came out.
  package enum Outcome: Sendable, Hashable {
    case isTrue, isFalse
    case failed(message: String, SourceRange)
  }

  /// A part of a condition that made it false, or made it fail.
  package struct Reason: Sendable, Hashable {
    package var range: SourceRange
    /// As it stands in the file.
    package var text: String
    /// The parts of the expression and their values, as the file would write them.
    package var operands: [Operand]
    /// Why it has no value; nil where it is false.
    package var failure: String?
  }

  /// A part of an expression with its value.
  package struct Operand: Sendable, Hashable {
    package var text: String
    package var value: String
  }

  /// The refusal as Firebase's emulator words it, from one line for each rule.
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
  /// Asks the rules; `ledger` counts the documents that they look at for the whole request.
  ///
  /// A query is allowed when each alternative of its filter is. Reasons are found for refusals
  /// only.
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
      // One for all rules: what one of them uses up, the others lack.
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
      // It will be asked again, which counts.
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

  /// Answers that a decision keeps.
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
