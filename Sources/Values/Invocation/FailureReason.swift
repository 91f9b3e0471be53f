import HTTPMessages
package import HTTPTypes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The error that a handler threw, which a worker reports to the emulator beside its response.
///
/// The response itself tells the caller no more than in production. The gateway therefore removes
/// the header before a client receives the response.
package struct FailureReason: Sendable, Hashable, CustomStringConvertible {
  /// The error and, in a further line, the place in the code where it was thrown, if known.
  package let description: String

  /// The maximum length of a reason; the end of a longer one is cut off.
  private static let bytesMax = 4096

  /// Creates a reason from an error's text and the place where it was thrown.
  package init(_ error: String, place: String?) {
    let text = place.map { "\(error)\nthrown at \($0)" } ?? error
    description =
      text.utf8.count <= Self.bytesMax
      ? text : String(decoding: text.utf8.prefix(Self.bytesMax), as: UTF8.self) + "…"
  }

  /// Reads the reason from the headers of a worker's response; nil if the handler did not throw.
  package init?(of response: HTTPResponse) {
    guard let value = response.headerFields[Self.header],
      let text = Data(base64Encoded: value).map({ String(decoding: $0, as: UTF8.self) })
    else { return nil }
    description = text
  }

  /// Adds the reason to the headers of a worker's response.
  package func set(on response: inout HTTPResponse) {
    response.headerFields[Self.header] = Data(description.utf8).base64EncodedString()
  }

  /// Removes the reason from a response that a client will receive.
  package static func remove(from response: inout HTTPResponse) {
    response.headerFields[header] = nil
  }

  private static let header = fieldName("x-hearth-failure")
}
