/// The conversions `int()`, `float()`, `string()` and `path()`.
enum RuleConversions {
  static func convert(
    _ value: RuleValue,
    to function: GlobalFunction
  ) throws(OperationError) -> RuleValue {
    switch (function, value) {
    case (.int, .int): return value
    case (.int, .float(let number)): return .int(whole(number))
    case (.int, .string(let text)):
      guard let number = Int64(text) else { break }
      return .int(number)
    case (.float, .float): return value
    case (.float, .int(let number)): return .float(Double(number))
    case (.float, .string(let text)):
      guard
        text.utf8.allSatisfy({ "+-.0123456789eE".utf8.contains($0) })
          || ["NaN", "Infinity", "+Infinity", "-Infinity"].contains(text),
        let number = Double(text)
      else { break }
      return .float(number)
    case (.path, .string(let text)): return .path(try RulePath(template: text))
    case (.string, _):
      guard let text = text(value) else { break }
      return .string(text)
    default: break
    }
    throw .unsupported("\(function.rawValue)(\(value.typeName))")
  }

  /// Truncates a number to an integer.
  ///
  /// Numbers out of range become the nearest `Int64`, and NaN becomes 0.
  static func whole(_ number: Double) -> Int64 {
    if number.isNaN { return 0 }
    if number >= 0x1p63 { return .max }
    return number < -0x1p63 ? .min : Int64(number)
  }

  /// Returns a value as a string; nil for a type without a string form.
  ///
  /// Paths and `join` use the same conversion.
  static func text(_ value: RuleValue) -> String? {
    switch value {
    case .string(let text): text
    case .bool(let bool): String(bool)
    case .int(let number): String(number)
    case .float(let number): text(number)
    case .null: "null"
    case .path(let path): path.segments.isEmpty ? "/" : path.text
    default: nil
    }
  }

  /// Formats a number as Java does.
  ///
  /// It uses an exponent from ten million on and below one thousandth.
  private static func text(_ number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    if number == 0 || (1e-3..<1e7).contains(number.magnitude) { return String(number) }
    // The digits of Swift's format, with the point moved behind the first digit.
    let parts = String(number.magnitude).split(separator: "e")
    let plain = parts[0].split(separator: ".")
    var exponent = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
    var digits = String(plain[0]) + (plain.count > 1 && plain[1] != "0" ? plain[1] : "")
    exponent += plain[0].count - 1
    while digits.hasPrefix("0") {
      digits.removeFirst()
      exponent -= 1
    }
    while digits.count > 1, digits.hasSuffix("0") { digits.removeLast() }
    let rest = digits.dropFirst()
    return (number < 0 ? "-" : "") + digits.prefix(1) + "." + (rest.isEmpty ? "0" : rest)
      + "E\(exponent)"
  }
}

extension RulePath {
  /// Parses the path in a string, with or without a leading slash.
  fileprivate init(template text: String) throws(OperationError) {
    // The string is split by bytes, because a slash and a combining mark form one `Character`.
    let slash = UInt8(ascii: "/")
    var rest = Array(text.utf8)[...]
    if rest.first == slash { rest = rest.dropFirst() }
    let parts = rest.split(separator: slash, omittingEmptySubsequences: false)
    guard !parts.contains(where: \.isEmpty) else {
      throw OperationError(
        message: "Invalid Path Template \(text). Empty segment is not allowed."
      )
    }
    self.init(parts.map { String(decoding: $0, as: UTF8.self) })
    hasPlaceholders = segments.contains { $0.hasPrefix("{") && $0.hasSuffix("}") }
  }
}
