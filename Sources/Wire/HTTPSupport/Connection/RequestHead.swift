import StatusCodes
import HTTPMessages
import HTTPTypes
import NIOHTTP1

/// The head of an HTTP/1 request that conforms to RFC 9112.
struct RequestHead {
  var request: HTTPRequest
  /// True if another request may follow on the connection.
  var keepsAlive: Bool
  /// True if the client supports chunked and interim responses.
  var isHTTP11: Bool
  var body: Body
  /// True if the client waits for `100 Continue` before it sends the body.
  var expectsContinue: Bool
  /// The protocol that the client wants to speak from now on; nil for HTTP.
  var upgrade: String?

  /// The length of the body as declared by the head.
  enum Body: Equatable {
    case none
    case announced(Int)
    case chunked
  }

  /// The reason why a request is refused.
  struct RefusalError: Error {
    var status: HTTPResponse.Status
    var message: String
  }

  /// Checks what the decoder does not: version, host, target and the framing of the body.
  init(_ head: HTTPRequestHead) throws(RefusalError) {
    guard head.version == .http1_1 || head.version == .http1_0 else {
      throw RefusalError(
        status: .httpVersionNotSupported,
        message: "This server speaks HTTP/1.1 and HTTP/1.0, not \(head.version)."
      )
    }
    isHTTP11 = head.version == .http1_1
    var fields = HTTPFields()
    fields.reserveCapacity(head.headers.count)
    var hosts: [String] = []
    for (name, value) in head.headers {
      guard let name = HTTPField.Name(name) else {
        throw RefusalError(status: .badRequest, message: "A header field has no valid name.")
      }
      if name.canonicalName == "host" {
        hosts.append(value)
      } else {
        fields.append(HTTPField(name: name, value: value))
      }
    }
    guard hosts.count == 1 || hosts.isEmpty && !isHTTP11 else {
      let found = hosts.isEmpty ? "has no" : "has more than one"
      throw RefusalError(status: .badRequest, message: "The request \(found) Host header field.")
    }
    let target = try Self.target(head)
    guard let method = HTTPRequest.Method(head.method.rawValue) else {
      throw RefusalError(status: .badRequest, message: "The request's method is malformed.")
    }
    body = try Self.body(fields, isHTTP11: isHTTP11)
    expectsContinue = false
    if let expectation = fields[.expect] {
      guard expectation.lowercased() == "100-continue" else {
        throw RefusalError(
          status: .expectationFailed,
          message: "The only expectation that this server meets is 100-continue."
        )
      }
      expectsContinue = isHTTP11 && body != .none
    }
    let options = fields.connectionOptions
    upgrade = isHTTP11 && options.contains("upgrade") ? fields[.upgrade] : nil
    // The decoder stops at a request for another protocol, so no further one can follow.
    keepsAlive =
      upgrade == nil && !options.contains("close")
      && (isHTTP11 || options.contains("keep-alive"))
    request = HTTPRequest(
      method: method,
      scheme: "http",
      authority: target.authority ?? hosts.first,
      path: target.path,
      headerFields: fields
    )
  }

  /// Returns the parts of the request's target; a target in absolute form includes the host.
  private static func target(
    _ head: HTTPRequestHead
  ) throws(RefusalError) -> (authority: String?, path: String) {
    let uri = head.uri
    if uri.utf8.first == UInt8(ascii: "/") || uri == "*" && head.method == .OPTIONS {
      return (nil, uri)
    }
    guard head.method != .CONNECT,
      let scheme = ["http://", "https://"].first(where: { uri.lowercased().hasPrefix($0) })
    else {
      throw RefusalError(
        status: .badRequest,
        message: "The request's target is neither a path nor a URL."
      )
    }
    let rest = uri.dropFirst(scheme.count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let path = rest[authority.endIndex...]
    return (String(authority), path.hasPrefix("/") ? String(path) : "/\(path)")
  }

  /// Returns the framing of the body; refuses anything that is ambiguous.
  private static func body(_ fields: HTTPFields, isHTTP11: Bool) throws(RefusalError) -> Body {
    let codings = fields[values: .transferEncoding]
    let lengths = fields[values: .contentLength]
    if !codings.isEmpty {
      guard lengths.isEmpty, isHTTP11 else {
        throw RefusalError(
          status: .badRequest,
          message: "Transfer-Encoding stands beside Content-Length or in HTTP/1.0."
        )
      }
      guard codings.count == 1, codings[0].lowercased() == "chunked" else {
        throw RefusalError(
          status: .notImplemented,
          message: "The only Transfer-Encoding that this server knows is chunked."
        )
      }
      return .chunked
    }
    guard let first = lengths.first else { return .none }
    guard lengths.count == 1, first.utf8.allSatisfy({ (48...57).contains($0) }),
      let length = Int(first)
    else {
      throw RefusalError(status: .badRequest, message: "Content-Length is not one number.")
    }
    return length == 0 ? .none : .announced(length)
  }
}

extension HTTPFields {
  /// The options in the `Connection` fields, in lower case.
  var connectionOptions: Set<Substring> {
    guard let list = self[.connection]?.lowercased() else { return [] }
    func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
    return Set(
      list.split(separator: ",").map { $0.drop(while: isSpace).prefix { !isSpace($0) } }
    )
  }
}

extension RequestHead.RefusalError {
  /// Creates the refusal for an error of the decoder.
  init(_ error: HTTPParserError) {
    switch error {
    case .headerOverflow:
      self.init(
        status: .requestHeaderFieldsTooLarge,
        message: "The header fields of the request are too long or too many."
      )
    case .invalidVersion:
      self.init(status: .httpVersionNotSupported, message: "The HTTP version is unknown.")
    case .unknown:
      self.init(
        status: .badRequest,
        message: "The request is not HTTP, or its Transfer-Encoding is malformed or stands beside "
          + "Content-Length."
      )
    default: self.init(status: .badRequest, message: "The request is not HTTP: \(error).")
    }
  }

  var response: Response {
    .error(.invalidArgument, message, httpStatus: status.code)
  }
}
