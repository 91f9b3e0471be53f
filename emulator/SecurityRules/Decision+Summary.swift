extension Decision {
  /// Returns a one-line explanation: each evaluated rule and the parts that decided against it.
  package func summary(in ruleset: Ruleset) -> String {
    let file = ruleset.source.name
    guard !answers.isEmpty else { return "no rule in \(file) matches" }
    return answers.map { answer in
      let place = "\(file):\(answer.range.line):\(answer.range.column)"
      var reasons = answer.reasons.map { reason in
        let operands = reason.operands.map { "\($0.text) = \($0.value)" }
        let values = operands.isEmpty ? "" : " (\(operands.joined(separator: ", ")))"
        return
          "`\(reason.text)` \(reason.failure.map { "has no value: \($0)" } ?? "decides")\(values)"
      }
      // A limit that the whole condition exceeded belongs to none of its parts.
      if case .failed(let message, _) = answer.outcome,
        !answer.reasons.contains(where: { $0.failure == message })
      {
        reasons.append("has no value: \(message)")
      }
      return "\(place) \(reasons.joined(separator: "; "))"
    }.joined(separator: " | ")
  }
}
