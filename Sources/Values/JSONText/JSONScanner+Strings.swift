extension JSONScanner {
  /// Consumes the string that starts at `index`.
  mutating func string() throws(JSONSyntaxError) -> String {
    let start = index
    index += 1
    skipPlain()
    guard byte == UInt8(ascii: "\"") else { return try escapedString(from: start) }
    let text = String(validating: bytes[(start + 1)..<index], as: UTF8.self)
    index += 1
    return try checked(text, from: start)
  }

  private mutating func escapedString(from start: Int) throws(JSONSyntaxError) -> String {
    var text = Array(bytes[(start + 1)..<index])
    while index < count {
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
        let plain = index
        skipPlain()
        text.append(contentsOf: bytes[plain..<index])
      }
    }
    throw JSONSyntaxError(offset: start, reason: "a string without an end")
  }

  /// Skips characters that need no unescaping.
  private mutating func skipPlain() {
    while byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { index += 1 }
  }

  private func checked(_ text: String?, from start: Int) throws(JSONSyntaxError) -> String {
    guard let text else {
      throw JSONSyntaxError(offset: start, reason: "a string that is not UTF-8")
    }
    return text
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONSyntaxError) {
    let escaped = byte
    switch escaped {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(escaped)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      index += 1
      text.append(contentsOf: UTF8.encode(try scalar()) ?? UTF8.encodedReplacementCharacter)
      return
    default: throw unexpected()
    }
    index += 1
  }

  /// Consumes one scalar: `XXXX`, or a surrogate pair `XXXX\uXXXX`.
  private mutating func scalar() throws(JSONSyntaxError) -> Unicode.Scalar {
    let start = index
    let unit = try hexUnit()
    if let scalar = Unicode.Scalar(unit) { return scalar }
    let mark = index
    if UTF16.isLeadSurrogate(unit), take("\\"), take("u") {
      let trail = try hexUnit()
      if UTF16.isTrailSurrogate(trail) {
        return UTF16.decode(UTF16.EncodedScalar([unit, trail]))
      }
    }
    guard loneSurrogates == .replaced else {
      throw JSONSyntaxError(offset: start, reason: "half of a pair of surrogates")
    }
    index = mark
    return "\u{FFFD}"
  }

  private mutating func hexUnit() throws(JSONSyntaxError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      default: throw unexpected()
      }
      unit = unit << 4 | UInt16(digit)
      index += 1
    }
    return unit
  }
}
