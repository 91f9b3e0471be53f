import HTTPTypes
package import HummingbirdCore
package import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// One listening socket: HTTP/1.1, and HTTP/2 if a pipeline for it is given.
///
/// `run()` throws `ListenError` when it cannot have the address. On graceful shutdown it stops
/// accepting, lets running requests finish for `drainTimeMax`, then cancels their tasks and closes
/// their connections. Cancelling `run()` does the latter at once.
package struct HTTPService: Service {
  /// Answers one request; a thrown error becomes a Google JSON error body.
  ///
  /// Runs in the connection's own task: requests of one connection come one after the other, and
  /// the task is cancelled when the drain time is over. The rest of an unread body is skipped.
  package typealias Responder = @Sendable (Request, HTTPContext) async throws -> Response

  /// Looks at the head of an HTTP/1.1 request before the responder; a response settles the request.
  package typealias Screen = @Sendable (Request) -> Response?

  private var address: ServerAddress
  private let http2: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
  private let configuration: Configuration
  private let roster: ConnectionRoster
  private let eventLoopGroup: any EventLoopGroup
  private let logger: Logger
  private let onListening: @Sendable (ServerAddress) async -> Void
  private let screen: Screen
  private let short: (any ShortResponder)?
  private let responder: Responder

  /// A server that does nothing before `run()`.
  ///
  /// `http2` builds the pipeline of a connection that begins with the HTTP/2 preface; without it
  /// such a connection is a malformed request. `roster` bounds the connections of all services that
  /// share it; without it the service has one of its own. `short` answers the requests that it takes before
  /// the responder is asked. `onListening` gets the address with the real port; connections made
  /// while it runs wait until it returns.
  package init(
    address: ServerAddress,
    http2: (@Sendable (any Channel) -> EventLoopFuture<Void>)? = nil,
    configuration: Configuration = Configuration(),
    roster: ConnectionRoster? = nil,
    eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
    logger: Logger,
    onListening: @escaping @Sendable (ServerAddress) async -> Void = { _ in },
    screen: @escaping Screen = { _ in nil },
    short: (any ShortResponder)? = nil,
    responder: @escaping Responder
  ) {
    self.address = address
    self.http2 = http2
    self.configuration = configuration
    self.roster = roster ?? ConnectionRoster(logger: logger)
    self.eventLoopGroup = eventLoopGroup
    self.logger = logger
    self.onListening = onListening
    self.screen = screen
    self.short = short
    self.responder = responder
  }

  /// The same service at another address.
  package func listening(at address: ServerAddress) -> HTTPService {
    var service = self
    service.address = address
    return service
  }

  /// The bounds of one listening socket.
  package struct Configuration: Sendable {
    /// The connections that the system completes before they are accepted here; Linux's usual cap.
    package var backlog: Int
    /// How long a connection may be silent between or within requests.
    ///
    /// Longer than the 600 s of Google's front ends, so that a client which pools connections as it
    /// does for them never writes to a connection that is just being closed.
    package var idleTimeMax: Duration
    /// How long a new connection may leave its protocol undecided.
    package var sniffTimeMax: Duration
    /// How long requests may still run after graceful shutdown has begun.
    package var drainTimeMax: Duration
    /// The size of all header fields of a request together; tokens and cookies fit many times.
    package var headerBytesMax: Int

    /// The bounds; each has a default that suits a development machine.
    package init(
      backlog: Int = 1024,
      idleTimeMax: Duration = .seconds(620),
      sniffTimeMax: Duration = .seconds(10),
      drainTimeMax: Duration = .milliseconds(1500),
      headerBytesMax: Int = 80 * 1024
    ) {
      self.backlog = backlog
      self.idleTimeMax = idleTimeMax
      self.sniffTimeMax = sniffTimeMax
      self.drainTimeMax = drainTimeMax
      self.headerBytesMax = headerBytesMax
    }
  }

  /// Listens and serves until graceful shutdown or cancellation.
  package func run() async throws {
    let server = try makeServer()
    defer { removeSocketFile() }
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await server.run() }
        group.addTask {
          try await gracefulShutdown()
          try await Task.sleep(for: configuration.drainTimeMax)
        }
        // Whichever task ends first ends the other: the server when it has drained, or the drain
        // time.
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch is CancellationError {
      return
    } catch let error where error is IOError || error is SocketAddressError {
      throw ListenError(address, cause: error)
    }
  }

  private func makeServer() throws -> any Service {
    var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
    decoder.maxHeaderFieldSize = configuration.headerBytesMax
    decoder.maxHeaderListSize = configuration.headerBytesMax
    let idleTimeMax = TimeAmount(configuration.idleTimeMax)
    let http1Configuration = HTTP1Channel.Configuration(
      additionalChannelHandlers: [RequestWatch(roster)] + shortWay(idleTimeMax),
      // When there is a short way, it watches for idleness.
      idleTimeout: short == nil ? idleTimeMax : nil,
      httpDecoderConfiguration: decoder
    )
    let sniffTimeMax = TimeAmount(configuration.sniffTimeMax)
    let builder = HTTPServerBuilder { [http2, exchange, roster] _ in
      PortChildChannel(
        roster: roster,
        http1: { client in
          HTTP1Channel(
            responder: { try await exchange($0, $1, $2, client) },
            configuration: http1Configuration
          )
        },
        http2: http2,
        sniffTimeMax: sniffTimeMax
      )
    }
    // Hummingbird announces itself at `info`; whoever starts the service announces it better.
    var quiet = logger
    quiet.logLevel = max(quiet.logLevel, .notice)
    return try builder.buildServer(
      configuration: ServerConfiguration(
        address: bindAddress,
        backlog: configuration.backlog,
        reuseAddress: true,
        availableConnectionsDelegate: RosterConnections(roster: roster)
      ),
      eventLoopGroup: eventLoopGroup,
      logger: quiet,
      // Each connection has its own responder, with its client.
      responder: { _, _, _ in },
      onServerRunning: { [address, onListening, roster] channel in
        roster.enter(door: channel)
        await onListening(address.bound(to: channel.localAddress))
      }
    )
  }

  private func shortWay(_ idleTimeMax: TimeAmount) -> [any RemovableChannelHandler] {
    short.map { [ShortWay($0, screen: screen, idleTimeMax: idleTimeMax)] } ?? []
  }

  private var bindAddress: BindAddress {
    switch address {
    case .tcp(let host, let port): .hostname(host, port: port)
    case .unixSocket(let path): .unixDomainSocket(path: path)
    }
  }

  private func removeSocketFile() {
    if case .unixSocket(let path) = address { unlink(path) }
  }
}

extension HTTPService: CustomStringConvertible {
  /// A description for the log.
  package var description: String { "HTTP at \(address)" }
}

/// What a responder may know of the connection.
package struct HTTPContext: Sendable {
  package let channel: any Channel
  /// The watch that tells when the client goes away.
  package let client: ClientWatch

  /// Whether the client is on this machine, whatever name it uses.
  package var isFromThisMachine: Bool {
    channel.remoteAddress?.ipAddress.map(Self.isLoopback) ?? false
  }

  static func isLoopback(_ address: String) -> Bool {
    address == "::1" || address.hasPrefix("127.") || address.hasPrefix("::ffff:127.")
  }

  /// The context of a connection.
  package init(channel: any Channel, client: ClientWatch = ClientWatch()) {
    self.channel = channel
    self.client = client
  }
}

extension HTTPService {
  /// The longest body that a waiting client is asked for (`Expect: 100-continue`).
  ///
  /// It is well above every door's limit, so that the doors, not this, refuse longer bodies.
  private static let expectedBytesMax = 64 * 1024 * 1024

  /// Runs the responder for one request of an HTTP/1.1 connection and writes its answer.
  private func exchange(
    _ request: Request,
    _ writer: consuming ResponseWriter,
    _ channel: any Channel,
    _ client: ClientWatch
  ) async throws {
    if let expectation = request.headers[.expect], expectation.lowercased() == "100-continue",
      request.contentLength ?? 0 <= Self.expectedBytesMax
    {
      try await writer.writeInformationalHead(HTTPResponse(status: .continue))
    }
    var response: Response
    if let refusal = screen(request) {
      response = refusal
    } else {
      do {
        response = try await responder(
          request,
          HTTPContext(channel: channel, client: client)
        )
      } catch {
        response = .error(error)
        logger.debug("A request failed", metadata: ["error": "\(error)"])
      }
    }
    if request.method == .head { response = response.createHeadResponse() }
    try await writer.write(response: response.head, body: response.body)
  }
}

extension ServerAddress {
  /// The same address with the port that the system chose.
  fileprivate func bound(to socket: SocketAddress?) -> ServerAddress {
    guard case .tcp(let host, let port) = self else { return self }
    return .tcp(host: host, port: socket?.port ?? port)
  }
}
