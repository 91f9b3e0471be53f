#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The `.env` files of a functions source, as Firebase's tools read them.
package struct UserEnvironment: Sendable, Hashable {
  /// What every function sees.
  package var variables: [String: String]
  /// What only the functions that declare a secret see, from `.secret.local`.
  package var secrets: [String: String]

  /// Reads `.env`, `.env.{project}`, `.env.local` and `.secret.local`, later ones winning.
  ///
  /// Missing files are empty. Throws `DeploymentError` naming file and line for a malformed line
  /// and for a reserved name.
  package init(folder: String, project: String) throws {
    variables = [:]
    for name in [".env", ".env.\(project)", ".env.local"] {
      variables.merge(try Self.read(name, in: folder)) { $1 }
    }
    secrets = try Self.read(".secret.local", in: folder)
  }

  private static func read(_ name: String, in folder: String) throws -> [String: String] {
    let path = folder + "/" + name
    guard FileManager.default.fileExists(atPath: path) else { return [:] }
    guard let text = try? String(contentsOf: URL(filePath: path), encoding: .utf8) else {
      throw DeploymentError("\(path) is unreadable or not UTF-8.")
    }
    return try parse(text, file: path)
  }

  /// Reads `NAME=value` lines: comments, `export`, single and double quotes, `\n` in double ones.
  ///
  /// A quoted value may span lines, as a private key does.
  static func parse(_ text: String, file: String) throws -> [String: String] {
    var values: [String: String] = [:]
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    var next = 0
    while next < lines.count {
      let number = next
      let line = lines[next]
      next += 1
      var rest = line.drop(while: \.isWhitespace)
      if rest.isEmpty || rest.hasPrefix("#") { continue }
      if rest.hasPrefix("export ") { rest = rest.dropFirst(7).drop(while: \.isWhitespace) }
      guard let equals = rest.firstIndex(of: "=") else {
        throw DeploymentError("\(file):\(number + 1): expected NAME=value.")
      }
      var name = rest[..<equals]
      while name.last?.isWhitespace == true { name.removeLast() }
      let key = String(name)
      guard isName(key) else {
        throw DeploymentError("\(file):\(number + 1): \"\(key)\" is no name for a variable.")
      }
      guard !isReserved(key) else {
        throw DeploymentError(
          "\(file):\(number + 1): \(key) is reserved for the platform; choose another name."
        )
      }
      var text = rest[rest.index(after: equals)...]
      var value = value(text)
      while value == nil, next < lines.count {
        text += "\n" + lines[next]
        next += 1
        value = Self.value(text)
      }
      guard let value else {
        throw DeploymentError("\(file):\(number + 1): the quote is not closed.")
      }
      values[key] = value
    }
    return values
  }

  private static func value(_ text: Substring) -> String? {
    let text = text.drop(while: \.isWhitespace)
    guard let quote = text.first, quote == "\"" || quote == "'" else {
      // A comment after a bare value starts at " #".
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

  /// Firebase's reserved prefixes, and the names that a worker gets from the server.
  private static func isReserved(_ name: String) -> Bool {
    ["X_GOOGLE_", "FIREBASE_", "EXT_", "KIT_", "HEARTH_"].contains(where: name.hasPrefix)
      || [
        "FUNCTION_TARGET", "FUNCTION_SIGNATURE_TYPE", "FUNCTIONS_EMULATOR", "K_SERVICE",
        "K_REVISION", "PORT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT", "TZ",
        "FUNCTIONS_MANIFEST_OUTPUT_PATH",
      ].contains(name)
  }
}
