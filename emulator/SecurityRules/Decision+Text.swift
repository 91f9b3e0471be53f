extension Decision {
  /// The maximum number of characters shown of an expression.
  private static let excerptMax = 160

  /// Returns the decision and its reasons as several lines for a terminal.
  ///
  /// Each evaluated rule has a line, such as `firestore.rules:12:5 allow update: false`. The lines
  /// below it show the deciding parts and their values. The values passed to `debug` come last. The
  /// text does not end with a line break.
  package func text(for method: AccessMethod, in ruleset: Ruleset) -> String {
    let file = ruleset.source.name
    guard !answers.isEmpty else {
      return Self.printable("\(file): no rule for \(method.rawValue) matches this path")
    }
    let lines = answers.flatMap { Self.lines($0, method, file) }.map(Self.printable)
    return (lines + debugLines(in: ruleset)).joined(separator: "\n")
  }

  /// Returns one line for each value passed to `debug`, safe to print on a terminal.
  ///
  /// A line has the form `firestore.rules:12:5 debug(request.auth.uid) = 'alice'`.
  package func debugLines(in ruleset: Ruleset) -> [String] {
    debugged.map { value in
      Self.printable(
        "\(ruleset.source.name):\(value.range.line):\(value.range.column) "
          + "debug(\(Self.excerpt(value.text))) = \(value.value)"
      )
    }
  }

  private static func lines(
    _ answer: Answer,
    _ method: AccessMethod,
    _ file: String
  ) -> [String] {
    let outcome =
      switch answer.outcome {
      case .isTrue: "true"
      case .isFalse: "false"
      case .failed: "error"
      }
    let place = "\(file):\(answer.range.line):\(answer.range.column)"
    var lines = ["\(place) allow \(method.rawValue): \(outcome)"]
    for reason in answer.reasons {
      // The line of a function may be far from the line of the rule.
      let isElsewhere = reason.range.line != answer.range.line
      let elsewhere = isElsewhere ? "  (\(Self.place(reason.range)))" : ""
      lines.append("  \(excerpt(reason.text))\(elsewhere)")
      if let failure = reason.failure { lines.append("    error: \(failure)") }
      lines += reason.operands.map { "    \(excerpt($0.text)) = \($0.value)" }
    }
    if case .failed(let message, let range) = answer.outcome,
      !answer.reasons.contains(where: { $0.failure == message })
    {
      lines.append("  error: \(message)  (\(Self.place(range)))")
    }
    return lines
  }

  private static func place(_ range: SourceRange) -> String {
    "line \(range.line), column \(range.column)"
  }

  /// Returns an expression on one line, shortened if it is long.
  private static func excerpt(_ text: String) -> String {
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
