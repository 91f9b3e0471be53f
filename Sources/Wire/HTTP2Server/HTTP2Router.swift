package import HTTPSupport
package import Logging
package import NIOCore
package import RuntimeSupport

/// gRPC over HTTP/2, on connections that somebody else accepts.
///
/// Give `configure` to `HTTPService` as its `http2`. When the connection is told to quiesce, the
/// client gets GOAWAY, running calls finish, and the connection closes; the acceptor bounds the
/// time.
package struct HTTP2Router: Sendable {
  private let methods: [String: GRPCMethod]
  private let services: Set<String>
  private let rest: HTTP2Responder?
  private let elsewhere: @Sendable (_ path: String) -> String?
  private let configuration: Configuration
  private let budget: TransferBudget?
  private let logger: Logger

  /// A server for these services; the last one wins when several have the same method.
  ///
  /// `rest` answers the streams that are not gRPC's; without it they get 415. For a method that
  /// none of the services has, `elsewhere` may say where it is served; the `UNIMPLEMENTED` message
  /// repeats that. `budget` bounds the memory for requests that are arriving and replies that are
  /// unread; without it only each connection has its bounds.
  package init(
    services: [GRPCService],
    rest: HTTP2Responder? = nil,
    configuration: Configuration = Configuration(),
    budget: TransferBudget? = nil,
    elsewhere: @escaping @Sendable (_ path: String) -> String? = { _ in nil },
    logger: Logger
  ) {
    var methods: [String: GRPCMethod] = [:]
    for service in services {
      for (name, method) in service.methods { methods["/\(service.name)/\(name)"] = method }
    }
    self.methods = methods
    self.services = Set(services.map(\.name))
    self.rest = rest
    self.elsewhere = elsewhere
    self.configuration = configuration
    self.budget = budget
    self.logger = logger
  }

  /// The bounds of a connection and its calls.
  package struct Configuration: Sendable {
    /// The longest request message, before and after decompression; production's limit.
    package var requestBytesMax: Int
    /// The status for a longer message; gRPC's own libraries use `RESOURCE_EXHAUSTED`.
    package var requestTooLargeCode: StatusCode
    /// The bytes of incomplete requests that all calls of a connection hold.
    ///
    /// It is several times the largest request; the call that exceeds it ends with
    /// `RESOURCE_EXHAUSTED`.
    package var heldBytesMax: Int
    /// The calls open at once on one connection.
    ///
    /// Each listener of a client is a call, and clients with hundreds exist. NIO's 100 would make
    /// further calls wait silently.
    package var streamsMax: Int
    /// The running handlers of one connection, including those of cancelled calls.
    ///
    /// Beyond it a new call is refused in a way that clients retry, so that quick resets do not
    /// start more handlers than there may be open calls.
    package var runningCallsMax: Int
    /// The size of all headers of one call together.
    ///
    /// It holds an ID token, an App Check token and the routing headers several times.
    package var headerBytesMax: Int
    /// The client's resets within `floodWindow`.
    ///
    /// A closing client resets all its calls at once, and tests open and close clients all day.
    package var resetsMax: Int
    /// The PING, SETTINGS and PRIORITY frames within `floodWindow`.
    ///
    /// The common gRPC clients measure bandwidth by a PING for every burst of data; on loopback
    /// bursts are short.
    package var controlFramesMax: Int
    /// The shortest time between PINGs of a client that gets no data.
    ///
    /// gRPC's clients send keep-alives every 10 seconds at most. gRPC's servers require 5 minutes
    /// by default, Google's less, and the mobile Firestore clients send one every 30 s.
    package var pingIntervalMin: Duration
    /// The time over which resets, control frames and odd events are counted.
    package var floodWindow: Duration
    /// The odd events within `floodWindow`, such as data for a call that has just ended.
    ///
    /// Every call that ends while its client still sends can cause as many as its window has
    /// frames.
    package var glitchesMax: Int
    /// The bytes a client may send ahead on one call; a fraction of the largest request.
    package var streamWindowBytes: Int
    /// The bytes a client may send ahead on all calls together.
    package var connectionWindowBytes: Int
    /// The silence after which the client is asked for a sign of life.
    package var keepAliveInterval: Duration
    /// The time for the sign of life, after which the connection is closed.
    package var keepAliveTimeMax: Duration
    /// The time after which an idle connection is told to go; clients open another when needed.
    package var idleTimeMax: Duration

    /// The bounds; each default's reason stands beside its property.
    package init(
      requestBytesMax: Int = 11 * 1024 * 1024,
      requestTooLargeCode: StatusCode = .resourceExhausted,
      heldBytesMax: Int = 64 * 1024 * 1024,
      streamsMax: Int = 1000,
      runningCallsMax: Int = 4000,
      headerBytesMax: Int = 64 * 1024,
      resetsMax: Int = 20_000,
      controlFramesMax: Int = 20_000,
      pingIntervalMin: Duration = .seconds(9),
      floodWindow: Duration = .seconds(30),
      glitchesMax: Int = 100_000,
      streamWindowBytes: Int = 256 * 1024,
      connectionWindowBytes: Int = 4 * 1024 * 1024,
      keepAliveInterval: Duration = .seconds(300),
      keepAliveTimeMax: Duration = .seconds(20),
      idleTimeMax: Duration = .seconds(3600)
    ) {
      self.requestBytesMax = requestBytesMax
      self.requestTooLargeCode = requestTooLargeCode
      self.heldBytesMax = heldBytesMax
      self.streamsMax = streamsMax
      self.runningCallsMax = runningCallsMax
      self.headerBytesMax = headerBytesMax
      self.resetsMax = resetsMax
      self.controlFramesMax = controlFramesMax
      self.pingIntervalMin = pingIntervalMin
      self.floodWindow = floodWindow
      self.glitchesMax = glitchesMax
      self.streamWindowBytes = streamWindowBytes
      self.connectionWindowBytes = connectionWindowBytes
      self.keepAliveInterval = keepAliveInterval
      self.keepAliveTimeMax = keepAliveTimeMax
      self.idleTimeMax = idleTimeMax
    }
  }

  /// Builds the HTTP/2 pipeline of a connection; call it on the connection's event loop.
  @Sendable package func configure(_ channel: any Channel) -> EventLoopFuture<Void> {
    let connection = GRPCConnection(
      methods: methods,
      services: services,
      rest: rest,
      elsewhere: elsewhere,
      configuration: configuration,
      channel: channel,
      budget: budget,
      logger: logger
    )
    return channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(
        HTTP2Connection(
          configuration: configuration,
          budget: budget,
          logger: logger,
          open: connection.open
        )
      )
    }
  }
}
