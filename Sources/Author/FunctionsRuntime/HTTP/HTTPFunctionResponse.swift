public import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The response of an HTTP function.
public struct HTTPFunctionResponse: Sendable {
  /// The status of the response, 200 by default.
  public var status: HTTPResponse.Status
  /// The header fields.
  ///
  /// The content length of a body that is not streamed is added when it is sent.
  public var headers: HTTPFields
  /// The body, empty by default.
  public var body: Body

  /// A response body, either complete or written while it is sent.
  public enum Body: Sendable {
    /// A complete body.
    case bytes([UInt8])
    /// A body that a closure writes after the status and the header fields have been sent.
    ///
    /// The closure runs as part of the invocation: the deadline applies, and the closure is
    /// cancelled when the client disconnects. If it throws, the connection is closed early, so that
    /// the client does not mistake the partial body for the whole.
    case stream(@Sendable (HTTPResponseWriter) async throws -> Void)

    /// A complete body as UTF-8 text, such as for the expectation of a test; nil for a stream.
    public var text: String? {
      guard case .bytes(let bytes) = self else { return nil }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// Creates a response with a status, header fields and a body.
  public init(
    status: HTTPResponse.Status = .ok,
    headers: HTTPFields = [:],
    body: Body = .bytes([])
  ) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Returns a response with UTF-8 text as its body.
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

  /// Returns a response with a value as JSON; rethrows the error of the encoder.
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

  /// Returns a response whose body is written while it is sent.
  ///
  /// If `write` throws, the connection is closed early.
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

/// A writer for the body of a streamed response.
public struct HTTPResponseWriter: Sendable {
  private let send: @Sendable ([UInt8]) async throws -> Void

  /// Creates a writer that passes its bytes to a closure, for use in tests.
  public init(_ send: @escaping @Sendable ([UInt8]) async throws -> Void) {
    self.send = send
  }

  /// Sends bytes.
  ///
  /// Waits while the client is slow, and throws after it has disconnected.
  public func write(_ bytes: some Sequence<UInt8> & Sendable) async throws {
    try await send(Array(bytes))
  }

  /// Sends text in UTF-8.
  ///
  /// Waits while the client is slow, and throws after it has disconnected.
  public func write(_ text: String) async throws {
    try await send(Array(text.utf8))
  }
}

/// An error that is shown to the client of an HTTP function, as a status and a line of text.
///
/// Any other error that a handler throws is hidden. The client receives status 500, and the text of
/// the error goes to the log.
public struct HTTPFunctionError: Error, Sendable, CustomStringConvertible {
  /// The status, such as `.notFound`.
  public var status: HTTPResponse.Status
  /// The text of the response body.
  public var message: String

  /// Creates an error with the status and the text that the client receives.
  public init(_ status: HTTPResponse.Status, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The status, followed by the message.
  public var description: String { "\(status): \(message)" }
}
