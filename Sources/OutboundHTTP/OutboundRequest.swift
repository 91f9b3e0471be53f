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
  /// How long the whole exchange may take, waiting for a free connection included; nil for ever.
  ///
  /// For a streamed response it covers the reading of the body too, and the time in which the
  /// reader does not ask for more.
  public var timeout: Duration?
  /// A larger response body fails the request with `tooLarge`.
  public var responseBytesMax: Int
  /// How many redirects are followed; they never leave the request's scheme.
  ///
  /// Off by default, because header fields that carry keys would be sent to the new address.
  public var redirectsMax: Int

  /// A connection that is not there after this time will not come.
  public static let defaultConnectTimeout: Duration = .seconds(5)
  /// Long enough for a slow API, short enough that a caller is not left hanging.
  public static let defaultTimeout: Duration = .seconds(60)
  /// Larger than any single answer of the services in use.
  public static let defaultResponseBytesMax = 32 << 20

  /// A request; all that is left out has the default seen here.
  public init(
    method: String = "GET",
    url: String,
    headers: OutboundHeaders = [:],
    body: [UInt8] = [],
    connectTimeout: Duration = OutboundRequest.defaultConnectTimeout,
    timeout: Duration? = OutboundRequest.defaultTimeout,
    responseBytesMax: Int = OutboundRequest.defaultResponseBytesMax,
    redirectsMax: Int = 0
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.connectTimeout = connectTimeout
    self.timeout = timeout
    self.responseBytesMax = responseBytesMax
    self.redirectsMax = redirectsMax
  }
}

extension OutboundRequest {
  /// Throws `invalidRequest` for what would break the framing of HTTP/1.1 or leave http and https.
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
