extension DatabaseDecision {
  /// The maximum number of characters shown of an expression.
  private static let excerptMax = 160

  /// Returns the decision and its reasons as several lines for a terminal.
  ///
  /// Each rule has a line, such as `database.rules.json:12:5 .write of /chats/$id at /chats/7:
  /// false`. The lines below it show the deciding parts and their values. The text does not end
  /// with a line break.
  package func text(file: String) -> String {
    guard !answers.isEmpty else { return "\(file): no rule grants access to this path" }
    return answers.flatMap { Self.lines($0, file) }.map(Self.printable).joined(separator: "\n")
  }

  /// Returns a one-line explanation: each rule and the parts that decided against it.
  package func summary(file: String) -> String {
    guard !answers.isEmpty else { return "no rule in \(file) grants access to this path" }
    return Self.printable(
      answers.map { answer in
        var reasons = answer.reasons.map { reason in
          let operands = reason.operands.map { "\(Self.excerpt($0.text)) = \($0.value)" }
          let values = operands.isEmpty ? "" : " (\(operands.joined(separator: ", ")))"
          return "`\(Self.excerpt(reason.text))` "
            + "\(reason.failure.map { "has no value: \($0)" } ?? "decides")\(values)"
        }
        if let failure = answer.unexplainedFailure { reasons.append("has no value: \(failure)") }
        return "\(answer.place(in: file)) \(reasons.joined(separator: "; "))"
      }.joined(separator: " | ")
    )
  }

  private static func lines(_ answer: Answer, _ file: String) -> [String] {
    let outcome =
      switch answer.outcome {
      case .isTrue: "true"
      case .isFalse: "false"
      case .failed: "error"
      }
    var lines = ["\(answer.place(in: file)) at \(answer.path): \(outcome)"]
    for reason in answer.reasons {
      lines.append("  \(excerpt(reason.text))")
      if let failure = reason.failure { lines.append("    error: \(failure)") }
      lines += reason.operands.map { "    \(excerpt($0.text)) = \($0.value)" }
    }
    if let failure = answer.unexplainedFailure { lines.append("  error: \(failure)") }
    return lines
  }

  /// Returns an expression on one line, shortened if it is long.
  static func excerpt(_ text: String) -> String {
    let line = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return line.count <= excerptMax ? line : line.prefix(excerptMax) + "…"
  }

  /// Returns a line with control characters escaped, because they could control the terminal.
  private static func printable(_ line: String) -> String {
    guard line.unicodeScalars.contains(where: isControl) else { return line }
    return line.unicodeScalars.map { scalar in
      isControl(scalar) ? scalar.escaped(asASCII: true) : String(scalar)
    }.joined()
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
  }
}

extension DatabaseDecision.Answer {
  /// The failure of the whole expression, such as too much work, which no reason shows.
  fileprivate var unexplainedFailure: String? {
    guard case .failed(let message) = outcome, !reasons.contains(where: { $0.failure == message })
    else { return nil }
    return message
  }

  fileprivate func place(in file: String) -> String {
    "\(file):\(line):\(column) \(kind.rawValue) of \(rulePath)"
  }
}
