import DocumentModel

/// Why a text is not JSON.
struct JSONSyntaxError: Error, Equatable {
  var offset: Int
  var reason: String
}

/// Reads JSON (RFC 8259) into values: the only JSON types are null, booleans, numbers, text, arrays
/// and maps.
///
/// Integers stay exact: up to `Int64` as integers, above as the map that stands for a wrapped
/// `UInt64`. Of two equal keys the last counts, as in JavaScript.
struct JSONReader {
  // Beyond this a client is probing, not calling; it also bounds the recursion on small stacks.
  static let depthMax = 128

  private let bytes: UnsafeRawBufferPointer
  private var index = 0
  private var sawWrapper = false

  /// Reads one value that fills the whole text; wrapped integers are unwrapped.
  ///
  /// Throws `JSONSyntaxError`, or `ValueCodingError` for an `@type` that is not known. Where `@type`
  /// has other meanings, as in the events of audit logs, nothing is unwrapped.
  static func read(
    _ bytes: some Sequence<UInt8>,
    unwrapsIntegers: Bool = true
  ) throws -> Value {
    func read(_ buffer: UnsafeRawBufferPointer) throws -> Value {
      var reader = JSONReader(bytes: buffer)
      let value = try reader.document()
      return reader.sawWrapper && unwrapsIntegers ? try value.unwrappingIntegers(at: "") : value
    }
    let result = try bytes.withContiguousStorageIfAvailable {
      try read(UnsafeRawBufferPointer($0))
    }
    if let result { return result }
    return try Array(bytes).withUnsafeBytes(read)
  }

  /// The members of a text that is one object, each as it was written; nil for other JSON.
  ///
  /// For what is passed on as it came: no number loses a digit and no key its place.
  static func members(
    of text: some Collection<UInt8>
  ) throws(JSONSyntaxError) -> [String: [UInt8]]? {
    let text = Array(text)
    var members: [String: [UInt8]]?
    let end: Result<Void, JSONSyntaxError> = text.withUnsafeBytes { buffer in
      var reader = JSONReader(bytes: buffer)
      reader.skipSpace()
      let isObject = reader.peek() == UInt8(ascii: "{")
      do throws(JSONSyntaxError) {
        var ranges: [String: Range<Int>] = [:]
        _ = try isObject ? reader.map(depth: 0) { ranges[$0] = $1 } : reader.value(depth: 0)
        reader.skipSpace()
        guard reader.index == buffer.count else { throw reader.unexpected() }
        if isObject { members = ranges.mapValues { Array(text[$0]) } }
        return .success(())
      } catch {
        return .failure(error)
      }
    }
    try end.get()
    return members
  }

  private init(bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  private mutating func document() throws(JSONSyntaxError) -> Value {
    skipSpace()
    let value = try self.value(depth: 0)
    skipSpace()
    guard index == bytes.count else { throw unexpected() }
    return value
  }

  private mutating func value(depth: Int) throws(JSONSyntaxError) -> Value {
    guard depth <= Self.depthMax else {
      throw JSONSyntaxError(offset: index, reason: "nested more than \(Self.depthMax) levels deep")
    }
    switch peek() {
    case UInt8(ascii: "{"): return try map(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try literal("true", .boolean(true))
    case UInt8(ascii: "f"): return try literal("false", .boolean(false))
    case UInt8(ascii: "n"): return try literal("null", .null)
    default: return try number()
    }
  }

  private mutating func map(
    depth: Int,
    onMember: (_ key: String, _ place: Range<Int>) -> Void = { _, _ in }
  ) throws(JSONSyntaxError) -> Value {
    index += 1
    var fields: [String: Value] = [:]
    skipSpace()
    if take("}") { return .map(fields) }
    repeat {
      skipSpace()
      guard peek() == UInt8(ascii: "\"") else { throw unexpected() }
      let key = try string()
      if key == "@type" { sawWrapper = true }
      skipSpace()
      guard take(":") else { throw unexpected() }
      skipSpace()
      let start = index
      fields[key] = try value(depth: depth + 1)
      onMember(key, start..<index)
      skipSpace()
    } while take(",")
    guard take("}") else { throw unexpected() }
    return .map(fields)
  }

  private mutating func array(depth: Int) throws(JSONSyntaxError) -> Value {
    index += 1
    var elements: [Value] = []
    skipSpace()
    if take("]") { return .array(elements) }
    repeat {
      skipSpace()
      elements.append(try value(depth: depth + 1))
      skipSpace()
    } while take(",")
    guard take("]") else { throw unexpected() }
    return .array(elements)
  }

  private mutating func literal(
    _ word: StaticString,
    _ value: Value
  ) throws(JSONSyntaxError) -> Value {
    for offset in 0..<word.utf8CodeUnitCount {
      guard peek() == word.utf8Start[offset] else { throw unexpected() }
      index += 1
    }
    return value
  }

  private mutating func number() throws(JSONSyntaxError) -> Value {
    let start = index
    let isNegative = take("-")
    var isInteger = true
    if !take("0") {
      guard digits() > 0 else { throw unexpected() }
    }
    if take(".") {
      isInteger = false
      guard digits() > 0 else { throw unexpected() }
    }
    if take("e") || take("E") {
      isInteger = false
      _ = take("+") || take("-")
      guard digits() > 0 else { throw unexpected() }
    }
    let text = String(decoding: bytes[start..<index], as: UTF8.self)
    if isInteger {
      if let integer = Int64(text), !(isNegative && integer == 0) { return .integer(integer) }
      if !isNegative, UInt64(text) != nil {
        return WrappedInteger.map(WrappedInteger.unsigned, text)
      }
    }
    guard let double = Double(text), double.isFinite else {
      throw JSONSyntaxError(offset: start, reason: "a number beyond the range of a double")
    }
    return .double(double)
  }

  private mutating func digits() -> Int {
    let start = index
    while let byte = peek(), (48...57).contains(byte) { index += 1 }
    return index - start
  }

  private mutating func string() throws(JSONSyntaxError) -> String {
    let start = index
    index += 1
    while let byte = peek(), byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 {
      index += 1
    }
    if peek() == UInt8(ascii: "\"") {
      let text = String(validating: bytes[(start + 1)..<index], as: UTF8.self)
      index += 1
      return try checked(text, from: start)
    }
    return try escapedString(from: start)
  }

  private mutating func escapedString(from start: Int) throws(JSONSyntaxError) -> String {
    var text = Array(bytes[(start + 1)..<index])
    while let byte = peek() {
      switch byte {
      case UInt8(ascii: "\""):
        index += 1
        return try checked(String(validating: text, as: UTF8.self), from: start)
      case UInt8(ascii: "\\"):
        index += 1
        try escape(into: &text)
      case 0..<0x20:
        throw JSONSyntaxError(offset: index, reason: "a control character within a string")
      default:
        text.append(byte)
        index += 1
      }
    }
    throw JSONSyntaxError(offset: start, reason: "a string without an end")
  }

  private func checked(_ text: String?, from start: Int) throws(JSONSyntaxError) -> String {
    guard let text else {
      throw JSONSyntaxError(offset: start, reason: "a string that is not UTF-8")
    }
    return text
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONSyntaxError) {
    guard let byte = peek() else { throw unexpected() }
    index += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(8)
    case UInt8(ascii: "f"): text.append(12)
    case UInt8(ascii: "n"): text.append(10)
    case UInt8(ascii: "r"): text.append(13)
    case UInt8(ascii: "t"): text.append(9)
    case UInt8(ascii: "u"): text.append(contentsOf: Array(String(try scalar()).utf8))
    default:
      index -= 1
      throw unexpected()
    }
  }

  /// One scalar from `XXXX` or from a pair of surrogates.
  ///
  /// A lone surrogate becomes U+FFFD: JavaScript can send one, and Swift's strings cannot hold it.
  private mutating func scalar() throws(JSONSyntaxError) -> Unicode.Scalar {
    let unit = try hexUnit()
    if let scalar = Unicode.Scalar(unit) { return scalar }
    let mark = index
    if UTF16.isLeadSurrogate(unit), take("\\"), take("u") {
      let trail = try hexUnit()
      if UTF16.isTrailSurrogate(trail) {
        return UTF16.decode(UTF16.EncodedScalar([unit, trail]))
      }
    }
    index = mark
    return "\u{FFFD}"
  }

  private mutating func hexUnit() throws(JSONSyntaxError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let digit = peek().flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else {
        throw unexpected()
      }
      unit = unit << 4 | UInt16(digit)
      index += 1
    }
    return unit
  }

  private func peek() -> UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek() == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  private mutating func skipSpace() {
    while let byte = peek(), byte == 32 || byte == 10 || byte == 13 || byte == 9 { index += 1 }
  }

  private func unexpected() -> JSONSyntaxError {
    JSONSyntaxError(
      offset: index,
      reason: index < bytes.count ? "an unexpected character" : "an unexpected end"
    )
  }
}

extension Value {
  /// The value with each wrapped integer, at any depth, replaced by the integer.
  fileprivate func unwrappingIntegers(at path: String) throws(ValueCodingError) -> Value {
    switch self {
    case .array(let elements):
      var result: [Value] = []
      for (index, element) in elements.enumerated() {
        result.append(try element.unwrappingIntegers(at: "\(path)[\(index)]"))
      }
      return .array(result)
    case .map(let fields):
      if let type = fields["@type"] { return try Self.unwrapped(type, fields["value"], at: path) }
      var result = fields
      for (key, field) in fields {
        result[key] = try field.unwrappingIntegers(at: path.isEmpty ? key : "\(path).\(key)")
      }
      return .map(result)
    default:
      return self
    }
  }

  private static func unwrapped(
    _ type: Value,
    _ value: Value?,
    at path: String
  ) throws(ValueCodingError) -> Value {
    let known = [WrappedInteger.signed, WrappedInteger.unsigned].map(Value.string)
    guard known.contains(type) else {
      throw ValueCodingError(
        path: path,
        reason: "has an unknown '@type'; only wrapped Int64Value and UInt64Value are understood"
      )
    }
    // Text, as Google's JSON has it; a bare number is as good, where a client sends one.
    let text: String? =
      switch value {
      case .string(let digits): digits
      case .integer(let integer): String(integer)
      default: nil
      }
    if let digits = text {
      if type == known[0], let integer = Int64(digits) { return .integer(integer) }
      if type == known[1], let integer = UInt64(digits) {
        return Int64(exactly: integer).map(Value.integer)
          ?? WrappedInteger.map(WrappedInteger.unsigned, String(integer))
      }
    }
    throw ValueCodingError(path: path, reason: "wraps an integer whose 'value' is not its digits")
  }
}
