package import HTTPSupport
package import Logging
package import NIOCore
package import StatusCodes

/// A server for gRPC over HTTP/2, on connections that another component accepts.
///
/// Pass `configure` to `HTTPService` as its `http2`. When the connection is asked to quiesce, the
/// client receives GOAWAY, running calls finish, and the connection closes. The component that
/// accepted the connection limits the time for this.
package struct GRPCServer: Sendable {
  private let methods: [String: GRPCMethod]
  private let services: Set<String>
  private let rest: HTTP2Responder?
  private let elsewhere: @Sendable (_ path: String) -> String?
  private let configuration: Configuration
  private let budget: TransferBudget?
  private let logger: Logger

  /// Creates a server for the given services; for a repeated method the last service is used.
  ///
  /// - `rest` handles streams that are not gRPC; without it they receive 415.
  /// - `budget` limits the memory for incoming requests and unread replies; without it only the
  ///   limits per connection apply.
  /// - `elsewhere` may return a hint about the server of a method that no service has. The hint is
  ///   added to the `UNIMPLEMENTED` message.
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

  /// The limits of a connection and its calls.
  package struct Configuration: Sendable {
    /// The maximum size of a request message, before and after decompression; production's limit.
    package var requestBytesMax: Int
    /// The status for a message that is too long; gRPC's own libraries use `RESOURCE_EXHAUSTED`.
    package var requestTooLargeCode: StatusCode
    /// The maximum number of bytes of incomplete requests that all calls of a connection hold.
    ///
    /// It is several times the largest request. The call that exceeds it ends with
    /// `RESOURCE_EXHAUSTED`.
    package var heldBytesMax: Int
    /// The maximum number of open calls on one connection.
    ///
    /// Each listener of a client is a call, and some clients have hundreds. NIO's limit of 100
    /// would make further calls wait silently.
    package var streamsMax: Int
    /// The maximum number of running handlers of one connection.
    ///
    /// Handlers of cancelled calls count as well. Beyond the maximum, a new call is refused in a
    /// way that clients retry. Quick resets therefore cannot start an unlimited number of handlers.
    package var runningCallsMax: Int
    /// The maximum size of all headers of one call.
    ///
    /// It has room for several times the size of an ID token, an App Check token and the routing
    /// headers.
    package var headerBytesMax: Int
    /// The maximum number of resets by the client within `floodWindow`.
    ///
    /// A closing client resets all its calls at once, and tests open and close clients all day.
    package var resetsMax: Int
    /// The maximum number of PING, SETTINGS and PRIORITY frames within `floodWindow`.
    ///
    /// Common gRPC clients measure bandwidth with a PING for each burst of data, and on loopback
    /// bursts are short.
    package var controlFramesMax: Int
    /// The minimum time between PINGs of a client that receives no data.
    ///
    /// gRPC clients send keep-alives at most every 10 seconds. gRPC servers require 5 minutes by
    /// default, Google's servers less, and the mobile Firestore clients send one every 30 seconds.
    package var pingIntervalMin: Duration
    /// The time window for counting resets, control frames and glitches.
    package var floodWindow: Duration
    /// The maximum number of glitches within `floodWindow`.
    ///
    /// Data for a call that has just ended is an example of a glitch. A call that ends while its
    /// client is still sending can cause as many glitches as its window has frames.
    package var glitchesMax: Int
    /// The number of bytes that a client may send ahead on one call.
    ///
    /// The default is a fraction of the largest request.
    package var streamWindowBytes: Int
    /// The number of bytes that a client may send ahead on all calls together.
    package var connectionWindowBytes: Int
    /// The time without input after which the server sends a keep-alive PING.
    package var keepAliveInterval: Duration
    /// The time for the reply to a keep-alive PING, after which the connection is closed.
    package var keepAliveTimeMax: Duration
    /// The idle time after which the server sends GOAWAY.
    ///
    /// Clients open a new connection when they need one.
    package var idleTimeMax: Duration

    /// Creates limits; the reason for each default is in the comment of its property.
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

  /// Builds the HTTP/2 pipeline of a connection; must be called on the connection's event loop.
  @Sendable package func configure(_ channel: any Channel) -> EventLoopFuture<Void> {
    let router = GRPCRouter(
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
          open: router.open
        )
      )
    }
  }
}
