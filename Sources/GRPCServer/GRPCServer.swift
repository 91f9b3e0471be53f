package import Logging
package import NIOCore
package import RuntimeSupport

/// gRPC over HTTP/2, on connections that somebody else accepts.
///
/// Give `configure` to `HTTPService` as its `http2`. When the connection is told to quiesce, the
/// client gets GOAWAY, running calls finish, and the connection closes; who accepted it bounds the
/// time.
package struct GRPCServer: Sendable {
  private let methods: [String: GRPCMethod]
  private let services: Set<String>
  private let rest: HTTP2Responder?
  private let elsewhere: @Sendable (_ path: String) -> String?
  private let configuration: Configuration
  private let logger: Logger

  /// A server for these services; a method given twice is the last one's.
  ///
  /// `rest` answers the streams that are not gRPC's; without it they get 415. `elsewhere` may say
  /// where a method is served that none of them has, for the message of its `UNIMPLEMENTED`.
  package init(
    services: [GRPCService],
    rest: HTTP2Responder? = nil,
    configuration: Configuration = Configuration(),
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
    self.logger = logger
  }

  /// The bounds of a connection and its calls.
  package struct Configuration: Sendable {
    /// The longest request message, before and after decompression; production's limit.
    package var requestBytesMax: Int
    /// What a longer one gets; gRPC's own libraries say `RESOURCE_EXHAUSTED`.
    package var requestTooLargeCode: StatusCode
    /// What all calls of a connection hold of requests that are not complete.
    ///
    /// Several of the largest; the call that asks for more ends with `RESOURCE_EXHAUSTED`.
    package var heldBytesMax: Int
    /// Calls at once on one connection.
    ///
    /// Each listener of a client is one, and clients with hundreds exist. NIO's 100 would make
    /// the next calls wait without a word.
    package var streamsMax: Int
    /// Handlers at work for one connection, those of cancelled calls included.
    ///
    /// Past it a new call is refused in a way that clients retry, so that resetting calls quickly
    /// does not start more of them than stay open.
    package var runningCallsMax: Int
    /// All headers of one call together.
    ///
    /// Holds an ID token, an App Check token and the routing headers several times.
    package var headerBytesMax: Int
    /// Resets by the client within `floodWindow`.
    ///
    /// A client that closes resets all its calls at once, and tests open and close clients all
    /// day.
    package var resetsMax: Int
    /// PING, SETTINGS and PRIORITY frames within `floodWindow`.
    ///
    /// The common gRPC clients measure bandwidth by a PING for every burst of data; on loopback
    /// bursts are short.
    package var controlFramesMax: Int
    /// PINGs of a client that gets no data may not follow one another more quickly.
    ///
    /// gRPC's clients keep their connections alive every 10 seconds at most; its servers ask for 5
    /// minutes by default, Google's for less, and the mobile Firestore clients send one each 30 s.
    package var pingIntervalMin: Duration
    /// The time over which resets, control frames and odd events are counted.
    package var floodWindow: Duration
    /// Odd events within `floodWindow`, such as data for a call that has just ended.
    ///
    /// Every call that ends while its client still sends can cause as many as its window has frames.
    package var glitchesMax: Int
    /// How much a client may send ahead on one call; a fraction of the largest request.
    package var streamWindowBytes: Int
    /// How much a client may send ahead on all calls together.
    package var connectionWindowBytes: Int
    /// Silence after which the client is asked for a sign of life.
    package var keepAliveInterval: Duration
    /// How long the sign of life may take; then the connection is closed.
    package var keepAliveTimeMax: Duration
    /// A connection without calls for so long is told to go; clients open another when they need it.
    package var idleTimeMax: Duration

    /// The bounds; each default's reason stands beside its property.
    package init(
      requestBytesMax: Int = 10 * 1024 * 1024,
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

  /// Builds the HTTP/2 pipeline of a connection; to be called on its event loop.
  @Sendable package func configure(_ channel: any Channel) -> EventLoopFuture<Void> {
    let connection = GRPCConnection(
      methods: methods,
      services: services,
      rest: rest,
      elsewhere: elsewhere,
      configuration: configuration,
      channel: channel,
      logger: logger
    )
    return channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(
        HTTP2Connection(configuration: configuration, logger: logger, open: connection.open)
      )
    }
  }
}
