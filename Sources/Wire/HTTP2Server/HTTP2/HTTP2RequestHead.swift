import HTTPTypes
import NIOHPACK

/// The head of a request, validated by RFC 9113, 8.2 and 8.3, with the fields that are used here.
struct HTTP2RequestHead {
  private(set) var method = ""
  private(set) var scheme = ""
  private(set) var path = ""
  private(set) var authority: String?
  private(set) var contentType: String?
  private(set) var te: String?
  private(set) var encoding: String?
  private(set) var acceptedEncodings: String?
  private(set) var timeout: String?
  /// The size by the rules of RFC 9113, 6.5.2, which add 32 bytes for each field.
  private(set) var bytes = 0
  /// All headers, including pseudo-headers.
  let headers: HPACKHeaders

  /// An error for a malformed head; the stream is reset.
  struct MalformedError: Error {}

  /// Parses a stream's first header block.
  init(_ headers: HPACKHeaders) throws(MalformedError) {
    self.headers = headers
    var isPastPseudo = false
    for (name, value, _) in headers {
      bytes += name.utf8.count + value.utf8.count + 32
      if name.utf8.first == UInt8(ascii: ":") {
        guard !isPastPseudo else { throw MalformedError() }
        try readPseudo(name, value)
      } else {
        isPastPseudo = true
        try readField(name, value)
      }
      guard Self.isClean(value) else { throw MalformedError() }
    }
    guard !method.isEmpty else { throw MalformedError() }
    if method != "CONNECT" {
      guard !scheme.isEmpty, !path.isEmpty else { throw MalformedError() }
    }
  }

  /// Returns true if a header block is a valid trailer.
  static func areTrailers(_ headers: HPACKHeaders) -> Bool {
    headers.allSatisfy { name, value, _ in
      name.utf8.first != UInt8(ascii: ":") && isLowercase(name) && isClean(value)
    }
  }

  private mutating func readPseudo(_ name: String, _ value: String) throws(MalformedError) {
    switch name {
    case ":path":
      guard path.isEmpty else { throw MalformedError() }
      path = value
    case ":method":
      guard method.isEmpty, value == "POST" || HTTPRequest.Method(value) != nil else {
        throw MalformedError()
      }
      method = value
    case ":scheme":
      guard scheme.isEmpty else { throw MalformedError() }
      scheme = value
    case ":authority":
      guard authority == nil else { throw MalformedError() }
      authority = value
    default:
      throw MalformedError()
    }
  }

  private mutating func readField(_ name: String, _ value: String) throws(MalformedError) {
    switch name {
    case "content-type": contentType = value
    case "te":
      guard value == "trailers" else { throw MalformedError() }
      te = value
    case "grpc-timeout": timeout = value
    case "grpc-encoding": encoding = value
    case "grpc-accept-encoding":
      acceptedEncodings = acceptedEncodings.map { "\($0),\(value)" } ?? value
    case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
      throw MalformedError()
    default:
      guard Self.isLowercase(name) else { throw MalformedError() }
    }
  }

  private static func isLowercase(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        byte > 0x20 && byte < 0x7F && !(UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
          && byte != UInt8(ascii: ":")
      }
  }

  private static func isClean(_ value: String) -> Bool {
    value.utf8.allSatisfy { $0 != 0 && $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
  }
}
