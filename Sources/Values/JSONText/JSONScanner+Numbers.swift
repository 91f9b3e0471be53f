extension JSONScanner {
  /// Whether the next token can only be a number.
  @inline(__always) var isAtNumber: Bool { isAtDigit || byte == UInt8(ascii: "-") }

  @inline(__always) private var isAtDigit: Bool { byte &- UInt8(ascii: "0") < 10 }

  /// Takes the number that starts here.
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

  // Most of an upsert of vectors is read here: the index is kept in a register, not in `self`.
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
      // The bound is far beyond what `Digits` scales by; more digits would overflow.
      if exponent < 100_000 { exponent = exponent * 10 + Int(byte &- UInt8(ascii: "0")) }
      index += 1
    } while isAtDigit
    return isNegative ? -exponent : exponent
  }

  /// The double nearest to a number's text; infinite beyond the range.
  ///
  /// Not by `strtod`, for which the process's locale decides what separates the decimals.
  private func rounded(_ text: Range<Int>) -> Double {
    // A number has been scanned, so the text is one.
    Double(String(decoding: bytes[text], as: UTF8.self)) ?? 0
  }
}

/// The digits of a number, without their point.
private struct Digits {
  private var value: UInt64 = 0
  // Whether there were too many digits for the value to hold.
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

  /// The integer; nil for -0 and for one that 64 bits do not hold.
  func integer(isNegative: Bool) -> JSONNumber? {
    guard !isCut else { return nil }
    guard isNegative else {
      return Int64(exactly: value).map(JSONNumber.integer) ?? .unsigned(value)
    }
    guard value > 0, value <= Int64.min.magnitude else { return nil }
    return .integer(Int64(truncatingIfNeeded: 0 &- value))
  }

  /// The digits times a power of ten; nil unless the double is sure to be the nearest.
  ///
  /// It is sure when both factors are exact doubles, so that only their product is rounded.
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

  /// The powers of ten that are exact doubles.
  private static let powers: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
    1e18, 1e19, 1e20, 1e21, 1e22,
  ]
}
