extension UInt64 {
  /// Sixteen hexadecimal digits in lower case, as the ids of traces and spans have them.
  package var hexDigits: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
