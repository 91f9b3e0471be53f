import Foundation
import JSONText

/// JSON from the command line: the text itself, `@FILE`, or `-` for stdin.
enum JSONInput {
  /// Returns the bytes of valid JSON; throws a usage failure that names the option otherwise.
  static func read(_ text: String, option: String) throws -> [UInt8] {
    let bytes: [UInt8]
    if text == "-" {
      // The command has nothing else to do until it has its input.
      bytes = Array(FileHandle.standardInput.readDataToEndOfFile())
    } else if text.hasPrefix("@") {
      let path = String(text.dropFirst())
      do {
        bytes = Array(try Data(contentsOf: URL(filePath: path)))
      } catch {
        throw CommandError(
          "\(option): the file \(path) cannot be read: \(error.localizedDescription)",
          .usage
        )
      }
    } else {
      bytes = Array(text.utf8)
    }
    let isTyped = text != "-" && !text.hasPrefix("@")
    try check(
      bytes,
      name: isTyped
        ? option : text == "-" ? "\(option): standard input" : "\(option): \(text.dropFirst())",
      remedy: isTyped ? remedy(for: text, option: option) : "Correct it."
    )
    return bytes
  }

  /// Returns the form to type in place of a text that is not JSON.
  private static func remedy(for text: String, option: String) -> String {
    let isPath = text.hasSuffix(".json") || FileManager.default.fileExists(atPath: text)
    return isPath && !text.isEmpty
      ? "To read a file: \(option) \(("@" + text).shellWord)"
      : "Quote it for the shell: \(option) \(shellObject(of: text))"
  }

  /// Returns the object of a text such as `role=trainer`, in quotes for the shell.
  ///
  /// For any other text, it is an example.
  static func shellObject(of text: String, example: String = #"{"key": "value"}"#) -> String {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    guard parts.count == 2, let name = parts.first, let value = parts.last,
      name.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" })
    else { return "'\(example)'" }
    // Numbers, true and false are JSON as they are.
    let isJSON = (try? check(Array(value.utf8), name: "", remedy: "")) != nil
    return ("{\(jsonQuoted(name)): \(isJSON ? value : jsonQuoted(value))}").shellWord
  }

  /// Throws a failure with the place of the error unless a text is JSON.
  static func check(
    _ bytes: [UInt8],
    name: String,
    remedy: String,
    code: Exit = .usage
  ) throws {
    do {
      _ = try jsonMembersInOrder(of: bytes)
    } catch {
      throw CommandError(
        "\(name) is not JSON: \(error.explanation(in: bytes))\n\(remedy)",
        code
      )
    }
  }

  /// Throws a usage failure unless a text is a JSON object.
  static func checkObject(_ text: String, option: String) throws {
    let form = shellObject(of: text, example: #"{"role": "trainer"}"#)
    let remedy = "Write it as \(form)."
    let bytes = Array(text.utf8)
    try check(bytes, name: "\(option) must be a JSON object; this text", remedy: remedy)
    guard try jsonMembersInOrder(of: bytes) != nil else {
      throw CommandError("\(option) must be a JSON object. \(remedy)", .usage)
    }
  }
}
