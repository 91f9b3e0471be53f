/// The text of a `.env` file, which keeps its other lines byte for byte when a variable changes.
///
/// The text is read by Unicode scalars, because a combining mark after a quote or a `=` would make
/// one `Character` of both.
struct EnvironmentFile {
  /// A line and the characters that end it; the last line may have none.
  private struct Line {
    var text: String
    var end: String
  }

  /// A variable and its location in the file.
  private struct Entry {
    var name: String
    var value: String
    /// The lines from the start of its name to the end of its value.
    var lines: Range<Int>
    var isExported: Bool
  }

  private var lines: [Line]
  private var entries: [Entry] = []

  /// Parses `NAME=value` lines, with comments, `export`, quotes and escapes in double quotes.
  ///
  /// A quoted value may span lines, as a private key does. Throws `DeploymentError` with `file` and
  /// the line number for a malformed line or a reserved name.
  init(_ text: String, file: String) throws {
    lines = Self.lines(of: text)
    entries = try Self.entries(lines, file: file)
  }

  /// The values by name; if a name occurs twice, the later value counts.
  var values: [String: String] {
    Dictionary(entries.map { ($0.name, $0.value) }) { $1 }
  }

  var text: String { lines.map { $0.text + $0.end }.joined() }

  /// Sets a variable in its place, or at the end; throws if the name is invalid or reserved.
  mutating func set(_ name: String, _ value: String) throws {
    try Self.check(name)
    var line = Line(text: "\(name)=\(Self.quoted(value))", end: lines.first?.end ?? "")
    if let last = entries.last(where: { $0.name == name }) {
      if last.isExported { line.text = "export " + line.text }
      line.end = lines[last.lines.upperBound - 1].end
      lines.replaceSubrange(last.lines, with: [line])
    } else {
      if line.end.isEmpty { line.end = "\n" }
      if let last = lines.indices.last, lines[last].end.isEmpty { lines[last].end = line.end }
      lines.append(line)
    }
    entries = try Self.entries(lines, file: "")
  }

  /// Removes every occurrence of a variable; returns false if there is none.
  mutating func unset(_ name: String) throws -> Bool {
    let found = entries.filter { $0.name == name }
    for entry in found.reversed() { lines.removeSubrange(entry.lines) }
    entries = try Self.entries(lines, file: "")
    return !found.isEmpty
  }

  /// Throws `DeploymentError` if a variable name is malformed or reserved by the platform.
  static func check(_ name: String) throws {
    guard isName(name) else {
      throw DeploymentError(
        "\"\(name)\" is not a valid name for a variable; use letters, digits and _, no digit first."
      )
    }
    guard !isReserved(name) else {
      throw DeploymentError("\(name) is reserved for the platform; choose another name.")
    }
  }

  /// Splits a text after each `\n`, `\r\n` and `\r`, the only line ends of Firebase's reader.
  private static func lines(of text: String) -> [Line] {
    var lines: [Line] = []
    var rest = text.unicodeScalars[...]
    while !rest.isEmpty {
      let line = rest.prefix { $0 != "\n" && $0 != "\r" }
      rest = rest[line.endIndex...]
      let end = rest.prefix(rest.starts(with: "\r\n".unicodeScalars) ? 2 : 1)
      rest = rest[end.endIndex...]
      lines.append(Line(text: String(line), end: String(end)))
    }
    return lines
  }

  private static func entries(_ lines: [Line], file: String) throws -> [Entry] {
    var entries: [Entry] = []
    var next = 0
    while next < lines.count {
      let number = next
      var rest = lines[next].text.unicodeScalars.drop(while: isBlank)
      next += 1
      if rest.isEmpty || rest.first == "#" { continue }
      let isExported = rest.starts(with: "export ".unicodeScalars)
      if isExported { rest = rest.dropFirst(7).drop(while: isBlank) }
      guard let equals = rest.firstIndex(of: "=") else {
        throw DeploymentError("\(file):\(number + 1): expected NAME=value.")
      }
      let name = String(trimmingEnd(of: rest[..<equals]))
      do {
        try check(name)
      } catch let error as DeploymentError {
        throw DeploymentError("\(file):\(number + 1): \(error.message)")
      }
      var text = String.UnicodeScalarView(rest[rest.index(after: equals)...])
      var value = value(text[...])
      while value == nil, next < lines.count {
        text.append("\n")
        text.append(contentsOf: lines[next].text.unicodeScalars)
        next += 1
        value = Self.value(text[...])
      }
      guard let value else {
        throw DeploymentError("\(file):\(number + 1): the quote is not closed.")
      }
      entries.append(
        Entry(name: name, value: value, lines: number..<next, isExported: isExported)
      )
    }
    return entries
  }

  /// Formats a value so that it reads back unchanged.
  private static func quoted(_ value: String) -> String {
    let isPlain =
      !value.isEmpty
      && value.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
          || "_./:@%+,=-".utf8.contains(byte)
      }
    if isPlain { return value }
    var text = "\"".unicodeScalars
    for scalar in value.unicodeScalars {
      let escape: Unicode.Scalar? =
        switch scalar {
        case "\"", "\\": scalar
        case "\n": "n"
        case "\r": "r"
        case "\t": "t"
        default: nil
        }
      if escape != nil { text.append("\\") }
      text.append(escape ?? scalar)
    }
    text.append("\"")
    return String(text)
  }

  private static func value(_ text: Substring.UnicodeScalarView) -> String? {
    let text = text.drop(while: isBlank)
    guard let quote = text.first, quote == "\"" || quote == "'" else {
      // A comment after an unquoted value starts at " #".
      var previous: Unicode.Scalar = " "
      let value = text.prefix { scalar in
        defer { previous = scalar }
        return scalar != "#" || !isBlank(previous)
      }
      return String(trimmingEnd(of: value))
    }
    var value = "".unicodeScalars
    var scalars = text.dropFirst()
    while let scalar = scalars.popFirst() {
      if scalar == quote { return String(value) }
      if scalar == "\\", quote == "\"", let escaped = scalars.popFirst() {
        switch escaped {
        case "n": value.append("\n")
        case "r": value.append("\r")
        case "t": value.append("\t")
        case "v": value.append("\u{B}")
        case "\"", "'", "\\": value.append(escaped)
        default: value.append(contentsOf: ["\\", escaped])
        }
      } else {
        value.append(scalar)
      }
    }
    return nil
  }

  private static func trimmingEnd(
    of text: Substring.UnicodeScalarView
  ) -> Substring.UnicodeScalarView {
    var text = text
    while let last = text.last, isBlank(last) { text.removeLast() }
    return text
  }

  /// Returns true for the white space of Firebase's reader: that of JavaScript.
  ///
  /// It includes the byte order mark that some editors write at the start of a file.
  private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "\u{FEFF}" || (scalar.properties.isWhitespace && scalar != "\u{85}")
  }

  private static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
    return text.utf8.allSatisfy {
      (65...90).contains($0) || (97...122).contains($0) || (48...57).contains($0) || $0 == 95
    }
  }

  /// True if a name has one of Firebase's reserved prefixes, or is set by the server.
  private static func isReserved(_ name: String) -> Bool {
    ["X_GOOGLE_", "FIREBASE_", "EXT_", "KIT_", "HEARTH_"].contains(where: name.hasPrefix)
      || [
        "FUNCTION_TARGET", "FUNCTION_SIGNATURE_TYPE", "FUNCTIONS_EMULATOR", "K_SERVICE",
        "K_REVISION", "PORT", "FUNCTION_MEMORY_MB", "GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT", "TZ",
        "FUNCTIONS_MANIFEST_OUTPUT_PATH",
      ].contains(name)
  }
}
