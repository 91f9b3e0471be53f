import LibC
import NIOCore
import NIOPosix
package import StatusCodes

/// The address at which a server listens.
package enum ServerAddress: Sendable, Hashable, CustomStringConvertible {
  /// A host name or IP address and a port; port 0 selects a free port.
  case tcp(host: String, port: Int)
  /// A socket file.
  ///
  /// An existing file at the path is replaced, and the new file is removed at the end.
  case unixSocket(path: String)

  /// The port; nil for a socket file.
  package var port: Int? {
    switch self {
    case .tcp(_, let port): port
    case .unixSocket: nil
    }
  }

  /// Returns true if another program listens at the address.
  ///
  /// It tries to listen there for a moment. False if listening fails for another reason.
  package func isInUse() async -> Bool {
    guard case .tcp(let host, let port) = self else { return false }
    do {
      let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .bind(host: host, port: port).get()
      // The channel has no connections, so closing it cannot fail in a way that matters.
      try? await channel.close()
      return false
    } catch {
      return ListenError(self, cause: error).reason == .inUse
    }
  }

  /// The address as `host:port`, with IPv6 addresses in brackets, or the path of the socket file.
  package var description: String {
    switch self {
    case .tcp(let host, let port):
      host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unixSocket(let path):
      path
    }
  }
}

/// An error for a server that cannot listen at its address, with a suggested remedy.
package struct ListenError: StatusConvertible, CustomStringConvertible {
  package var address: ServerAddress
  package var reason: Reason
  package var cause: any Error

  /// The reason why the address cannot be used.
  package enum Reason: Sendable, Hashable {
    case inUse
    case notPermitted
    case notOfThisMachine
    case unknownHost
    case pathTooLong
    case other
  }

  package var statusCode: StatusCode { reason == .inUse ? .alreadyExists : .failedPrecondition }

  package var statusMessage: String {
    switch reason {
    case .inUse:
      "\(address) is in use by another program; stop that program or choose another port "
        + "(0 takes a free one)."
    case .notPermitted:
      "No permission to listen on \(address); choose a port above 1023 or a folder of yours."
    case .notOfThisMachine:
      "\(address) is not an address of this machine; choose 127.0.0.1 or one that it has."
    case .unknownHost:
      "\(host) is not a host that this machine knows\(lookUpFailure); choose 127.0.0.1 or a name "
        + "of this machine."
    case .pathTooLong:
      "The socket path \(address) is too long; choose one shorter than 104 bytes."
    case .other:
      "Cannot listen on \(address): \(cause)"
    }
  }

  package var description: String { statusMessage }

  private var host: String {
    switch address {
    case .tcp(let host, _): host
    case .unixSocket(let path): path
    }
  }

  /// The resolver's reason in parentheses, because the name server may just not answer.
  private var lookUpFailure: String {
    (cause as? SocketAddressError.UnknownHost).map { " (\($0.errorDescription))" } ?? ""
  }

  /// True for an error of a failed bind that says what is wrong with the address.
  static func explains(_ error: any Error) -> Bool {
    error is IOError || error is SocketAddressError || error is SocketAddressError.UnknownHost
  }

  /// Derives the reason from the error of a failed bind.
  init(_ address: ServerAddress, cause: any Error) {
    self.address = address
    self.cause = cause
    self.reason =
      switch cause {
      case let error as IOError: Self.reason(errno: error.errnoCode)
      case SocketAddressError.unixDomainSocketPathTooLong: .pathTooLong
      case is SocketAddressError.UnknownHost: .unknownHost
      case is SocketAddressError: .notOfThisMachine
      default: .other
      }
  }

  private static func reason(errno: CInt) -> Reason {
    switch errno {
    case EADDRINUSE: .inUse
    case EACCES, EPERM: .notPermitted
    case EADDRNOTAVAIL: .notOfThisMachine
    default: .other
    }
  }
}
