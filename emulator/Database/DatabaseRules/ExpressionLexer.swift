/// A token of an expression.
enum ExpressionToken: Equatable {
  case number(Double)
  case string(String)
  case name(String)
  case symbol(String)
  case end
}

/// The splitter of an expression into tokens.
struct ExpressionLexer {
  private let text: [Unicode.Scalar]
  /// The offset of the next scalar.
  private(set) var offset = 0

  init(_ text: [Unicode.Scalar]) {
    self.text = text
  }

  static func isNamePart(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || isLetter(scalar) || isDigit(scalar)
  }

  private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
  }

  private static func isDigit(_ scalar: Unicode.Scalar) -> Bool {
    ("0"..."9").contains(scalar)
  }

  /// Longer symbols come before their beginnings.
  private static let symbols = [
    "===", "!==", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "!", "<", ">", "(",
    ")", "[", "]", ".", ",", "?", ":",
  ].map { (text: $0, scalars: Array($0.unicodeScalars)) }

  private func peek(_ distance: Int = 0) -> Unicode.Scalar? {
    offset + distance < text.count ? text[offset + distance] : nil
  }

  /// Consumes the next token; `start` becomes the offset of its first scalar.
  mutating func next(start: inout Int) throws(ExpressionError) -> ExpressionToken {
    while let scalar = peek(), scalar.properties.isWhitespace { offset += 1 }
    start = offset
    guard let scalar = peek() else { return .end }
    if scalar == "'" || scalar == "\"" { return .string(try string(scalar)) }
    if Self.isDigit(scalar) || (scalar == "." && peek(1).map(Self.isDigit) == true) {
      return .number(try number())
    }
    if scalar == "$" || scalar == "_" || Self.isLetter(scalar) {
      offset += 1
      while let scalar = peek(), Self.isNamePart(scalar) { offset += 1 }
      return .name(String(scalars: text[start..<offset]))
    }
    for symbol in Self.symbols where text[offset...].starts(with: symbol.scalars) {
      offset += symbol.scalars.count
      return .symbol(symbol.text)
    }
    guard ["&", "|", "^", "~", "="].contains(scalar) else {
      throw ExpressionError(offset: offset, message: "Syntax error: an unexpected '\(scalar)'.")
    }
    throw ExpressionError(
      offset: offset,
      message: "Rule expressions may not contain operator \(scalar)."
    )
  }

  private mutating func number() throws(ExpressionError) -> Double {
    let start = offset
    func skipDigits() -> Bool {
      let first = offset
      while let scalar = peek(), Self.isDigit(scalar) { offset += 1 }
      return offset > first
    }
    _ = skipDigits()
    if peek() == "." {
      offset += 1
      _ = skipDigits()
    }
    var isValid = true
    if peek() == "e" || peek() == "E" {
      offset += 1
      if peek() == "+" || peek() == "-" { offset += 1 }
      isValid = skipDigits()
    }
    let digits = String(scalars: text[start..<offset])
    // Swift reads no number that ends with its point.
    let number = Double(digits.hasSuffix(".") ? digits + "0" : digits.replacing(".e", with: "e"))
    if let scalar = peek(), Self.isNamePart(scalar) { isValid = false }
    guard isValid, let number, number.isFinite else {
      throw ExpressionError(offset: start, message: "Syntax error: an invalid number.")
    }
    return number
  }

  private mutating func string(_ quote: Unicode.Scalar) throws(ExpressionError) -> String {
    let start = offset
    var result = String.UnicodeScalarView()
    offset += 1
    while let scalar = peek() {
      offset += 1
      if scalar == quote { return String(result) }
      result.append(scalar == "\\" ? try escape() : scalar)
    }
    throw ExpressionError(offset: start, message: "Syntax error: a string without an end.")
  }

  private mutating func escape() throws(ExpressionError) -> Unicode.Scalar {
    let start = offset - 1
    guard let scalar = peek() else {
      throw ExpressionError(offset: start, message: "Syntax error: a string without an end.")
    }
    offset += 1
    switch scalar {
    case "b": return "\u{8}"
    case "f": return "\u{C}"
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "v": return "\u{B}"
    case "x", "u":
      let count = scalar == "x" ? 2 : 4
      let digits = String(scalars: text[offset..<min(offset + count, text.count)])
      offset += count
      guard digits.utf8.count == count, let value = UInt32(digits, radix: 16),
        let result = Unicode.Scalar(value)
      else { throw ExpressionError(offset: start, message: "Syntax error: an invalid escape.") }
      return result
    default: return scalar
    }
  }

  /// Consumes the regular expression whose slash is at `start`: returns its body and its flags.
  mutating func pattern(
    from start: Int
  ) throws(ExpressionError) -> (body: Range<Int>, flags: String) {
    offset = start + 1
    var isInSet = false
    while let scalar = peek(), isInSet || scalar != "/" {
      if scalar == "[" { isInSet = true }
      if scalar == "]" { isInSet = false }
      offset += scalar == "\\" ? 2 : 1
    }
    guard offset < text.count else {
      throw ExpressionError(
        offset: start,
        message: "Syntax error: a regular expression without an end."
      )
    }
    let body = start + 1..<offset
    offset += 1
    let flags = offset
    while let scalar = peek(), Self.isNamePart(scalar) { offset += 1 }
    return (body, String(scalars: text[flags..<offset]))
  }
}

extension String {
  init(scalars: some Sequence<Unicode.Scalar>) {
    self.init()
    unicodeScalars.append(contentsOf: scalars)
  }
}
