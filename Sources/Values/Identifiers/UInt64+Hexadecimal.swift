extension UInt64 {
  /// The number as sixteen lower-case hexadecimal digits, the form of trace and span ids.
  package var hexDigits: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
