package import HTTPMessages
import LibC
package import Logging
package import NIOCore
package import NIOHTTP1
import NIOPosix
import ServiceLifecycle

/// A responder that handles requests with a whole body without a task.
///
/// Most of the cost of a small request is the switch from the event loop to a task and back.
package protocol ImmediateResponder: Sendable {
  /// Starts handling a request on its connection's event loop; must not block.
  ///
  /// Returns nil to leave the request to the service's responder. Otherwise calls `reply` once, on
  /// any thread, even after it was asked to stop, and returns a closure that stops the work when
  /// the client leaves.
  func begin(
    _ request: Request,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (Response) -> Void
  ) -> (@Sendable () -> Void)?
}

/// A listening socket for HTTP/1.1, and for HTTP/2 if a pipeline for it is given.
///
/// `run()` throws `ListenError` if it cannot listen at the address. On graceful shutdown it stops
/// accepting and lets running requests finish for `drainTimeMax`. Then it cancels their tasks and
/// closes their connections, and waits at most `abortTimeMax` for tasks that ignore cancellation.
/// Cancelling `run()` cancels and closes at once.
package struct HTTPService: Service {
  /// A function that handles one request; a thrown error becomes a Google JSON error body.
  ///
  /// It runs in a task of its own, one at a time per connection. The task is cancelled when its
  /// client leaves and when the drain time is over. The rest of an unread body is skipped if it is
  /// short; otherwise the connection is closed.
  package typealias Responder = @Sendable (Request, HTTPContext) async throws -> Response

  /// A function that sees the head of an HTTP/1.1 request before the responder.
  ///
  /// If it returns a response, the responder is not called.
  package typealias Screen = @Sendable (Request) -> Response?

  /// A handler of requests for another protocol on the same connection.
  package typealias Upgrader = any HTTPServerProtocolUpgrader & Sendable

  private var address: ServerAddress
  private let http2: (@Sendable (any Channel) -> EventLoopFuture<Void>)?
  private let configuration: Configuration
  private let roster: ConnectionRoster
  private let budget: TransferBudget?
  private let eventLoopGroup: any EventLoopGroup
  private let logger: Logger
  private let onListening: @Sendable (ServerAddress) async -> Void
  private let onQuiesce: @Sendable () -> Void
  private let screen: Screen
  private let immediate: (any ImmediateResponder)?
  private let upgrader: Upgrader?
  private let outlivesClient: @Sendable (Request) -> Bool
  private let responder: Responder

  /// Creates a server that does nothing before `run()`.
  ///
  /// - `http2` builds the pipeline of a connection that begins with the HTTP/2 preface. Without it,
  ///   such a connection is a malformed request.
  /// - `roster` limits the connections of all services that share it; by default the service has
  ///   its own roster.
  /// - `budget` limits the memory for bodies and responses; without it there is no limit.
  /// - `onListening` receives the address with the actual port. Connections that arrive while it
  ///   runs wait until it returns.
  /// - `onQuiesce` is called when shutdown begins: end any work there that would outlast the drain
  ///   time.
  /// - `immediate` is asked before the responder.
  /// - `upgrader` takes over the connections whose clients ask for its protocol. If it refuses, the
  ///   responder gets the request. An upgraded connection receives a `ChannelShouldQuiesceEvent`
  ///   when shutdown begins.
  /// - `outlivesClient` returns true for the head of a request that must finish although its client
  ///   has left. Only a stop of the service then cancels the responder's task.
  package init(
    address: ServerAddress,
    http2: (@Sendable (any Channel) -> EventLoopFuture<Void>)? = nil,
    configuration: Configuration = Configuration(),
    roster: ConnectionRoster? = nil,
    budget: TransferBudget? = nil,
    eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
    logger: Logger,
    onListening: @escaping @Sendable (ServerAddress) async -> Void = { _ in },
    onQuiesce: @escaping @Sendable () -> Void = {},
    screen: @escaping Screen = { _ in nil },
    immediate: (any ImmediateResponder)? = nil,
    upgrader: Upgrader? = nil,
    outlivesClient: @escaping @Sendable (Request) -> Bool = { _ in false },
    responder: @escaping Responder
  ) {
    self.address = address
    self.http2 = http2
    self.configuration = configuration
    self.roster = roster ?? ConnectionRoster(logger: logger)
    self.budget = budget
    self.eventLoopGroup = eventLoopGroup
    self.logger = logger
    self.onListening = onListening
    self.onQuiesce = onQuiesce
    self.screen = screen
    self.immediate = immediate
    self.upgrader = upgrader
    self.outlivesClient = outlivesClient
    self.responder = responder
  }

  /// Returns a copy of the service with another address.
  package func listening(at address: ServerAddress) -> HTTPService {
    var service = self
    service.address = address
    return service
  }

  /// The limits of one listening socket.
  package struct Configuration: Sendable {
    /// The number of connections that the system completes before they are accepted.
    ///
    /// The default is Linux's usual maximum.
    package var backlog: Int
    /// The time that a connection may be idle between requests, or leave its responses unread.
    ///
    /// It is longer than the 600 s of Google's front ends. A client that pools connections for
    /// those front ends therefore never writes to a connection that is just being closed.
    package var idleTimeMax: Duration
    /// The time that a new connection may leave its protocol undecided.
    package var sniffTimeMax: Duration
    /// The time in which the head of a request must arrive once it has begun.
    package var headTimeMax: Duration
    /// The time in which a short body must arrive; the responder is called only after its end.
    package var shortBodyTimeMax: Duration
    /// The longest pause within a longer body.
    package var bodyPauseMax: Duration
    /// The minimum time allowed for a longer body; the default follows Apache and nginx.
    package var bodyTimeMin: Duration
    /// The average number of bytes per second required of a body after `bodyTimeMin`.
    ///
    /// Zero means that there is no minimum. The default is slower than any network, but keeps a
    /// client from sending a body for hours byte by byte. The minimum does not apply while the
    /// reader is busy or once the response has begun.
    package var bodyRateMin: Int
    /// The time before the server probes whether a client that has stopped sending still waits.
    ///
    /// Nil for servers whose clients stop sending only when they have left.
    package var halfCloseTimeMax: Duration?
    /// The time that requests may still run after graceful shutdown has begun.
    package var drainTimeMax: Duration
    /// The maximum size of all header fields of a request; far more than tokens and cookies need.
    package var headerBytesMax: Int

    /// Creates limits; each has a default that suits a development machine.
    package init(
      backlog: Int = 1024,
      idleTimeMax: Duration = .seconds(620),
      sniffTimeMax: Duration = .seconds(10),
      headTimeMax: Duration = .seconds(15),
      shortBodyTimeMax: Duration = .seconds(30),
      bodyPauseMax: Duration = .seconds(60),
      bodyTimeMin: Duration = .seconds(20),
      bodyRateMin: Int = 500,
      halfCloseTimeMax: Duration? = .seconds(1),
      drainTimeMax: Duration = .milliseconds(1500),
      headerBytesMax: Int = 80 * 1024
    ) {
      self.backlog = backlog
      self.idleTimeMax = idleTimeMax
      self.sniffTimeMax = sniffTimeMax
      self.headTimeMax = headTimeMax
      self.shortBodyTimeMax = shortBodyTimeMax
      self.bodyPauseMax = bodyPauseMax
      self.bodyTimeMin = bodyTimeMin
      self.bodyRateMin = bodyRateMin
      self.halfCloseTimeMax = halfCloseTimeMax
      self.drainTimeMax = drainTimeMax
      self.headerBytesMax = headerBytesMax
    }
  }

  /// Listens and serves until graceful shutdown or cancellation.
  package func run() async throws {
    let connections = OpenConnections()
    let listener: any Channel
    do {
      listener = try await listen(connections)
    } catch let error where ListenError.explains(error) {
      throw ListenError(address, cause: error)
    }
    defer { removeSocketFile() }
    roster.enter(listener: listener)
    await onListening(address.bound(to: listener.localAddress))
    await withTaskCancellationOrGracefulShutdownHandler {
      // This fails if the socket is already closed; then there is nothing to wait for.
      try? await listener.setOption(.autoRead, value: true).get()
      try? await listener.closeFuture.get()
    } onCancelOrGracefulShutdown: {
      listener.close(promise: nil)
    }
    onQuiesce()
    connections.quiesce()
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await connections.ended() }
      // Cancelled once all connections have ended.
      group.addTask { try? await Task.sleep(for: configuration.drainTimeMax) }
      await group.next()
      connections.abort()
      group.cancelAll()
      await endWait(for: connections)
    }
  }

  /// Waits briefly for the tasks that `abort` has cancelled.
  private func endWait(for connections: OpenConnections) async {
    let bound = Task.isCancelled ? Duration.zero : Self.abortTimeMax
    // This call owns and awaits the timer, which is unstructured because this task may be
    // cancelled.
    let timer = Task {
      try? await Task.sleep(for: bound)
      let left = connections.endWait()
      guard left > 0 else { return }
      logger.debug("Requests ignore the stop", metadata: ["tasks": "\(left)"])
    }
    await connections.ended()
    timer.cancel()
  }

  /// The time that cancelled requests may still run before the service ends without them.
  private static let abortTimeMax = Duration.milliseconds(200)

  private func listen(_ connections: OpenConnections) async throws -> any Channel {
    let exchanges = HTTPExchanges(
      configuration: configuration,
      roster: roster,
      budget: budget,
      connections: connections,
      screen: screen,
      immediate: immediate,
      upgrader: upgrader,
      outlivesClient: outlivesClient,
      responder: responder,
      logger: logger
    )
    var bootstrap = ServerBootstrap(group: eventLoopGroup)
      .serverChannelOption(.backlog, value: Int32(clamping: configuration.backlog))
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelOption(.autoRead, value: false)
      .serverChannelInitializer { [roster, logger] channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptGate(roster, logger: logger))
        }
      }
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { [self] channel in
        connections.enter(channel)
        roster.enter(channel)
        return channel.eventLoop.makeCompletedFuture { try setUp(channel, exchanges) }
      }
    switch address {
    case .tcp(let host, let port):
      bootstrap = bootstrap.childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      return try await bootstrap.bind(host: host, port: port).get()
    case .unixSocket(let path):
      return try await bootstrap.bind(
        unixDomainSocketPath: path,
        cleanupExistingSocketFile: true
      ).get()
    }
  }

  /// Prepares an accepted connection; NIO delivers no bytes before this method has returned.
  private func setUp(_ channel: any Channel, _ exchanges: HTTPExchanges) throws {
    guard let http2 else { return try setUpHTTP1(channel, exchanges) }
    try channel.pipeline.syncOperations.addHandler(
      ConnectionSniffer(timeMax: TimeAmount(configuration.sniffTimeMax)) { [roster] verdict in
        switch verdict {
        case .http2:
          roster.noteMultiplexed(channel)
          return http2(channel)
        case .http1, .undecided:
          return channel.eventLoop.makeCompletedFuture { try setUpHTTP1(channel, exchanges) }
        }
      }
    )
  }

  private func setUpHTTP1(_ channel: any Channel, _ exchanges: HTTPExchanges) throws {
    let watch = InputWatch()
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = configuration.headerBytesMax
    limits.maxHeaderListSize = configuration.headerBytesMax
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(watch)
    let decoder = ByteToMessageHandler(
      HTTPRequestDecoder(
        // Only an upgrade removes the decoder; the rest of the input belongs to the other protocol.
        leftOverBytesStrategy: upgrader == nil ? .dropBytes : .forwardBytes,
        limitConfiguration: limits
      )
    )
    try pipeline.addHandler(decoder)
    try pipeline.addHandler(HTTP1Connection(exchanges, watch: watch, decoder: decoder))
  }

  private func removeSocketFile() {
    if case .unixSocket(let path) = address { unlink(path) }
  }
}

extension HTTPService: CustomStringConvertible {
  package var description: String { "HTTP at \(address)" }
}

extension ServerAddress {
  /// Returns the address with the port that the system chose.
  fileprivate func bound(to socket: SocketAddress?) -> ServerAddress {
    guard case .tcp(let host, let port) = self else { return self }
    return .tcp(host: host, port: socket?.port ?? port)
  }
}
