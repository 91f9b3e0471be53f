package import Logging
package import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Answers requests whose body is whole without a task.
///
/// Most of a small request's cost is the way from the event loop to a task and back.
package protocol ImmediateResponder: Sendable {
  /// Begins to answer a request on its connection's event loop, or leaves it to the service's
  /// responder by returning nil; must not block.
  ///
  /// Calls `reply` once, on any thread, even after it was told to stop. Returns a closure that
  /// stops the answer when the client leaves.
  func begin(
    _ request: Request,
    on eventLoop: any EventLoop,
    reply: @escaping @Sendable (Response) -> Void
  ) -> (@Sendable () -> Void)?
}

/// One listening socket: HTTP/1.1, and HTTP/2 if a pipeline for it is given.
///
/// `run()` throws `ListenError` when it cannot have the address. On graceful shutdown it stops
/// accepting, lets running requests finish for `drainTimeMax`, then cancels their tasks and closes
/// their connections; a task that ignores that is waited for `abortTimeMax` more. Cancelling
/// `run()` does the latter at once.
package struct HTTPService: Service {
  /// Answers one request; a thrown error becomes a Google JSON error body.
  ///
  /// Runs in a task of its own, one at a time for a connection; the task is cancelled when its
  /// client leaves and when the drain time is over. The rest of an unread body is skipped if it is
  /// short, and else ends the connection.
  package typealias Responder = @Sendable (Request, HTTPContext) async throws -> Response

  /// Looks at the head of an HTTP/1.1 request before the responder; a response settles the request.
  package typealias Screen = @Sendable (Request) -> Response?

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
  private let outlivesClient: @Sendable (Request) -> Bool
  private let responder: Responder

  /// A server that does nothing before `run()`.
  ///
  /// `http2` builds the pipeline of a connection that begins with the HTTP/2 preface; without it
  /// such a connection is a malformed request. `roster` bounds the connections of all services that
  /// share it; without it the service has one of its own. `budget` bounds their memory for bodies
  /// and responses; without it there is no bound. `immediate` is asked before the responder.
  /// `onListening` gets the address with the real port; connections made while it runs wait until
  /// it returns. `onQuiesce` is called when shutdown begins: end there what would outlast the drain
  /// time. A request whose client has left is finished all the same if `outlivesClient` returns
  /// true for its head; then only a stop cancels the responder's task.
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
    self.outlivesClient = outlivesClient
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
    /// How long a connection may be silent between requests, or leave its responses unread.
    ///
    /// Longer than the 600 s of Google's front ends, so that a client which pools connections as it
    /// does for them never writes to a connection that is just being closed.
    package var idleTimeMax: Duration
    /// How long a new connection may leave its protocol undecided.
    package var sniffTimeMax: Duration
    /// How long the head of a request may take to come, once it has begun.
    package var headTimeMax: Duration
    /// How long a body may take to come that is so short that nobody hears of it before its end.
    package var shortBodyTimeMax: Duration
    /// How long a longer body may pause.
    package var bodyPauseMax: Duration
    /// How long a longer body may take at any rate; as Apache's and nginx's usual limits.
    package var bodyTimeMin: Duration
    /// The bytes a second that it must have come at on average after that time; 0 for any.
    ///
    /// Slower than any network, and enough that a body of a byte now and then does not stay for
    /// hours. Does not count while the reader is busy, nor once the response has begun.
    package var bodyRateMin: Int
    /// How long a client that sends no more is believed to wait for its answer before it is asked.
    ///
    /// Nil for servers whose clients mean by it that they have left.
    package var halfCloseTimeMax: Duration?
    /// How long requests may still run after graceful shutdown has begun.
    package var drainTimeMax: Duration
    /// The size of all header fields of a request together; tokens and cookies fit many times.
    package var headerBytesMax: Int

    /// The bounds; each has a default that suits a development machine.
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
    } catch let error where error is IOError || error is SocketAddressError {
      throw ListenError(address, cause: error)
    }
    defer { removeSocketFile() }
    roster.enter(door: listener)
    await onListening(address.bound(to: listener.localAddress))
    await withTaskCancellationOrGracefulShutdownHandler {
      // It fails when the socket is closed already; then there is nothing to wait for.
      try? await listener.setOption(.autoRead, value: true).get()
      try? await listener.closeFuture.get()
    } onCancelOrGracefulShutdown: {
      listener.close(promise: nil)
    }
    onQuiesce()
    connections.quiesce()
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await connections.ended() }
      // Cancelled when the server has drained.
      group.addTask { try? await Task.sleep(for: configuration.drainTimeMax) }
      await group.next()
      connections.abort()
      group.cancelAll()
      await endWait(for: connections)
    }
  }

  /// Waits a little for the tasks that `abort` has cancelled.
  private func endWait(for connections: OpenConnections) async {
    let bound = Task.isCancelled ? Duration.zero : Self.abortTimeMax
    // Owned by this call, which awaits it; of its own, because this task may be cancelled.
    let timer = Task {
      try? await Task.sleep(for: bound)
      let left = connections.endWait()
      guard left > 0 else { return }
      logger.debug("Requests ignore the stop", metadata: ["tasks": "\(left)"])
    }
    await connections.ended()
    timer.cancel()
  }

  /// How long cancelled requests may still run before the service ends without them.
  private static let abortTimeMax = Duration.milliseconds(200)

  private func listen(_ connections: OpenConnections) async throws -> any Channel {
    let exchanges = HTTPExchanges(
      configuration: configuration,
      roster: roster,
      budget: budget,
      connections: connections,
      screen: screen,
      immediate: immediate,
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

  /// Prepares an accepted connection; NIO lets no bytes in before this has returned.
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
    try pipeline.addHandler(
      ByteToMessageHandler(
        HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits)
      )
    )
    try pipeline.addHandler(HTTP1Connection(exchanges, watch: watch))
  }

  private func removeSocketFile() {
    if case .unixSocket(let path) = address { unlink(path) }
  }
}

extension HTTPService: CustomStringConvertible {
  /// A description for the log.
  package var description: String { "HTTP at \(address)" }
}

extension ServerAddress {
  /// The same address with the port that the system chose.
  fileprivate func bound(to socket: SocketAddress?) -> ServerAddress {
    guard case .tcp(let host, let port) = self else { return self }
    return .tcp(host: host, port: socket?.port ?? port)
  }
}
