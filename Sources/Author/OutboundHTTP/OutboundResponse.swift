/// A response that has arrived whole.
public struct OutboundResponse: Sendable {
  /// The status, such as 200.
  public var status: Int
  /// The header fields of the last response, after any redirects.
  public var headers: OutboundHeaders
  /// The body; at most the request's `responseBytesMax`.
  public var body: [UInt8]

  /// A response, for transports of your own.
  public init(status: Int, headers: OutboundHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Whether the status is 200 to 299.
  public var isSuccess: Bool { (200..<300).contains(status) }

  /// The body as text, with malformed UTF-8 replaced.
  public var text: String { String(decoding: body, as: UTF8.self) }
}

/// A response whose body is still arriving.
public struct OutboundStreamedResponse: Sendable {
  /// The status, such as 200.
  public var status: Int
  /// The header fields of the last response, after any redirects.
  public var headers: OutboundHeaders
  /// The body as it arrives; read by one task, once.
  public var body: OutboundBody

  /// A response, for transports of your own.
  public init(status: Int, headers: OutboundHeaders = [:], body: OutboundBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Whether the status is 200 to 299.
  public var isSuccess: Bool { (200..<300).contains(status) }
}
