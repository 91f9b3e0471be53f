import DocumentModel
import HTTPSupport
import JSONText
import RuntimeSupport
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A REST request's query parameters, taken one by one; `finish()` refuses what is left.
///
/// Names may be spelled `pageSize` or `page_size`. When a parameter that is not a list is repeated,
/// its last value counts.
struct RESTParameters {
  /// Parameters for Google's front ends, which mean nothing to a method.
  private static let ofFrontEnds: Set<String> = [
    "$.xgafv", "$alt", "$ct", "$fields", "$httpHeaders", "$prettyPrint", "access_token", "alt",
    "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser", "uploadType",
    "upload_protocol",
  ]

  private var values: [String: [String]] = [:]

  /// The parameters of one request.
  init(_ query: QueryParameters) {
    for item in query.items where !Self.ofFrontEnds.contains(item.name) {
      values[Self.camelCase(item.name), default: []].append(item.value)
    }
  }

  /// All values of a name, or nil when it is absent.
  mutating func list(_ name: String) -> [String]? {
    values.removeValue(forKey: name)
  }

  /// A text, empty when absent.
  mutating func text(_ name: String) -> String {
    list(name)?.last ?? ""
  }

  /// `true` or `false`.
  mutating func flag(_ name: String) throws(StatusError) -> Bool? {
    guard let text = list(name)?.last else { return nil }
    switch text {
    case "true", "True", "1": return true
    case "false", "False", "0": return false
    default: throw invalid(name, "TYPE_BOOL", text)
    }
  }

  /// A whole number of 32 bits.
  mutating func number(_ name: String) throws(StatusError) -> Int32? {
    guard let text = list(name)?.last else { return nil }
    guard let number = Int32(text) else { throw invalid(name, "TYPE_INT32", text) }
    return number
  }

  /// A time in RFC 3339.
  mutating func time(_ name: String) throws(StatusError) -> Google_Protobuf_Timestamp? {
    guard let text = list(name)?.last else { return nil }
    do {
      return try Google_Protobuf_Timestamp(jsonString: jsonQuoted(text))
    } catch {
      throw invalid(name, "type.googleapis.com/google.protobuf.Timestamp", text)
    }
  }

  /// Bytes in base64, either alphabet, padded or not.
  mutating func bytes(_ name: String) throws(StatusError) -> Data? {
    guard let text = list(name)?.last else { return nil }
    // A plus sign that was not escaped arrives as a space.
    let standard = text.map { character -> Character in
      switch character {
      case "-", " ": "+"
      case "_": "/"
      default: character
      }
    }.filter { $0 != "=" }
    let padding = String(repeating: "=", count: (4 - standard.count % 4) % 4)
    guard let data = Data(base64Encoded: String(standard) + padding) else {
      throw invalid(name, "TYPE_BYTES", text)
    }
    return data
  }

  /// Refuses parameters that nobody took.
  func finish() throws(StatusError) {
    guard let name = values.keys.min() else { return }
    throw .invalidArgument(
      "Invalid JSON payload received. Unknown name \"\(name)\": Cannot bind query parameter. "
        + "Field '\(name)' could not be found in request message."
    )
  }

  private func invalid(_ name: String, _ type: String, _ text: String) -> StatusError {
    .invalidArgument("Invalid value at '\(name)' (\(type)), \(jsonQuoted(text))")
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
