/// A token of a text; the contents of a list or object follow as separate tokens.
@usableFromInline
package enum JSONToken {
  case null
  case boolean(Bool)
  /// A number and the offset at which it starts.
  case number(JSONNumber, Int)
  case string(String)
  case arrayStart
  case objectStart
}

/// The treatment of a lone surrogate, which JavaScript can send but a Swift string cannot hold.
@usableFromInline
package enum LoneSurrogates: Sendable {
  /// The surrogate becomes U+FFFD.
  case replaced
  /// The text is refused.
  case refused
}

/// A scanner that splits a text (RFC 8259) into tokens.
///
/// It keeps only its position; `JSONParser` creates the values. Other modules need only the parser.
@usableFromInline
package struct JSONScanner {
  /// The maximum nesting depth, which also limits the recursion of readers.
  ///
  /// Only a client that is probing the server exceeds it.
  package static let depthMax = 128

  let bytes: UnsafeRawBufferPointer
  // A copy, because reading a buffer's own count costs a check in each step of the loops.
  let count: Int
  let loneSurrogates: LoneSurrogates
  let valuesMax: Int
  /// The index of the next byte.
  package internal(set) var index = 0
  private var depth = 0
  private var valuesCount = 0
  // True if a list or object was opened and nothing in it has been consumed yet.
  private var isAtOpening = false

  /// Creates a scanner at the start of a text, which must outlive the scanner.
  @usableFromInline
  package init(
    _ bytes: UnsafeRawBufferPointer,
    loneSurrogates: LoneSurrogates,
    valuesMax: Int = .max
  ) {
    self.bytes = bytes
    count = bytes.count
    self.loneSurrogates = loneSurrogates
    self.valuesMax = valuesMax
  }

  /// Consumes the next token; throws if it starts more values than there may be.
  @usableFromInline
  package mutating func token() throws(JSONSyntaxError) -> JSONToken {
    skipSpace()
    guard valuesCount < valuesMax else { throw tooManyValues() }
    valuesCount += 1
    switch byte {
    case UInt8(ascii: "{"):
      try enter()
      return .objectStart
    case UInt8(ascii: "["):
      try enter()
      return .arrayStart
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .boolean(true))
    case UInt8(ascii: "f"): return try word("false", .boolean(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default:
      let start = index
      return .number(try number(), start)
    }
  }

  /// Returns true if the list has another element, which is next; false after consuming its end.
  @usableFromInline
  package mutating func hasElement() throws(JSONSyntaxError) -> Bool {
    try hasPart(before: UInt8(ascii: "]"))
  }

  /// Consumes the name of the object's next member, whose value is next; nil after its end.
  @usableFromInline
  package mutating func name() throws(JSONSyntaxError) -> String? {
    guard try hasPart(before: UInt8(ascii: "}")) else { return nil }
    skipSpace()
    guard byte == UInt8(ascii: "\"") else { throw unexpected() }
    let name = try string()
    skipSpace()
    guard take(":") else { throw unexpected() }
    skipSpace()
    return name
  }

  /// Consumes the rest of a list that was just opened, if it is not empty and has only numbers.
  ///
  /// The end of the list is consumed as well. For any other list, returns nil and consumes nothing.
  @usableFromInline
  package mutating func numbers() throws(JSONSyntaxError) -> [Double]? {
    let start = index
    var numbers: [Double] = []
    repeat {
      skipSpace()
      guard isAtNumber else {
        index = start
        return nil
      }
      guard numbers.count < valuesMax - valuesCount else { throw tooManyValues() }
      numbers.append(try number().double)
      skipSpace()
    } while take(",")
    guard take("]") else { throw unexpected() }
    valuesCount += numbers.count
    leave()
    return numbers
  }

  /// Throws if the text does not end at `index`.
  @usableFromInline
  package mutating func finish() throws(JSONSyntaxError) {
    skipSpace()
    guard index == count else { throw unexpected() }
  }

  private mutating func enter() throws(JSONSyntaxError) {
    guard depth < Self.depthMax else {
      throw JSONSyntaxError(offset: index, reason: "nested more than \(Self.depthMax) levels deep")
    }
    index += 1
    depth += 1
    isAtOpening = true
  }

  private mutating func leave() {
    depth -= 1
    isAtOpening = false
  }

  /// Consumes the separator before the next element or member; false after consuming the end.
  private mutating func hasPart(before end: UInt8) throws(JSONSyntaxError) -> Bool {
    skipSpace()
    if byte == end {
      index += 1
      leave()
      return false
    }
    guard isAtOpening || take(",") else { throw unexpected() }
    isAtOpening = false
    return true
  }

  private mutating func word(
    _ word: StaticString,
    _ token: JSONToken
  ) throws(JSONSyntaxError) -> JSONToken {
    for offset in 0..<word.utf8CodeUnitCount {
      guard byte == word.utf8Start[offset] else { throw unexpected() }
      index += 1
    }
    return token
  }

  /// The next byte; at the end it is 0, which is never valid in JSON.
  @inline(__always) var byte: UInt8 { index < count ? bytes[index] : 0 }

  @inline(__always)
  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard byte == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  @inline(__always)
  mutating func skipSpace() {
    while byte <= 0x20, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
  }

  private func tooManyValues() -> JSONSyntaxError {
    JSONSyntaxError(offset: index, reason: "a value beyond the \(valuesMax) that it may have")
  }

  func unexpected() -> JSONSyntaxError {
    JSONSyntaxError(
      offset: index,
      reason: index < count ? "an unexpected character" : "an unexpected end"
    )
  }
}
