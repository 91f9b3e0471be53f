/// One HTTP request to another server.
///
/// Every request has a bound on time and on the size of its answer; the defaults fit an API call.
public struct OutboundRequest: Sendable {
  /// The method in capitals, such as `GET`.
  public var method: String
  /// An absolute `http` or `https` address; `OutboundURL` builds one from parts.
  public var url: String
  /// Header fields; `Host`, `Content-Length` and `Connection` are set for you.
  public var headers: OutboundHeaders
  /// The body; empty for none.
  public var body: [UInt8]
  /// How long connecting may take, name look-up and TLS included.
  public var connectTimeout: Duration
  /// How long the whole exchange may take, including the wait for a connection; nil for ever.
  ///
  /// For a streamed response it also covers reading the body, including the time in which the
  /// reader does not ask for more.
  public var timeout: Duration?
  /// The largest response body; a larger one fails the request with `tooLarge`.
  public var responseBytesMax: Int
  /// How many redirects are followed; they never leave the request's scheme.
  ///
  /// Off by default, because header fields that carry keys would be sent to the new address.
  public var redirectsMax: Int
  /// Whether the request gets a connection of its own, which no other request has used or will use.
  ///
  /// A server may close a connection that has been idle just when the next request is sent; what
  /// cannot be sent again is then lost.
  public var usesFreshConnection: Bool

  /// The time to connect: a connection that is not there by then will not come.
  public static let defaultConnectTimeout: Duration = .seconds(5)
  /// The time for a request: enough for a slow API, without leaving a caller hanging.
  public static let defaultTimeout: Duration = .seconds(60)
  /// The largest body, larger than any single answer of the services in use.
  public static let defaultResponseBytesMax = 32 << 20

  /// A request; arguments that are left out have the defaults seen here.
  public init(
    method: String = "GET",
    url: String,
    headers: OutboundHeaders = [:],
    body: [UInt8] = [],
    connectTimeout: Duration = OutboundRequest.defaultConnectTimeout,
    timeout: Duration? = OutboundRequest.defaultTimeout,
    responseBytesMax: Int = OutboundRequest.defaultResponseBytesMax,
    redirectsMax: Int = 0,
    usesFreshConnection: Bool = false
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.connectTimeout = connectTimeout
    self.timeout = timeout
    self.responseBytesMax = responseBytesMax
    self.redirectsMax = redirectsMax
    self.usesFreshConnection = usesFreshConnection
  }
}

extension OutboundRequest {
  /// Throws `invalidRequest` for a request that breaks HTTP/1.1's framing or leaves http and https.
  func validate() throws(OutboundHTTPError) {
    guard !method.isEmpty, method.utf8.allSatisfy(Self.isToken) else {
      throw OutboundHTTPError(.invalidRequest, "\(method.debugDescription) is not an HTTP method")
    }
    let lowercased = url.prefix(8).lowercased()
    guard lowercased.hasPrefix("http://") || lowercased.hasPrefix("https://"),
      url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
    else {
      throw OutboundHTTPError(
        .invalidRequest,
        "the address of a request must start with http:// or https:// and be percent-encoded"
      )
    }
    for (name, value) in headers {
      guard !name.isEmpty, name.utf8.allSatisfy(Self.isToken),
        value.utf8.allSatisfy({ ($0 >= 0x20 || $0 == 0x09) && $0 != 0x7F })
      else {
        throw OutboundHTTPError(
          .invalidRequest,
          "the header field \(name.debugDescription) has a character that HTTP does not allow"
        )
      }
    }
  }

  private static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}
