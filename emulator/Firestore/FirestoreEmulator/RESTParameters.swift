import DocumentModel
import HTTPSupport
import JSONTranscoding
import StatusCodes
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A REST request's query parameters, taken one by one; `finish()` refuses the remaining ones.
///
/// Names may be spelled `pageSize` or `page_size`. If a parameter that is not a list is repeated,
/// its last value counts.
struct RESTParameters {
  /// The parameters for Google's front ends, which methods ignore.
  private static let ofFrontEnds: Set<String> = [
    "$.xgafv", "$alt", "$ct", "$fields", "$httpHeaders", "$prettyPrint", "access_token", "alt",
    "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "uploadType",
    "upload_protocol",
  ]

  private var values: [String: [String]] = [:]
  /// The remaining names, in the client's spelling.
  private var spelled: [String: String] = [:]

  /// Creates the parameters of one request.
  init(_ query: QueryParameters) {
    for item in query.items where !Self.ofFrontEnds.contains(item.name) {
      let name = Self.camelCase(item.name)
      values[name, default: []].append(item.value)
      spelled[name] = item.name
    }
  }

  /// Takes all values of a parameter; nil if it is absent.
  mutating func list(_ name: String) -> [String]? {
    spelled[name] = nil
    return values.removeValue(forKey: name)
  }

  /// Takes a string; empty if absent.
  mutating func text(_ name: String) -> String {
    list(name)?.last ?? ""
  }

  /// Takes a Boolean.
  mutating func flag(_ name: String) throws(StatusError) -> Bool? {
    guard let text = list(name)?.last else { return nil }
    switch text {
    case "true", "True", "1": return true
    case "false", "False", "0": return false
    default: throw invalid(name, "TYPE_BOOL", "\"\(text)\"")
    }
  }

  /// Takes a 32-bit integer.
  mutating func number(_ name: String) throws(StatusError) -> Int32? {
    guard let text = list(name)?.last else { return nil }
    guard let number = Int32(text) else { throw invalid(name, "TYPE_INT32", "\"\(text)\"") }
    return number
  }

  /// Takes a time in RFC 3339 format.
  mutating func time(_ name: String) throws(StatusError) -> Google_Protobuf_Timestamp? {
    guard let text = list(name)?.last else { return nil }
    do throws(TimestampError) {
      return try timestamp(text)
    } catch {
      let field = name.split(separator: ".").last ?? ""
      throw invalid(
        name,
        "type.googleapis.com/google.protobuf.Timestamp",
        "Field '\(field)', \(error.rawValue)"
      )
    }
  }

  /// Takes bytes in base64, in either alphabet, with or without padding.
  mutating func bytes(_ name: String) throws(StatusError) -> Data? {
    guard let text = list(name)?.last else { return nil }
    // A plus sign that was not escaped arrives as a space.
    guard let bytes = base64Decoded(text.utf8.map { $0 == UInt8(ascii: " ") ? 0x2B : $0 }) else {
      throw invalid(name, "TYPE_BYTES", "Base64 decoding failed for \"\(text)\"")
    }
    return Data(bytes)
  }

  /// Throws if any parameter was not taken.
  func finish() throws(StatusError) {
    guard !spelled.isEmpty else { return }
    throw Self.refusal(
      spelled.values.sorted().map { name in
        let field = name.split(separator: ".").last.map(String.init) ?? name
        return .unknownName(
          name,
          at: nil,
          "Cannot bind query parameter. Field '\(field)' could not be found in request message."
        )
      }
    )
  }

  /// Returns the error for two parameters of the same `oneof`.
  static func conflict(of oneof: String, _ name: String) -> StatusError {
    refusal([
      .invalidValue(
        at: nil,
        "oneof",
        "oneof field '\(oneof)' is already set. Cannot set '\(name)'"
      )
    ])
  }

  private func invalid(_ name: String, _ type: String, _ words: String) -> StatusError {
    Self.refusal([.invalidValue(at: Self.snakeCase(name), type, words)])
  }

  private static func refusal(_ violations: [FieldViolation]) -> StatusError {
    StatusError(
      .invalidArgument,
      violations.map(\.description).joined(separator: "\n"),
      details: [.badRequest(violations)]
    )
  }

  private static func snakeCase(_ name: String) -> String {
    name.reduce(into: "") { result, character in
      result += character.isUppercase ? "_" + character.lowercased() : String(character)
    }
  }

  private static func camelCase(_ name: String) -> String {
    guard name.utf8.contains(UInt8(ascii: "_")) else { return name }
    var result = ""
    var raises = false
    for character in name {
      if character == "_" {
        raises = true
      } else {
        result += raises ? character.uppercased() : String(character)
        raises = false
      }
    }
    return result
  }
}
