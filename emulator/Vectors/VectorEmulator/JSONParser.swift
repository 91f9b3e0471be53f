#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Text that is no JSON.
struct JSONSyntaxError: Error {
  /// Where, in bytes from the start.
  var offset: Int
}

/// Reads JSON; written for long lists of numbers, which are most of an upsert.
struct JSONParser {
  private let bytes: [UInt8]
  private var index = 0
  private var depth = 0

  /// Nesting beyond this is refused, so that a request cannot exhaust the stack.
  private static let depthMax = 64

  private init(_ text: some Sequence<UInt8>) {
    // The end is marked, so that reading a number stops there.
    bytes = Array(text) + [0]
  }

  /// The value that a text is.
  static func parse(_ text: some Sequence<UInt8>) throws(JSONSyntaxError) -> JSON {
    var parser = JSONParser(text)
    let value = try parser.value()
    guard parser.next() == 0, parser.index == parser.bytes.count - 1 else { throw parser.error }
    return value
  }

  private var error: JSONSyntaxError { JSONSyntaxError(offset: index) }

  /// The byte after white space, without taking it.
  private mutating func next() -> UInt8 {
    while true {
      switch bytes[index] {
      case 0x20, 0x09, 0x0A, 0x0D: index += 1
      default: return bytes[index]
      }
    }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next() == byte else { return false }
    index += 1
    return true
  }

  private mutating func value() throws(JSONSyntaxError) -> JSON {
    switch next() {
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .boolean(true))
    case UInt8(ascii: "f"): return try word("false", .boolean(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return .number(try number())
    }
  }

  private mutating func word(_ text: StaticString, _ value: JSON) throws(JSONSyntaxError) -> JSON {
    let count = text.utf8CodeUnitCount
    guard index + count < bytes.count else { throw error }
    for offset in 0..<count where bytes[index + offset] != text.utf8Start[offset] { throw error }
    index += count
    return value
  }

  private mutating func enter() throws(JSONSyntaxError) {
    index += 1
    depth += 1
    guard depth <= Self.depthMax else { throw error }
  }

  private mutating func object() throws(JSONSyntaxError) -> JSON {
    try enter()
    defer { depth -= 1 }
    var members: [String: JSON] = [:]
    if take(UInt8(ascii: "}")) { return .object(members) }
    repeat {
      guard next() == UInt8(ascii: "\"") else { throw error }
      let name = try string()
      guard take(UInt8(ascii: ":")) else { throw error }
      members[name] = try value()
    } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "}")) else { throw error }
    return .object(members)
  }

  private mutating func array() throws(JSONSyntaxError) -> JSON {
    try enter()
    defer { depth -= 1 }
    if take(UInt8(ascii: "]")) { return .array([]) }
    var numbers: [Double] = []
    var others: [JSON] = []
    repeat {
      switch next() {
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        let number = try number()
        if others.isEmpty { numbers.append(number) } else { others.append(.number(number)) }
      default:
        // Not only numbers after all.
        if !numbers.isEmpty {
          others = numbers.map { .number($0) }
          numbers = []
        }
        others.append(try value())
      }
    } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "]")) else { throw error }
    return numbers.isEmpty ? .array(others) : .numbers(numbers)
  }

  private mutating func number() throws(JSONSyntaxError) -> Double {
    let start = index
    let isNegative = bytes[index] == UInt8(ascii: "-")
    if isNegative { index += 1 }
    var digits: UInt64 = 0
    var exponent = 0
    var isExact = true
    func takeDigits(scale: Int) throws(JSONSyntaxError) {
      let first = index
      while case let digit = bytes[index] &- UInt8(ascii: "0"), digit < 10 {
        if digits < 100_000_000_000_000_000 {
          digits = digits * 10 + UInt64(digit)
          exponent -= scale
        } else {
          isExact = false
        }
        index += 1
      }
      guard index > first else { throw error }
    }
    let first = index
    try takeDigits(scale: 0)
    if bytes[first] == UInt8(ascii: "0"), index > first + 1 { throw error }
    if bytes[index] == UInt8(ascii: ".") {
      index += 1
      try takeDigits(scale: 1)
    }
    if bytes[index] | 0x20 == UInt8(ascii: "e") {
      index += 1
      if bytes[index] == UInt8(ascii: "-") || bytes[index] == UInt8(ascii: "+") { index += 1 }
      guard bytes[index] &- UInt8(ascii: "0") < 10 else { throw error }
      while bytes[index] &- UInt8(ascii: "0") < 10 { index += 1 }
      isExact = false
    }
    // Both numbers and the power of ten are doubles without rounding, so their quotient is right.
    if isExact, digits <= 1 << 53, exponent >= -22 {
      let magnitude = Double(digits) / Self.powers[-exponent]
      return isNegative ? -magnitude : magnitude
    }
    return bytes.withUnsafeBytes { raw in
      guard let base = raw.baseAddress else { return 0 }
      return strtod((base + start).assumingMemoryBound(to: CChar.self), nil)
    }
  }

  private static let powers: [Double] = (0...22).map { power in
    (0..<power).reduce(1) { product, _ in product * 10 }
  }

  private mutating func string() throws(JSONSyntaxError) -> String {
    index += 1
    let start = index
    while bytes[index] >= 0x20, bytes[index] != UInt8(ascii: "\""),
      bytes[index] != UInt8(ascii: "\\")
    {
      index += 1
    }
    var text = Array(bytes[start..<index])
    while bytes[index] != UInt8(ascii: "\"") {
      guard bytes[index] >= 0x20 else { throw error }
      if bytes[index] == UInt8(ascii: "\\") {
        index += 1
        try escape(&text)
      } else {
        text.append(bytes[index])
        index += 1
      }
    }
    index += 1
    guard let valid = String(validating: text, as: UTF8.self) else { throw error }
    return valid
  }

  private mutating func escape(_ text: inout [UInt8]) throws(JSONSyntaxError) {
    let byte = bytes[index]
    index += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      var code = UInt32(try unit())
      if (0xD800..<0xDC00).contains(code) {
        guard bytes[index] == UInt8(ascii: "\\"), bytes[index + 1] == UInt8(ascii: "u") else {
          throw error
        }
        index += 2
        let low = UInt32(try unit())
        guard (0xDC00..<0xE000).contains(low) else { throw error }
        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw error }
      text.append(contentsOf: String(Character(scalar)).utf8)
    default: throw error
    }
  }

  private mutating func unit() throws(JSONSyntaxError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let digit = Character(Unicode.Scalar(bytes[index])).hexDigitValue else { throw error }
      unit = unit << 4 | UInt16(digit)
      index += 1
    }
    return unit
  }
}
