import Foundation
import JSONText

/// JSON from the command line: the text itself, `@FILE`, or `-` for stdin.
enum JSONInput {
  /// Returns the bytes of valid JSON; throws a usage failure that names the option otherwise.
  static func read(_ text: String, option: String) throws -> [UInt8] {
    let bytes: [UInt8]
    if text == "-" {
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
      remedy: isTyped ? "Quote it for the shell: \(option) '{\"key\": \"value\"}'" : "Correct it."
    )
    return bytes
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
    let remedy = #"Write it as '{"role": "trainer"}'."#
    let bytes = Array(text.utf8)
    try check(bytes, name: "\(option) must be a JSON object, and", remedy: remedy)
    guard try jsonMembersInOrder(of: bytes) != nil else {
      throw CommandError("\(option) must be a JSON object. \(remedy)", .usage)
    }
  }
}
