import OutboundHTTP
import Testing

/// The transports, which must behave alike wherever their documentation names no difference.
enum TransportKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case curl = "libcurl"
  case urlSession = "URLSession"

  var testDescription: String { rawValue }

  func make() -> any HTTPTransport {
    switch self {
    case .curl: OutboundClient()
    case .urlSession: URLSessionTransport()
    }
  }

  /// The host of the servers.
  ///
  /// libcurl must bypass the environment's proxy for loopback by itself; `URLSession` does not.
  var host: String {
    switch self {
    case .curl: "127.0.0.1"
    case .urlSession: "localhost"
    }
  }

  func url(_ server: RawServer) -> String { "http://\(host):\(server.port)" }

  /// The message about a request that timed out.
  var timeoutMessage: String {
    switch self {
    case .curl: "127.0.0.1: Timeout was reached"
    case .urlSession: "localhost: the request timed out"
    }
  }

  /// The message about a redirect to another scheme.
  var schemeMessage: String {
    switch self {
    case .curl: "127.0.0.1: Unsupported protocol"
    case .urlSession: "localhost: the redirect is to another scheme"
    }
  }

  /// The message about a redirect beyond three.
  var redirectsMessage: String {
    switch self {
    case .curl: "127.0.0.1: Number of redirects hit maximum amount"
    case .urlSession: "localhost: there are more than 3 redirects"
    }
  }
}
