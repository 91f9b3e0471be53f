extension JSONScanner {
  /// True if the next token can only be a number.
  @inline(__always) var isAtNumber: Bool { isAtDigit || byte == UInt8(ascii: "-") }

  @inline(__always) private var isAtDigit: Bool { byte &- UInt8(ascii: "0") < 10 }

  /// Consumes the number that starts at `index`.
  mutating func number() throws(JSONSyntaxError) -> JSONNumber {
    let start = index
    let isNegative = take("-")
    var digits = Digits()
    if !take("0") { try takeDigits(into: &digits) }
    var isInteger = true
    var exponent = 0
    if take(".") {
      isInteger = false
      let point = index
      try takeDigits(into: &digits)
      exponent = point - index
    }
    if take("e") || take("E") {
      isInteger = false
      exponent += try takeExponent()
    }
    if isInteger, let integer = digits.integer(isNegative: isNegative) { return integer }
    if let magnitude = digits.scaled(by: exponent) {
      return .double(isNegative ? -magnitude : magnitude)
    }
    return .double(rounded(start..<index))
  }

  // Most of the time of a vector upsert is spent here, so the index is in a register, not in
  // `self`.
  @inline(__always)
  private mutating func takeDigits(into digits: inout Digits) throws(JSONSyntaxError) {
    guard isAtDigit else { throw unexpected() }
    var end = index
    var taken = digits
    while end < count, case let digit = bytes[end] &- UInt8(ascii: "0"), digit < 10 {
      taken.append(digit)
      end += 1
    }
    digits = taken
    index = end
  }

  private mutating func takeExponent() throws(JSONSyntaxError) -> Int {
    let isNegative = take("-")
    if !isNegative { _ = take("+") }
    guard isAtDigit else { throw unexpected() }
    var exponent = 0
    repeat {
      // The limit is far beyond the range of `Digits.scaled`; more digits would overflow.
      if exponent < 100_000 { exponent = exponent * 10 + Int(byte &- UInt8(ascii: "0")) }
      index += 1
    } while isAtDigit
    return isNegative ? -exponent : exponent
  }

  /// Returns the double nearest to a number's text; infinite beyond the range.
  ///
  /// It does not use `strtod`, whose decimal separator depends on the process's locale.
  private func rounded(_ text: Range<Int>) -> Double {
    // The text has been scanned as a number, so the conversion does not fail.
    Double(String(decoding: bytes[text], as: UTF8.self)) ?? 0
  }
}

/// The digits of a number, without its decimal point.
private struct Digits {
  private var value: UInt64 = 0
  // True if the number has more digits than the value can hold.
  private var isCut = false

  @inline(__always)
  mutating func append(_ digit: UInt8) {
    if value < 1_000_000_000_000_000_000 {
      value = value * 10 + UInt64(digit)
    } else if let next = Self.appending(digit, to: value), !isCut {
      value = next
    } else {
      isCut = true
    }
  }

  /// Returns the integer; nil for -0 and for an integer beyond 64 bits.
  func integer(isNegative: Bool) -> JSONNumber? {
    guard !isCut else { return nil }
    guard isNegative else {
      return Int64(exactly: value).map(JSONNumber.integer) ?? .unsigned(value)
    }
    guard value > 0, value <= Int64.min.magnitude else { return nil }
    return .integer(Int64(truncatingIfNeeded: 0 &- value))
  }

  /// Returns the digits times a power of ten; nil if the double may not be the nearest.
  ///
  /// The result is the nearest double if both factors are exact doubles, because then only their
  /// product is rounded.
  func scaled(by exponent: Int) -> Double? {
    guard !isCut, value <= 1 << 53, Self.powers.indices.contains(abs(exponent)) else { return nil }
    let power = Self.powers[abs(exponent)]
    return exponent < 0 ? Double(value) / power : Double(value) * power
  }

  private static func appending(_ digit: UInt8, to value: UInt64) -> UInt64? {
    let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
    let (sum, carry) = tens.addingReportingOverflow(UInt64(digit))
    return overflow || carry ? nil : sum
  }

  /// The powers of ten that a double represents exactly.
  private static let powers: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
    1e18, 1e19, 1e20, 1e21, 1e22,
  ]
}
