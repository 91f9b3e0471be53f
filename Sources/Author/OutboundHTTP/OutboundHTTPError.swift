package import RuntimeSupport

/// Why no whole response came.
public struct OutboundHTTPError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What went wrong.
  public var kind: Kind
  /// A sentence that names the host, but never the query, the header fields or the body.
  public var message: String

  /// What can go wrong with an exchange.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The server was not reached, so it has not seen the request; sending again is safe.
    case cannotConnect
    /// The connect time or the total time ran out; the server may have acted.
    case timedOut
    /// The task was cancelled; the server may have acted.
    case cancelled
    /// The response is larger than the request allows.
    case tooLarge
    /// The address, method or a header field is not valid; nothing was sent.
    case invalidRequest
    /// The exchange broke off; the server may have acted.
    case failed
  }

  /// An error, for transports of your own.
  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// The message.
  public var description: String { message }
}

extension OutboundHTTPError: StatusConvertible {
  package var statusCode: StatusCode {
    switch kind {
    case .cannotConnect, .failed: .unavailable
    case .timedOut: .deadlineExceeded
    case .cancelled: .cancelled
    // This is not a code that clients retry, because the next answer would be as large.
    case .tooLarge: .outOfRange
    case .invalidRequest: .internal
    }
  }

  package var statusMessage: String { message }
}
