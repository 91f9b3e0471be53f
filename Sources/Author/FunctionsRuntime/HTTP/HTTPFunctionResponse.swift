public import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An HTTP function's answer.
public struct HTTPFunctionResponse: Sendable {
  /// The status; 200 unless set.
  public var status: HTTPResponse.Status
  /// The header fields; the length of a body that is not streamed is added.
  public var headers: HTTPFields
  /// The body.
  public var body: Body

  /// A body, either complete or written while it is sent.
  public enum Body: Sendable {
    /// Complete bytes.
    case bytes([UInt8])
    /// Bytes that a closure writes after the status and the header fields were sent.
    ///
    /// The closure runs as part of the invocation: within its deadline, and cancelled when the
    /// client goes. When it throws, the connection is cut, so that the client does not take the
    /// part for the whole.
    case stream(@Sendable (HTTPResponseWriter) async throws -> Void)
  }

  /// A response with a status, header fields and a body.
  public init(
    status: HTTPResponse.Status = .ok,
    headers: HTTPFields = [:],
    body: Body = .bytes([])
  ) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Text, in UTF-8.
  public static func text(
    _ text: String,
    status: HTTPResponse.Status = .ok
  ) -> HTTPFunctionResponse {
    HTTPFunctionResponse(
      status: status,
      headers: [.contentType: "text/plain; charset=utf-8"],
      body: .bytes(Array(text.utf8))
    )
  }

  /// A value as JSON; throws what the encoder throws.
  public static func json(
    _ value: some Encodable,
    status: HTTPResponse.Status = .ok,
    encoder: JSONEncoder = JSONEncoder()
  ) throws -> HTTPFunctionResponse {
    HTTPFunctionResponse(
      status: status,
      headers: [.contentType: "application/json; charset=utf-8"],
      body: .bytes(Array(try encoder.encode(value)))
    )
  }

  /// A body that is written while it is sent.
  public static func stream(
    contentType: String = "application/octet-stream",
    status: HTTPResponse.Status = .ok,
    _ write: @escaping @Sendable (HTTPResponseWriter) async throws -> Void
  ) -> HTTPFunctionResponse {
    HTTPFunctionResponse(
      status: status,
      headers: [.contentType: contentType],
      body: .stream(write)
    )
  }
}

/// Writes a streamed body.
public struct HTTPResponseWriter: Sendable {
  private let send: @Sendable ([UInt8]) async throws -> Void

  /// A writer whose bytes go to a closure, as a test makes one.
  public init(_ send: @escaping @Sendable ([UInt8]) async throws -> Void) {
    self.send = send
  }

  /// Sends bytes; waits while the client is slow, and throws once it has gone.
  public func write(_ bytes: some Sequence<UInt8> & Sendable) async throws {
    try await send(Array(bytes))
  }

  /// Sends text in UTF-8; waits while the client is slow, and throws once it has gone.
  public func write(_ text: String) async throws {
    try await send(Array(text.utf8))
  }
}

/// An error that the client of an HTTP function may see, as a status and a line of text.
///
/// For any other error that a handler throws, the client gets 500 without the text, which goes to
/// the log.
public struct HTTPFunctionError: Error, Sendable, CustomStringConvertible {
  /// The status, such as `.notFound`.
  public var status: HTTPResponse.Status
  /// The text that the client gets.
  public var message: String

  /// An error for the client.
  public init(_ status: HTTPResponse.Status, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The status and the message.
  public var description: String { "\(status): \(message)" }
}
