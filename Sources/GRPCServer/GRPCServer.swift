package import Logging
package import NIOCore
import NIOHTTP2

/// gRPC over HTTP/2, on connections that somebody else accepts.
///
/// Give `configure` to `HTTPService` as its `http2`. When the connection is told to quiesce, the
/// client gets GOAWAY, running calls finish, and the connection closes; who accepted it bounds the
/// time.
package struct GRPCServer: Sendable {
  private let methods: [String: GRPCMethod]
  private let services: Set<String>
  private let elsewhere: @Sendable (_ path: String) -> String?
  private let configuration: Configuration
  private let logger: Logger

  /// A server for these services; a method given twice is the last one's.
  ///
  /// `elsewhere` may say where a method is served that none of them has, for the message of its
  /// `UNIMPLEMENTED`.
  package init(
    services: [GRPCService],
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
    self.elsewhere = elsewhere
    self.configuration = configuration
    self.logger = logger
  }

  /// The bounds of a connection and its calls.
  package struct Configuration: Sendable {
    /// The longest request message; production's limit.
    package var requestBytesMax: Int
    /// Calls at once on one connection.
    ///
    /// Each listener of a client is one, and clients with hundreds exist. NIO's 100 would make
    /// the next calls wait without a word.
    package var streamsMax: Int
    /// All headers of one call together.
    ///
    /// Holds an ID token, an App Check token and the routing headers several times.
    package var headerBytesMax: Int
    /// Resets by the client within `floodWindow`.
    ///
    /// A client that closes resets all its calls at once, and tests open and close clients all
    /// day. NIO closes the connection after 200.
    package var resetsMax: Int
    /// PING, SETTINGS and PRIORITY frames within `floodWindow`.
    ///
    /// The common gRPC clients measure bandwidth by a PING for every burst of data; on loopback
    /// bursts are short. NIO closes the connection after 200.
    package var controlFramesMax: Int
    /// The time over which resets and control frames are counted.
    package var floodWindow: Duration
    /// Odd events in a connection's whole life, such as data for a call that has just ended.
    ///
    /// Every call that ends while its client still sends can cause some, and connections live
    /// for days. NIO closes the connection after 200.
    package var glitchesMax: Int
    /// How much a client may send ahead on one call; a fraction of the largest request.
    package var streamWindowBytes: Int
    /// How much a client may send ahead on all calls together.
    package var connectionWindowBytes: Int
    /// Silence after which the client is asked for a sign of life.
    package var keepAliveInterval: Duration
    /// How long the sign of life may take.
    package var keepAliveTimeMax: Duration

    /// The bounds; each default's reason stands beside its property.
    package init(
      requestBytesMax: Int = 10 * 1024 * 1024,
      streamsMax: Int = 1000,
      headerBytesMax: Int = 64 * 1024,
      resetsMax: Int = 20_000,
      controlFramesMax: Int = 20_000,
      floodWindow: Duration = .seconds(30),
      glitchesMax: Int = 1_000_000,
      streamWindowBytes: Int = 256 * 1024,
      connectionWindowBytes: Int = 4 * 1024 * 1024,
      keepAliveInterval: Duration = .seconds(300),
      keepAliveTimeMax: Duration = .seconds(20)
    ) {
      self.requestBytesMax = requestBytesMax
      self.streamsMax = streamsMax
      self.headerBytesMax = headerBytesMax
      self.resetsMax = resetsMax
      self.controlFramesMax = controlFramesMax
      self.floodWindow = floodWindow
      self.glitchesMax = glitchesMax
      self.streamWindowBytes = streamWindowBytes
      self.connectionWindowBytes = connectionWindowBytes
      self.keepAliveInterval = keepAliveInterval
      self.keepAliveTimeMax = keepAliveTimeMax
    }
  }

  /// Builds the HTTP/2 pipeline of a connection; to be called on its event loop.
  @Sendable package func configure(_ channel: any Channel) -> EventLoopFuture<Void> {
    let connection = GRPCConnection(
      methods: methods,
      services: services,
      elsewhere: elsewhere,
      requestBytesMax: configuration.requestBytesMax,
      remoteAddress: channel.remoteAddress,
      logger: logger
    )
    return channel.eventLoop.makeCompletedFuture {
      let manager = NIOHTTP2ServerConnectionManagementHandler(
        eventLoop: channel.eventLoop,
        configuration: .init(
          maxIdleTime: nil,
          maxAge: nil,
          maxGraceTime: nil,
          keepalive: .init(
            pingInterval: TimeAmount(configuration.keepAliveInterval),
            ackTimeout: TimeAmount(configuration.keepAliveTimeMax)
          )
        )
      )
      let http2 = NIOHTTP2Handler(
        mode: .server,
        eventLoop: channel.eventLoop,
        connectionConfiguration: configuration.connection,
        streamConfiguration: configuration.stream,
        streamDelegate: manager.http2StreamDelegate
      ) { stream in
        stream.eventLoop.makeCompletedFuture {
          try stream.pipeline.syncOperations.addHandler(GRPCStreamHandler(connection))
        }
      }
      try channel.pipeline.syncOperations.addHandlers(http2, manager, ConnectionEndHandler(logger))
    }
  }
}

/// What the calls of one connection share.
final class GRPCConnection: Sendable {
  let methods: [String: GRPCMethod]
  let services: Set<String>
  let elsewhere: @Sendable (_ path: String) -> String?
  let requestBytesMax: Int
  let remoteAddress: SocketAddress?
  let logger: Logger

  init(
    methods: [String: GRPCMethod],
    services: Set<String>,
    elsewhere: @escaping @Sendable (_ path: String) -> String?,
    requestBytesMax: Int,
    remoteAddress: SocketAddress?,
    logger: Logger
  ) {
    self.methods = methods
    self.services = services
    self.elsewhere = elsewhere
    self.requestBytesMax = requestBytesMax
    self.remoteAddress = remoteAddress
    self.logger = logger
  }
}

extension GRPCServer.Configuration {
  /// Replies held for a slow client before the call's `send` waits; four HTTP/2 frames.
  private static let outboundBytesHigh = 64 * 1024
  private static let outboundBytesLow = 32 * 1024

  fileprivate var connection: NIOHTTP2Handler.ConnectionConfiguration {
    var connection = NIOHTTP2Handler.ConnectionConfiguration()
    connection.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: streamsMax),
      HTTP2Setting(parameter: .maxHeaderListSize, value: headerBytesMax),
      HTTP2Setting(parameter: .initialWindowSize, value: streamWindowBytes),
    ]
    connection.targetWindowSize = connectionWindowBytes
    connection.controlFrameRateLimit.maximumCount = controlFramesMax
    connection.controlFrameRateLimit.windowLength = TimeAmount(floodWindow)
    connection.maximumConnectionGlitches = glitchesMax
    // Frames that were on their way when we reset a call are its last ones, not an offence.
    connection.maximumRecentlyResetStreams = streamsMax
    return connection
  }

  fileprivate var stream: NIOHTTP2Handler.StreamConfiguration {
    var stream = NIOHTTP2Handler.StreamConfiguration()
    stream.targetWindowSize = streamWindowBytes
    stream.outboundBufferSizeHighWatermark = Self.outboundBytesHigh
    stream.outboundBufferSizeLowWatermark = Self.outboundBytesLow
    stream.streamResetFrameRateLimit.maximumCount = resetsMax
    stream.streamResetFrameRateLimit.windowLength = TimeAmount(floodWindow)
    stream.streamErrorRateLimit.maximumCount = resetsMax
    stream.streamErrorRateLimit.windowLength = TimeAmount(floodWindow)
    return stream
  }
}

/// Closes a connection that has failed or that the client has left.
private final class ConnectionEndHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private let logger: Logger

  init(_ logger: Logger) {
    self.logger = logger
  }

  /// A listener that keeps half-closed connections tells us of a client's leaving like this only.
  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed = event { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  /// NIO has answered the error, with a reset for one stream or GOAWAY for all.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is NIOHTTP2Errors.StreamError { return }
    logger.debug("An HTTP/2 connection failed", metadata: ["error": "\(error)"])
    context.close(promise: nil)
  }
}
