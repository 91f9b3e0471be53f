extension Decision {
  /// What decided, in one line: each rule that was asked and the parts that were false.
  package func summary(in ruleset: Ruleset) -> String {
    guard !answers.isEmpty else { return "no rule in \(ruleset.file.name) matches" }
    return answers.map { answer in
      let place = "\(ruleset.file.name):\(answer.range.line):\(answer.range.column)"
      let reasons = answer.reasons.map { reason in
        let operands = reason.operands.map { "\($0.text) = \($0.value)" }
        let values = operands.isEmpty ? "" : " (\(operands.joined(separator: ", ")))"
        return
          "`\(reason.text)` \(reason.failure.map { "has no value: \($0)" } ?? "decides")\(values)"
      }
      return "\(place) \(reasons.joined(separator: "; "))"
    }.joined(separator: " | ")
  }
}
