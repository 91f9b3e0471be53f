import StatusCodes

/// A JSON reader that is as lenient as Google's front ends and reports the same errors.
///
/// It accepts single quotes, bare keys, commas before a closing bracket and control characters in
/// strings. The accepted input and the error messages follow protobuf's `JsonStreamParser`, whose
/// responses were recorded.
struct JSONCursor {
  private let bytes: [UInt8]
  private var index = 0
  private var depth = 0

  /// The maximum nesting depth of objects and arrays.
  static let depthMax = 100
  private static let contextBytes = 20

  /// The kind of the next value.
  enum Token {
    case object, array, string, number, `true`, `false`, null
  }

  /// Creates a cursor at the beginning; throws if the bytes are not UTF-8.
  init(_ bytes: [UInt8]) throws(StatusError) {
    self.bytes = bytes
    guard bytes.withUnsafeBufferPointer({ String(validating: $0, as: UTF8.self) }) != nil else {
      throw .invalidArgument(
        "Invalid JSON payload received. Encountered non UTF-8 code points."
      )
    }
  }

  // MARK: Structure

  /// Returns the kind of the next value without consuming it.
  mutating func peek() throws(StatusError) -> Token {
    skipSpace()
    guard index < bytes.count else { throw failure("Unexpected end of string. Expected a value.") }
    switch bytes[index] {
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
    case let byte where Self.isWord(byte):
      if stands("true") { return .true }
      if stands("false") { return .false }
      if stands("null") { return .null }
      throw failure("Unexpected token.")
    case UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ","), UInt8(ascii: ":"):
      throw failure("Unexpected token.")
    default: throw failure("Expected a value.")
    }
  }

  /// Consumes the opening bracket of an object.
  mutating func beginObject() throws(StatusError) { try begin() }

  /// Consumes the opening bracket of an array.
  mutating func beginArray() throws(StatusError) { try begin() }

  private mutating func begin() throws(StatusError) {
    depth += 1
    guard depth <= Self.depthMax else {
      throw failure("Message too deep. Max recursion depth reached")
    }
    index += 1
  }

  /// Consumes the next key of an object, whose value follows; nil at the end of the object.
  mutating func key(isFirst: Bool) throws(StatusError) -> ArraySlice<UInt8>? {
    skipSpace()
    if !isFirst {
      guard index < bytes.count,
        bytes[index] == UInt8(ascii: ",") || bytes[index] == UInt8(ascii: "}")
      else { throw unknown("Expected , or } after key:value pair.") }
      if bytes[index] == UInt8(ascii: ",") { index += 1 }
      skipSpace()
    }
    guard index < bytes.count else { throw unknown("Expected an object key or }.") }
    let key: ArraySlice<UInt8>
    switch bytes[index] {
    case UInt8(ascii: "}"):
      index += 1
      depth -= 1
      return nil
    case UInt8(ascii: "\""), UInt8(ascii: "'"): key = try string()
    case let byte where Self.isWord(byte): key = word()
    default: throw failure("Expected an object key or }.")
    }
    skipSpace()
    guard index < bytes.count, bytes[index] == UInt8(ascii: ":") else {
      throw unknown("Expected : between key:value pair.")
    }
    index += 1
    return key
  }

  /// Moves to the next array element and returns true; false after consuming the array's end.
  mutating func element(isFirst: Bool) throws(StatusError) -> Bool {
    skipSpace()
    if !isFirst {
      guard index < bytes.count,
        bytes[index] == UInt8(ascii: ",") || bytes[index] == UInt8(ascii: "]")
      else { throw unknown("Expected , or ] after array value.") }
      if bytes[index] == UInt8(ascii: ",") { index += 1 }
      skipSpace()
    }
    guard index < bytes.count, bytes[index] == UInt8(ascii: "]") else { return true }
    index += 1
    depth -= 1
    return false
  }

  /// Throws if anything follows the payload's value.
  mutating func end() throws(StatusError) {
    skipSpace()
    guard index == bytes.count else { throw failure("Parsing terminated before end of input.") }
  }

  /// Consumes a value of any kind.
  mutating func skip() throws(StatusError) {
    switch try peek() {
    case .object:
      try beginObject()
      var isFirst = true
      while try key(isFirst: isFirst) != nil {
        try skip()
        isFirst = false
      }
    case .array:
      try beginArray()
      var isFirst = true
      while try element(isFirst: isFirst) {
        try skip()
        isFirst = false
      }
    case .string: _ = try string()
    case .number: _ = try number()
    case .true, .null: index += 4
    case .false: index += 5
    }
  }

  // MARK: Scalars

  /// Consumes a bare key.
  private mutating func word() -> ArraySlice<UInt8> {
    let start = index
    while index < bytes.count, Self.isWord(bytes[index]) || Self.isDigit(bytes[index]) {
      index += 1
    }
    return bytes[start..<index]
  }

  /// Consumes a number and returns it as written.
  mutating func number() throws(StatusError) -> String {
    let start = index
    while index < bytes.count, Self.isOfNumber(bytes[index]) { index += 1 }
    let text = bytes[start..<index]
    let digits = text.first == UInt8(ascii: "-") ? text.dropFirst() : text
    func fail(_ words: String) -> StatusError {
      index = start
      return failure(words)
    }
    if digits.count > 1, digits.first == UInt8(ascii: "0"),
      digits.dropFirst().first.map(Self.isDigit) == true
    {
      throw fail("Octal/hex numbers are not valid JSON values.")
    }
    let spelled = String(decoding: text, as: UTF8.self)
    guard let first = digits.first, Self.isDigit(first), let value = Double(spelled) else {
      throw fail("Unable to parse number.")
    }
    guard value.isFinite else { throw fail("Number exceeds the range of double.") }
    return spelled
  }

  /// Consumes a string and returns its UTF-8 bytes.
  mutating func string() throws(StatusError) -> ArraySlice<UInt8> {
    let quote = bytes[index]
    let start = index
    index += 1
    passText(until: quote)
    var text = bytes[(start + 1)..<index]
    while index < bytes.count {
      if bytes[index] == quote {
        index += 1
        return text
      }
      index += 1
      try appendEscaped(to: &text)
      let run = index
      passText(until: quote)
      text += bytes[run..<index]
    }
    index = start
    throw failure("Expected a closing quote in string.")
  }

  private mutating func passText(until quote: UInt8) {
    while index < bytes.count, bytes[index] != quote, bytes[index] != UInt8(ascii: "\\") {
      index += 1
    }
  }

  /// Consumes the rest of an escape sequence and appends the character that it represents.
  private mutating func appendEscaped(to text: inout ArraySlice<UInt8>) throws(StatusError) {
    guard index < bytes.count else { return }
    let byte = bytes[index]
    index += 1
    switch byte {
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "v"): text.append(0x0B)
    case UInt8(ascii: "u"): text += try unicode()
    default: text.append(byte)
    }
  }

  private mutating func unicode() throws(StatusError) -> [UInt8] {
    let start = index - 2
    func fail(_ words: String) -> StatusError {
      index = start
      return failure(words)
    }
    guard let first = unit() else { throw fail("Illegal hex string.") }
    var units = [first]
    if UTF16.isLeadSurrogate(first) {
      guard index + 1 < bytes.count, bytes[index] == UInt8(ascii: "\\"),
        bytes[index + 1] == UInt8(ascii: "u")
      else { throw fail("Invalid unicode code point.") }
      index += 2
      guard let second = unit() else { throw fail("Illegal hex string.") }
      units.append(second)
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw fail("Invalid unicode code point.")
    }
    return Array(text.utf8)
  }

  /// Consumes four hexadecimal digits.
  private mutating func unit() -> UInt16? {
    guard index + 4 <= bytes.count else { return nil }
    var unit: UInt16 = 0
    for byte in bytes[index..<index + 4] {
      guard let digit = Character(UnicodeScalar(byte)).hexDigitValue else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    index += 4
    return unit
  }

  // MARK: Bytes

  private mutating func skipSpace() {
    while index < bytes.count {
      switch bytes[index] {
      case 0x20, 0x09, 0x0A, 0x0D: index += 1
      default: return
      }
    }
  }

  private func stands(_ word: String) -> Bool { bytes[index...].starts(with: word.utf8) }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func isOfNumber(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "E"),
      UInt8(ascii: "e"):
      true
    default: isDigit(byte)
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F || byte == 0x24
  }

  private func unknown(_ words: String) -> StatusError {
    failure(index == bytes.count ? "Unexpected end of string. \(words)" : words)
  }

  /// Returns an error with the text around the cursor and a mark below the cursor's position.
  private func failure(_ words: String) -> StatusError {
    var begin = index
    var end = index
    // At the end of the input, Google's front ends show no context.
    if index < bytes.count {
      begin = max(0, index - Self.contextBytes)
      end = min(bytes.count, index + Self.contextBytes)
    }
    let context = String(decoding: bytes[begin..<end], as: UTF8.self)
    let mark = String(repeating: " ", count: index - begin) + "^"
    return .invalidArgument("Invalid JSON payload received. \(words)\n\(context)\n\(mark)")
  }
}
