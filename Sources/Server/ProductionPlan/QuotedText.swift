/// Texts of an author, written so that another language reads them unchanged.
enum QuotedText {
  /// Returns a literal of HCL, in which nothing is a template.
  static func hcl(_ text: String) -> String {
    var quoted = "\""
    let scalars = Array(text.unicodeScalars)
    for (index, scalar) in scalars.enumerated() {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case "\r": quoted += "\\r"
      case "\t": quoted += "\\t"
      case "$", "%":
        quoted.unicodeScalars.append(scalar)
        if index + 1 < scalars.count, scalars[index + 1] == "{" {
          quoted.unicodeScalars.append(scalar)
        }
      case _ where scalar.value < 32 || scalar.value == 127:
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }

  /// Returns one word of a POSIX shell; plain words stay as they are.
  static func shell(_ text: String) -> String {
    let isPlain =
      !text.isEmpty
      && text.utf8.allSatisfy { byte in
        (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
          || "-_./:=@,+".utf8.contains(byte)
      }
    guard !isPlain else { return text }
    return "'" + replacing("'", with: "'\\''", in: text) + "'"
  }

  /// Returns a list of a gcloud flag, with a separator that is in none of its parts.
  static func gcloudList(_ parts: [String]) -> String {
    let separator = gcloudSeparator(of: parts)
    let list = parts.joined(separator: separator)
    return separator == "," ? list : "^\(separator)^\(list)"
  }

  /// Returns a separator that is in none of the parts: a comma, or tildes and a number sign.
  static func gcloudSeparator(of parts: [String]) -> String {
    let isPlain =
      parts.allSatisfy { !$0.utf8.contains(UInt8(ascii: ",")) }
      && parts.first?.utf8.first != UInt8(ascii: "^")
    guard !isPlain else { return "," }
    // One more tilde than any part has in a row is in none of them.
    return String(repeating: "~", count: 1 + (parts.map(longestRunOfTildes).max() ?? 0)) + "#"
  }

  private static func longestRunOfTildes(_ text: String) -> Int {
    var (longest, current) = (0, 0)
    for byte in text.utf8 {
      current = byte == UInt8(ascii: "~") ? current + 1 : 0
      longest = max(longest, current)
    }
    return longest
  }

  /// Returns a string of JSON.
  static func json(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\n": quoted += "\\n"
      case _ where scalar.value < 32:
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }

  /// Returns a part of a URL's path, in which everything but plain characters is escaped.
  static func pathPart(_ text: String) -> String {
    text.utf8.map { byte in
      let isPlain =
        (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
        || "-_.~".utf8.contains(byte)
      guard !isPlain else { return String(UnicodeScalar(byte)) }
      return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }.joined()
  }

  /// Returns the value of a variable so that Cloud Run expands nothing in it.
  ///
  /// Cloud Run expands as Kubernetes does, in `third_party/forked/golang/expansion`: `$(NAME)` is
  /// the value of a variable, `$$` is `$` wherever it is, and any other `$` is itself. So a `$` is
  /// doubled before another one and before a parenthesis.
  static func withoutExpansion(_ value: String) -> String {
    var text = ""
    let scalars = Array(value.unicodeScalars)
    for (index, scalar) in scalars.enumerated() {
      if scalar == "$", index + 1 < scalars.count, "$(".unicodeScalars.contains(scalars[index + 1])
      {
        text += "$"
      }
      text.unicodeScalars.append(scalar)
    }
    return text
  }

  /// Replaces a scalar; unlike a character, it also matches before a combining mark.
  private static func replacing(
    _ scalar: Unicode.Scalar,
    with replacement: String,
    in text: String
  ) -> String {
    var result = ""
    for found in text.unicodeScalars {
      if found == scalar { result += replacement } else { result.unicodeScalars.append(found) }
    }
    return result
  }

  /// Returns a comment's text on one line.
  static func comment(_ text: String) -> String {
    String(text.map { $0.isNewline || $0 == "\0" ? " " : $0 })
  }

  /// Returns a finite number without an exponent, with as many digits as it needs to read back.
  ///
  /// A number above 0 is never written as 0.
  static func number(_ number: Double) -> String {
    let parts = "\(number.magnitude)".split(separator: "e")
    let halves = parts[0].split(separator: ".")
    let exponent = parts.count == 2 ? Int(parts[1]) ?? 0 : 0
    // The digits, and the number of them before the point.
    var digits = halves.joined()
    var point = halves[0].count + exponent
    if point < 1 {
      digits = String(repeating: "0", count: 1 - point) + digits
      point = 1
    }
    digits += String(repeating: "0", count: max(point - digits.count, 0))
    let fraction = String(digits.dropFirst(point).reversed().drop { $0 == "0" }.reversed())
    let sign = number < 0 ? "-" : ""
    return sign + digits.prefix(point) + (fraction.isEmpty ? "" : "." + fraction)
  }

  /// Returns a duration, such as `0.1s`, in Google's precision of a nanosecond.
  static func seconds(_ seconds: Double) -> String {
    number((seconds * 1_000_000_000).rounded() / 1_000_000_000) + "s"
  }
}
