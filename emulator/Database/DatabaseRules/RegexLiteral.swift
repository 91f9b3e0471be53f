import LinearRegex

/// The compiler of a literal such as `/^[a-z]+$/i`, whose syntax is smaller than JavaScript's.
///
/// A part that means something else in production would be dangerous, so that everything that is
/// not known to be allowed is refused.
struct RegexLiteral {
  private let text: [Unicode.Scalar]
  private let body: Range<Int>
  private var offset: Int
  /// The pattern in the syntax of `LinearPattern`.
  private var pattern = ""

  static func compile(
    _ text: [Unicode.Scalar],
    _ body: Range<Int>,
    flags: String
  ) throws(ExpressionError) -> LinearPattern {
    guard flags.isEmpty || flags == "i" else {
      throw ExpressionError(
        offset: body.upperBound + 1,
        message: "Invalid flags '\(flags)' of a regular expression; only i is allowed."
      )
    }
    var literal = RegexLiteral(text: text, body: body, offset: body.lowerBound)
    try literal.alternatives(depth: 0)
    do throws(PatternError) {
      return try LinearPattern((flags.isEmpty ? "" : "(?i)") + literal.pattern)
    } catch {
      throw ExpressionError(
        offset: body.lowerBound,
        message: "Invalid regular expression: \(error.message)."
      )
    }
  }

  private func peek(_ distance: Int = 0) -> Unicode.Scalar? {
    offset + distance < body.upperBound ? text[offset + distance] : nil
  }

  private func invalid(_ reason: String) -> ExpressionError {
    ExpressionError(offset: offset, message: "Invalid regular expression: \(reason).")
  }

  /// Text that an unanchored search skips before and after the match.
  private static let anything = "(?s:.*)"
  /// A point excludes the line ends of JavaScript.
  private static let point = #"[^\n\r\x{2028}\x{2029}]"#

  private mutating func alternatives(depth: Int) throws(ExpressionError) {
    guard depth <= DatabaseRulesLimits.nestingMax else { throw invalid("nested too deeply") }
    while true {
      try branch(depth)
      guard peek() == "|" else { return }
      offset += 1
      pattern += "|"
    }
  }

  private mutating func branch(_ depth: Int) throws(ExpressionError) {
    if offset == body.lowerBound, peek() == "^" {
      offset += 1
    } else if depth == 0 {
      pattern += Self.anything
    }
    let start = offset
    while let scalar = peek(), scalar != "|", scalar != ")" || depth == 0 {
      if scalar == "$", offset == body.upperBound - 1, depth == 0 {
        offset += 1
        if offset - start > 1 || start > body.lowerBound { return }
        throw invalid("an empty alternative")
      }
      try atom(scalar, depth)
      try quantifier()
    }
    if offset == start { throw invalid("an empty alternative") }
    if depth == 0 { pattern += Self.anything }
  }

  private mutating func atom(_ scalar: Unicode.Scalar, _ depth: Int) throws(ExpressionError) {
    switch scalar {
    case "(":
      offset += 1
      pattern += "(?:"
      try alternatives(depth: depth + 1)
      guard peek() == ")" else { throw invalid("missing )") }
      offset += 1
      pattern += ")"
    case "[": try set()
    case ".":
      offset += 1
      pattern += Self.point
    case "\\": pattern += try escape().text
    case "*", "+", "?", "{": throw invalid("nothing to repeat before \(scalar)")
    case ")": throw invalid("unexpected )")
    case "^", "$":
      throw invalid("\(scalar) is allowed only at the \(scalar == "^" ? "start" : "end")")
    default:
      offset += 1
      pattern += Self.literal(scalar)
    }
  }

  private mutating func quantifier() throws(ExpressionError) {
    guard let scalar = peek(), ["*", "+", "?", "{"].contains(scalar) else { return }
    let start = offset
    offset += 1
    if scalar == "{" {
      let least = digits()
      guard !least.isEmpty else { throw invalid("a count is missing") }
      if peek() == "," {
        offset += 1
        _ = digits()
      }
      guard peek() == "}" else { throw invalid("missing }") }
      offset += 1
    }
    pattern += String(scalars: text[start..<offset])
    if let next = peek(), ["*", "+", "?", "{"].contains(next) {
      throw invalid("nothing to repeat before \(next)")
    }
  }

  private mutating func digits() -> ArraySlice<Unicode.Scalar> {
    let start = offset
    while let scalar = peek(), ("0"..."9").contains(scalar) { offset += 1 }
    return text[start..<offset]
  }

  /// Consumes an escape; only one that stands for a character can be the end of a range.
  private mutating func escape() throws(ExpressionError) -> (text: String, isClass: Bool) {
    guard let scalar = peek(1) else { throw invalid("an unfinished escape") }
    let text: String
    switch scalar {
    case "d", "D", "w", "W", "s", "S":
      offset += 2
      return ("\\\(scalar)", true)
    case "n", "r", "t", "f", "v": text = "\\\(scalar)"
    case "0"..."9", "a"..."z", "A"..."Z": throw invalid("unknown escape \\\(scalar)")
    default: text = Self.literal(scalar)
    }
    offset += 2
    return (text, false)
  }

  private mutating func set() throws(ExpressionError) {
    offset += 1
    pattern += "["
    if peek() == "^" {
      offset += 1
      pattern += "^"
    }
    var isEmpty = true
    while let next = peek(), next != "]" {
      isEmpty = false
      let first = try setItem()
      pattern += first.text
      guard !first.isClass, peek() == "-", let end = peek(1), end != "]" else { continue }
      offset += 1
      let last = try setItem()
      guard !last.isClass else { throw invalid("a range ends in a class") }
      pattern += "-" + last.text
    }
    guard !isEmpty else { throw invalid("an empty set") }
    guard peek() != nil else { throw invalid("missing ]") }
    offset += 1
    pattern += "]"
  }

  private mutating func setItem() throws(ExpressionError) -> (text: String, isClass: Bool) {
    guard let scalar = peek(), scalar != "\\" else { return try escape() }
    offset += 1
    return (Self.literal(scalar), false)
  }

  private static func literal(_ scalar: Unicode.Scalar) -> String {
    let isPlain =
      scalar.value >= 0x7F || scalar.value <= 0x20
      || ExpressionLexer.isNamePart(scalar)
    return isPlain ? String(scalar) : "\\\(scalar)"
  }
}
