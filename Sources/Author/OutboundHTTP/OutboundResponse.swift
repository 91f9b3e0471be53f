/// A complete response.
public struct OutboundResponse: Sendable {
  /// The status code, such as 200.
  public var status: Int
  /// The header fields of the final response, after any redirects.
  public var headers: OutboundHeaders
  /// The body, of at most the request's `responseBytesMax` bytes.
  public var body: [UInt8]

  /// Creates a response, for custom transports.
  public init(status: Int, headers: OutboundHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// True if the status is between 200 and 299.
  public var isSuccess: Bool { (200..<300).contains(status) }

  /// The body as text.
  ///
  /// Invalid UTF-8 is replaced by U+FFFD.
  public var text: String { String(decoding: body, as: UTF8.self) }
}

/// A response whose head has arrived and whose body is still arriving.
public struct OutboundStreamedResponse: Sendable {
  /// The status code, such as 200.
  public var status: Int
  /// The header fields of the final response, after any redirects.
  public var headers: OutboundHeaders
  /// The body as it arrives.
  ///
  /// Only one task may read it, and only once.
  public var body: OutboundBody

  /// Creates a response, for custom transports.
  public init(status: Int, headers: OutboundHeaders = [:], body: OutboundBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// True if the status is between 200 and 299.
  public var isSuccess: Bool { (200..<300).contains(status) }
}
