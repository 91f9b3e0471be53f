/// The text of a `.env` file, which keeps its comments and order when a variable changes.
struct EnvironmentFile {
  /// A variable and its location in the file.
  private struct Entry {
    var name: String
    var value: String
    /// The lines from the start of its name to the end of its value.
    var lines: Range<Int>
    var isExported: Bool
  }

  private var lines: [String]
  private var entries: [Entry] = []

  /// Parses `NAME=value` lines, with comments, `export`, quotes and escapes in double quotes.
  ///
  /// A quoted value may span lines, as a private key does. Throws `DeploymentError` with `file` and
  /// the line number for a malformed line or a reserved name.
  init(_ text: String, file: String) throws {
    lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .map(String.init)
    entries = try Self.entries(lines, file: file)
  }

  /// The values by name; if a name occurs twice, the later value counts.
  var values: [String: String] {
    Dictionary(entries.map { ($0.name, $0.value) }) { $1 }
  }

  var text: String { lines.joined(separator: "\n") }

  /// Sets a variable in its place, or at the end; throws if the name is invalid or reserved.
  mutating func set(_ name: String, _ value: String) throws {
    try Self.check(name)
    let line = "\(name)=\(Self.quoted(value))"
    if let last = entries.last(where: { $0.name == name }) {
      lines.replaceSubrange(last.lines, with: [last.isExported ? "export \(line)" : line])
    } else {
      while lines.last?.allSatisfy(\.isWhitespace) == true { lines.removeLast() }
      lines += [line, ""]
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

  private static func entries(_ lines: [String], file: String) throws -> [Entry] {
    var entries: [Entry] = []
    var next = 0
    while next < lines.count {
      let number = next
      var rest = lines[next].drop(while: \.isWhitespace)
      next += 1
      if rest.isEmpty || rest.hasPrefix("#") { continue }
      let isExported = rest.hasPrefix("export ")
      if isExported { rest = rest.dropFirst(7).drop(while: \.isWhitespace) }
      guard let equals = rest.firstIndex(of: "=") else {
        throw DeploymentError("\(file):\(number + 1): expected NAME=value.")
      }
      var name = rest[..<equals]
      while name.last?.isWhitespace == true { name.removeLast() }
      do {
        try check(String(name))
      } catch let error as DeploymentError {
        throw DeploymentError("\(file):\(number + 1): \(error.message)")
      }
      var text = String(rest[rest.index(after: equals)...])
      var value = value(text[...])
      while value == nil, next < lines.count {
        text += "\n" + lines[next]
        next += 1
        value = Self.value(text[...])
      }
      guard let value else {
        throw DeploymentError("\(file):\(number + 1): the quote is not closed.")
      }
      entries.append(
        Entry(name: String(name), value: value, lines: number..<next, isExported: isExported)
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
    var text = "\""
    for character in value {
      switch character {
      case "\"", "\\": text += "\\\(character)"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\r\n": text += "\\r\\n"
      case "\t": text += "\\t"
      default: text.append(character)
      }
    }
    return text + "\""
  }

  private static func value(_ text: Substring) -> String? {
    let text = text.drop(while: \.isWhitespace)
    guard let quote = text.first, quote == "\"" || quote == "'" else {
      // A comment after an unquoted value starts at " #".
      var previous: Character = " "
      var trimmed = text.prefix { character in
        defer { previous = character }
        return character != "#" || !previous.isWhitespace
      }
      while trimmed.last?.isWhitespace == true { trimmed.removeLast() }
      return String(trimmed)
    }
    var value = ""
    var characters = text.dropFirst()
    while let character = characters.popFirst() {
      if character == quote { return value }
      if character == "\\", quote == "\"", let escaped = characters.popFirst() {
        switch escaped {
        case "n": value.append("\n")
        case "r": value.append("\r")
        case "t": value.append("\t")
        default: value.append(escaped)
        }
      } else {
        value.append(character)
      }
    }
    return nil
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
