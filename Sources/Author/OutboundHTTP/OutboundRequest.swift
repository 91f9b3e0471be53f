/// An HTTP request to another server.
///
/// Every request has limits on its duration and on the size of its response. The defaults suit a
/// typical API call.
public struct OutboundRequest: Sendable {
  /// The method in uppercase, such as `GET`.
  public var method: String
  /// An absolute `http` or `https` URL, for example made with `OutboundURL`.
  public var url: String
  /// The header fields.
  ///
  /// `Host`, `Content-Length` and `Connection` are added automatically.
  public var headers: OutboundHeaders
  /// The body; empty for a request without a body.
  public var body: [UInt8]
  /// The time limit for connecting, including name resolution and TLS.
  public var connectTimeout: Duration
  /// The time limit for the whole request, including the wait for a connection; nil for no limit.
  ///
  /// For a streamed response it also includes the time to read the body, even while the reader asks
  /// for no data.
  public var timeout: Duration?
  /// The maximum size of the response body.
  ///
  /// A larger body fails the request with `tooLarge`.
  public var responseBytesMax: Int
  /// The maximum number of redirects that are followed, 0 by default.
  ///
  /// Redirects are off by default, because header fields that contain keys would be sent to the new
  /// URL. A redirect to another scheme is never followed.
  public var redirectsMax: Int
  /// True to send the request on a new connection, which is closed afterwards.
  ///
  /// A server may close an idle connection just when the next request is sent on it. A request that
  /// cannot be repeated would then be lost.
  public var usesFreshConnection: Bool

  /// The default of `connectTimeout`.
  ///
  /// A connection that takes longer is unlikely to succeed.
  public static let defaultConnectTimeout: Duration = .seconds(5)
  /// The default of `timeout`, enough for a slow API without blocking a caller indefinitely.
  public static let defaultTimeout: Duration = .seconds(60)
  /// The default of `responseBytesMax`, more than any response of the services in use.
  public static let defaultResponseBytesMax = 32 << 20

  /// Creates a request.
  ///
  /// Only the URL has no default.
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
  /// True if the method is idempotent, so that the request may be repeated.
  var isIdempotent: Bool {
    ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"].contains(method)
  }

  /// Throws `invalidRequest` for invalid HTTP/1.1 syntax and for schemes other than http and https.
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
