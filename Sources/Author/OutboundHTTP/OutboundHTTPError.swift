package import StatusCodes

/// The error of a request without a complete response.
public struct OutboundHTTPError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of failure.
  ///
  /// It says whether the server may have acted.
  public var kind: Kind
  /// A sentence that names the host, but never the query, the header fields or the body.
  public var message: String

  /// The kinds of failures of a request.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The server was not reached and has not received the request. A new attempt is safe.
    case cannotConnect
    /// The connect timeout or the total timeout was exceeded. The server may have acted.
    case timedOut
    /// The task was cancelled. The server may have acted.
    case cancelled
    /// The response is larger than the request allows. The server may have acted.
    case tooLarge
    /// The URL, the method or a header field is invalid. Nothing was sent.
    case invalidRequest
    /// The connection failed during the request. The server may have acted.
    case failed
  }

  /// Creates an error, for custom transports.
  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// The text of `message`.
  public var description: String { message }
}

extension OutboundHTTPError: StatusConvertible {
  package var statusCode: StatusCode {
    switch kind {
    case .cannotConnect, .failed: .unavailable
    case .timedOut: .deadlineExceeded
    case .cancelled: .cancelled
    // This code is not one that clients retry, because the next response would be just as large.
    case .tooLarge: .outOfRange
    case .invalidRequest: .internal
    }
  }

  package var statusMessage: String { message }
}
