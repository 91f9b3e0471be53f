/// A reader at a position in a pattern, with parsers for small pieces of syntax.
struct PatternReader {
  private let scalars: [UInt32]
  /// The number of scalars that have been read.
  private(set) var offset = 0

  init(_ pattern: String) {
    scalars = pattern.unicodeScalars.map(\.value)
  }

  func peek(_ distance: Int = 0) -> UInt32? {
    offset + distance < scalars.count ? scalars[offset + distance] : nil
  }

  mutating func advance(_ count: Int = 1) {
    offset = min(offset + count, scalars.count)
  }

  /// Consumes `text` if it comes next; returns true if it did.
  mutating func skip(_ text: StaticString) -> Bool {
    let matches = text.withUTF8Buffer { bytes in
      bytes.indices.allSatisfy { peek($0) == UInt32(bytes[$0]) }
    }
    if matches { advance(text.utf8CodeUnitCount) }
    return matches
  }

  // MARK: - Escapes

  /// Consumes an escape of one scalar, such as `\n`, `\x{61}` or `\.`.
  mutating func escapedScalar(from start: Int) throws(PatternError) -> UInt32 {
    guard let scalar = peek(1) else {
      throw PatternError(message: "trailing \\ at end of expression", offset: start)
    }
    advance(2)
    switch scalar {
    case "a": return 0x07
    case "f": return 0x0C
    case "n": return 0x0A
    case "r": return 0x0D
    case "t": return 0x09
    case "v": return 0x0B
    case "x": return try hexadecimal(from: start)
    case 0x31...0x37:
      // A single digit would be a back reference, which RE2 does not support.
      guard let next = peek(), Self.isOctal(next) else { throw invalidEscape(start) }
      return octal(from: scalar - 0x30)
    case 0x30: return octal(from: 0)
    case 0x38, 0x39, 0x41...0x5A, 0x61...0x7A: throw invalidEscape(start)
    default: return scalar
    }
  }

  private mutating func octal(from first: UInt32) -> UInt32 {
    var value = first
    for _ in 0..<2 {
      guard let digit = peek(), Self.isOctal(digit) else { break }
      advance()
      value = value * 8 + digit - 0x30
    }
    return value
  }

  private static func isOctal(_ scalar: UInt32) -> Bool {
    (0x30...0x37).contains(scalar)
  }

  private mutating func hexadecimal(from start: Int) throws(PatternError) -> UInt32 {
    guard skip("{") else {
      guard let high = hexadecimalDigit(), let low = hexadecimalDigit() else {
        throw invalidEscape(start)
      }
      return high * 16 + low
    }
    guard var value = hexadecimalDigit() else { throw invalidEscape(start) }
    while let digit = hexadecimalDigit() {
      value = value * 16 + digit
      guard value <= 0x10FFFF else { throw invalidEscape(start) }
    }
    guard skip("}") else { throw invalidEscape(start) }
    return value
  }

  private mutating func hexadecimalDigit() -> UInt32? {
    guard let scalar = peek() else { return nil }
    let digit: UInt32
    switch scalar {
    case 0x30...0x39: digit = scalar - 0x30
    case 0x41...0x46: digit = scalar - 0x41 + 10
    case 0x61...0x66: digit = scalar - 0x61 + 10
    default: return nil
    }
    advance()
    return digit
  }

  private func invalidEscape(_ start: Int) -> PatternError {
    PatternError(message: "invalid escape sequence", offset: start)
  }

  // MARK: - Classes

  /// Consumes a class such as `\d`, or `\p` with a name.
  ///
  /// Returns nil and consumes nothing for other input.
  mutating func namedClass() throws(PatternError) -> ScalarSet.Group? {
    guard peek() == "\\", let letter = peek(1) else { return nil }
    if let ranges = UnicodeNames.perlClass(letter | 0x20) {
      advance(2)
      return ScalarSet.Group(members: .ranges(ranges), isNegated: letter & 0x20 == 0)
    }
    guard letter | 0x20 == "p" else { return nil }

    let start = offset
    advance(2)
    var isNegated = letter == "P"
    var name = ""
    if skip("{") {
      if skip("^") { isNegated.toggle() }
      guard let read = text(until: "}") else {
        throw PatternError(message: "invalid character class range", offset: start)
      }
      name = read
    } else if let scalar = peek() {
      advance()
      name = Self.string(CollectionOfOne(scalar))
    }
    guard let members = UnicodeNames.members(named: name) else {
      throw PatternError(message: "invalid character class range", offset: start)
    }
    return ScalarSet.Group(members: members, isNegated: isNegated)
  }

  /// Consumes a class in brackets.
  mutating func characterClass(ignoringCase: Bool) throws(PatternError) -> ScalarSet {
    let start = offset
    advance()
    let isNegated = skip("^")
    var ranges: [ClosedRange<UInt32>] = []
    var groups: [ScalarSet.Group] = []
    var isFirst = true
    while isFirst || peek() != "]" {
      isFirst = false
      if let group = try posixClass() {
        groups.append(group)
      } else if let group = try namedClass() {
        groups.append(group)
      } else {
        ranges.append(try range(classStart: start))
      }
    }
    advance()
    return ScalarSet(
      ranges: ranges,
      groups: groups,
      isNegated: isNegated,
      ignoresCase: ignoringCase
    )
  }

  private mutating func range(classStart: Int) throws(PatternError) -> ClosedRange<UInt32> {
    let start = offset
    let low = try classScalar(classStart: classStart)
    guard peek() == "-", let next = peek(1), next != "]" else { return low...low }
    advance()
    let high = try classScalar(classStart: classStart)
    guard low <= high else {
      throw PatternError(message: "invalid character class range", offset: start)
    }
    return low...high
  }

  private mutating func classScalar(classStart: Int) throws(PatternError) -> UInt32 {
    guard let scalar = peek() else {
      throw PatternError(message: "missing closing ]", offset: classStart)
    }
    if scalar == "\\" { return try escapedScalar(from: offset) }
    advance()
    return scalar
  }

  /// Consumes `[:name:]`; nil, with nothing consumed, for a literal bracket.
  private mutating func posixClass() throws(PatternError) -> ScalarSet.Group? {
    let start = offset
    guard peek() == "[", peek(1) == ":" else { return nil }
    // No name is longer, and the limit keeps a row of brackets from being searched to the end each
    // time.
    let lengthMax = 16
    guard
      let length = (2..<2 + lengthMax).first(where: { peek($0) == ":" && peek($0 + 1) == "]" })
    else { return nil }
    advance(2)
    let isNegated = skip("^")
    let nameLength = length - (isNegated ? 3 : 2)
    let name = nameLength > 0 ? Self.string(scalars[offset..<offset + nameLength]) : ""
    guard let ranges = UnicodeNames.posixClasses[name] else {
      throw PatternError(message: "invalid character class range", offset: start)
    }
    advance(nameLength + 2)
    return ScalarSet.Group(members: .ranges(ranges), isNegated: isNegated)
  }

  // MARK: - Counts and group heads

  /// Consumes `{n}`, `{n,}` or `{n,m}`; nil, with nothing consumed, for a literal brace.
  mutating func repetitionCount() -> (min: Int, max: Int?)? {
    let start = offset
    advance()
    if let least = number() {
      if skip("}") { return (least, least) }
      if skip(",") {
        if skip("}") { return (least, nil) }
        if let most = number(), skip("}") { return (least, most) }
      }
    }
    offset = start
    return nil
  }

  /// Consumes a number without leading zeros.
  ///
  /// A number that is too large becomes `PatternParser.repetitionsMax` plus one.
  private mutating func number() -> Int? {
    guard let first = peek(), Self.isDigit(first) else { return nil }
    if first == "0", let next = peek(1), Self.isDigit(next) { return nil }
    var value = 0
    while let digit = peek(), Self.isDigit(digit) {
      advance()
      value = min(value * 10 + Int(digit - 0x30), PatternParser.repetitionsMax + 1)
    }
    return value
  }

  private static func isDigit(_ scalar: UInt32) -> Bool {
    (0x30...0x39).contains(scalar)
  }

  /// Consumes `(?P<name>` or `(?<name>`; nil, with nothing consumed, for other input.
  mutating func groupName() throws(PatternError) -> String? {
    let start = offset
    guard !isLookBehind, skip("(?P<") || skip("(?<") else { return nil }
    guard let name = text(until: ">"), !name.isEmpty, name.utf8.allSatisfy(Self.isNameByte) else {
      throw PatternError(message: "invalid named capture group", offset: start)
    }
    return name
  }

  private var isLookBehind: Bool {
    peek(2) == "<" && (peek(3) == "=" || peek(3) == "!")
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
    default: false
    }
  }

  /// Consumes `(?flags)` or `(?flags:`; returns true if it opens a group.
  mutating func groupFlags(into flags: inout PatternParser.Flags) throws(PatternError) -> Bool {
    let start = offset
    advance(2)
    var value = true
    var hasFlag = false
    while let scalar = peek() {
      advance()
      switch scalar {
      case "i": flags.ignoresCase = value
      case "s": flags.dotMatchesNewline = value
      case "m": flags.isMultiline = value
      case "U": flags.swapsGreed = value
      case "-" where value:
        value = false
        hasFlag = false
        continue
      case ":" where value || hasFlag: return true
      case ")" where value || hasFlag: return false
      default: throw PatternError(message: "invalid perl operator", offset: start)
      }
      hasFlag = true
    }
    throw PatternError(message: "missing )", offset: start)
  }

  /// Consumes the text up to and including `end`; nil, with nothing consumed, if it does not occur.
  private mutating func text(until end: Unicode.Scalar) -> String? {
    // Names are short, and the limit keeps a row of unclosed names linear.
    let lengthMax = 256
    let limit = min(offset + lengthMax, scalars.count)
    guard let index = scalars[offset..<limit].firstIndex(of: end.value) else { return nil }
    let result = Self.string(scalars[offset..<index])
    offset = index + 1
    return result
  }

  private static func string(_ scalars: some Sequence<UInt32>) -> String {
    var result = String.UnicodeScalarView()
    result.append(contentsOf: scalars.compactMap(Unicode.Scalar.init))
    return String(result)
  }
}

/// Matches a scalar's value against a letter in a `switch`.
func ~= (pattern: Unicode.Scalar, value: UInt32) -> Bool {
  pattern.value == value
}

/// Matches a scalar's value, if there is one, against a letter in a `switch`.
func ~= (pattern: Unicode.Scalar, value: UInt32?) -> Bool {
  pattern.value == value
}

/// Returns true if there is a scalar and it equals a letter.
func == (value: UInt32?, letter: Unicode.Scalar) -> Bool {
  value == letter.value
}

/// Returns true if there is no scalar or it differs from a letter.
func != (value: UInt32?, letter: Unicode.Scalar) -> Bool {
  value != letter.value
}
