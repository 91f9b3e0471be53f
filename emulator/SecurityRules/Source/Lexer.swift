/// The smallest meaningful unit of a rules file.
enum Token: Equatable {
  case identifier(String)
  /// An integer; at most the magnitude of the smallest `Int64`.
  case int(UInt64)
  case float(Double)
  case string(String)
  case bytes([UInt8])
  /// An operator, a bracket or another sign.
  case sign(String)
  case end
  /// Scalars that form no token.
  case unreadable

  /// The token as error messages quote it.
  var quoted: String {
    switch self {
    case .identifier(let name): name
    case .int(let value): String(value)
    case .float(let value): String(value)
    case .string(let text): "\"\(text)\""
    case .bytes: "b'…'"
    case .sign(let text): text
    case .end: "<EOF>"
    case .unreadable: "…"
    }
  }
}

/// A reader of tokens, starting at any position that the parser sets.
///
/// A slash starts a path or is a division, depending on the context. The parser has this context
/// and reads the segments of paths itself.
struct Lexer {
  let source: SourceText
  /// The offset of the next scalar.
  var offset = 0

  init(_ source: SourceText) { self.source = source }

  private var scalars: [Unicode.Scalar] { source.scalars }

  func peek(_ distance: Int = 0) -> Unicode.Scalar? {
    let index = offset + distance
    return index < scalars.count ? scalars[index] : nil
  }

  /// Skips white space and comments.
  mutating func skipSpace() throws(RulesIssue) {
    while let scalar = peek() {
      if scalar.properties.isWhitespace || scalar == "\u{FEFF}" {
        offset += 1
      } else if scalar == "/", peek(1) == "/" {
        while let next = peek(), next != "\n" { offset += 1 }
      } else if scalar == "/", peek(1) == "*" {
        let start = offset
        offset += 2
        while !(peek() == "*" && peek(1) == "/") {
          guard peek() != nil else { throw issue("This comment has no end.", from: start) }
          offset += 1
        }
        offset += 2
      } else {
        return
      }
    }
  }

  /// Reads the next token; `start` is the offset of its first scalar.
  mutating func next() throws(RulesIssue) -> (token: Token, start: Int) {
    try skipSpace()
    let start = offset
    guard let first = peek() else { return (.end, start) }
    if Self.isLetter(first) {
      if first == "b" || first == "B", peek(1) == "'" || peek(1) == "\"" {
        offset += 1
        return (.bytes(try bytes()), start)
      }
      return (.identifier(word()), start)
    }
    if Self.isDigit(first) || first == "." && peek(1).map(Self.isDigit) == true {
      return (try number(), start)
    }
    if first == "'" || first == "\"" { return (.string(try string()), start) }
    let pair = peek(1).map { "\(first)\($0)" } ?? ""
    if Self.pairs.contains(pair) {
      offset += 2
      return (.sign(pair), start)
    }
    guard Self.signs.contains(first) else {
      let hint = ["&": " Write '&&' for and.", "|": " Write '||' for or."][first] ?? ""
      throw issue("Unexpected '\(first)'.\(hint)", from: start, to: start + 1)
    }
    offset += 1
    return (.sign(String(first)), start)
  }

  private static let pairs: Set<String> = ["==", "!=", "<=", ">=", "&&", "||"]
  private static let signs: Set<Unicode.Scalar> = [
    "{", "}", "(", ")", "[", "]", ":", ";", ",", ".", "?", "=", "<", ">", "+", "-", "*", "/", "%",
    "!", "$",
  ]

  static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
    ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) || scalar == "_"
  }

  static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

  /// Reads letters, digits and underscores up to the next other scalar.
  mutating func word() -> String {
    var view = String.UnicodeScalarView()
    while let scalar = peek(), Self.isLetter(scalar) || Self.isDigit(scalar) {
      view.append(scalar)
      offset += 1
    }
    return String(view)
  }

  private mutating func number() throws(RulesIssue) -> Token {
    let start = offset
    var isFloat = false
    var digits = ""
    while let scalar = peek() {
      if Self.isDigit(scalar) {
        digits.unicodeScalars.append(scalar)
      } else if scalar == ".", !isFloat {
        isFloat = true
        digits += "."
      } else {
        break
      }
      offset += 1
    }
    if let next = peek(), Self.isLetter(next) {
      let start = offset
      throw issue("Unexpected '\(word())'.", from: start)
    }
    guard isFloat else {
      // The sign of the smallest integer is a separate token; see the parser.
      guard let value = UInt64(digits), value <= 1 << 63, digits == String(value) else {
        throw issue("Invalid number literal \(digits).", from: start)
      }
      return .int(value)
    }
    if digits.hasPrefix("0"), digits.dropFirst().first?.isNumber == true {
      throw issue("Invalid number literal \(digits).", from: start)
    }
    if digits.hasPrefix(".") { digits = "0" + digits }
    if digits.hasSuffix(".") { digits += "0" }
    guard let value = Double(digits) else {
      throw issue("'\(digits)' is not a number.", from: start)
    }
    return .float(value)
  }

  /// Reads the parts of a string literal up to its closing quote.
  private mutating func text(_ take: (Escaped) -> Void) throws(RulesIssue) {
    let start = offset
    guard let quote = peek() else { throw issue("A text is missing.", from: start) }
    offset += 1
    while true {
      guard let scalar = peek(), scalar != "\n", scalar != "\r" else {
        throw issue("Missing a closing \(quote)", from: start)
      }
      offset += 1
      if scalar == quote { return }
      guard scalar == "\\" else {
        take(.scalar(scalar))
        continue
      }
      guard let escape = peek() else { throw issue("Missing a closing \(quote)", from: start) }
      offset += 1
      if let plain = Self.escapes[escape] {
        take(.scalar(plain))
      } else if escape == "x" {
        take(.byte(UInt8(truncatingIfNeeded: try number(2, radix: 16))))
      } else if escape == "u" {
        take(.unit(UInt16(truncatingIfNeeded: try number(4, radix: 16))))
      } else if ("0"..."3").contains(escape) {
        offset -= 1
        take(.byte(UInt8(truncatingIfNeeded: try number(3, radix: 8))))
      } else {
        throw issue("'\\\(escape)' is not an escape of a text.", from: offset - 2)
      }
    }
  }

  /// A part of a string literal: a character, a UTF-16 unit or a byte.
  private enum Escaped {
    case scalar(Unicode.Scalar)
    case unit(UInt16)
    case byte(UInt8)
  }

  private mutating func string() throws(RulesIssue) -> String {
    // A pair of `\\u` escapes can encode one character.
    var units: [UInt16] = []
    try text { part in
      switch part {
      case .scalar(let scalar): units += UTF16.encode(scalar).map(Array.init) ?? []
      case .unit(let unit): units.append(unit)
      case .byte(let byte): units.append(UInt16(byte))
      }
    }
    return String(decoding: units, as: UTF16.self)
  }

  private mutating func bytes() throws(RulesIssue) -> [UInt8] {
    let start = offset
    var bytes: [UInt8] = []
    var isValid = true
    try text { part in
      switch part {
      case .scalar(let scalar): bytes += Array(String(scalar).utf8)
      case .unit: isValid = false
      case .byte(let byte): bytes.append(byte)
      }
    }
    guard isValid else { throw issue("Invalid bytes literal.", from: start) }
    return bytes
  }

  private static let escapes: [Unicode.Scalar: Unicode.Scalar] = [
    "\\": "\\", "'": "'", "\"": "\"", "n": "\n", "r": "\r", "t": "\t", "b": "\u{8}", "f": "\u{C}",
  ]

  private mutating func number(_ width: Int, radix: Int) throws(RulesIssue) -> UInt32 {
    let digits = scalars[offset..<min(offset + width, scalars.count)].map(String.init).joined()
    guard digits.count == width, digits.allSatisfy(\.isHexDigit),
      let value = UInt32(digits, radix: radix)
    else {
      throw issue("'\(digits)' is not the number of a character.", from: offset)
    }
    offset += width
    return value
  }

  func issue(_ description: String, from start: Int, to end: Int? = nil) -> RulesIssue {
    RulesIssue(
      severity: .error,
      range: source.range(start, end ?? offset),
      description: description
    )
  }
}
