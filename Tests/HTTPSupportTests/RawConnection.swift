import HTTPSupport
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// A client that writes and reads raw bytes, so that tests control the exact input.
struct RawConnection {
  private let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>

  /// Connects, runs `body` and closes the connection.
  static func with<Result: Sendable>(
    _ address: ServerAddress,
    _ body: (inout Conversation) async throws -> Result
  ) async throws -> Result {
    let initializer:
      @Sendable (any Channel) -> EventLoopFuture<NIOAsyncChannel<ByteBuffer, ByteBuffer>> = {
        channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel(
            wrappingChannelSynchronously: channel,
            configuration: .init(isOutboundHalfClosureEnabled: true)
          )
        }
      }
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.allowRemoteHalfClosure, value: true)
    let channel =
      switch address {
      case .tcp(let host, let port):
        try await bootstrap.connect(host: host, port: port, channelInitializer: initializer)
      case .unixSocket(let path):
        try await bootstrap.connect(unixDomainSocketPath: path, channelInitializer: initializer)
      }
    return try await channel.executeThenClose { inbound, outbound in
      var conversation = Conversation(inbound: inbound.makeAsyncIterator(), outbound: outbound)
      return try await body(&conversation)
    }
  }

  struct Conversation {
    var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private(set) var received = ""

    init(
      inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator,
      outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    ) {
      self.inbound = inbound
      self.outbound = outbound
    }

    func send(_ text: String) async throws {
      try await outbound.write(ByteBuffer(string: text))
    }

    func finishSending() {
      outbound.finish()
    }

    /// Reads until the received text contains `text` or the server closes.
    mutating func receive(until text: String) async throws -> String {
      while !received.contains(text), let bytes = try await inbound.next() {
        received += String(buffer: bytes)
      }
      defer { received = "" }
      return received
    }

    /// Reads until the server closes.
    mutating func receiveAll() async throws -> String {
      do {
        while let bytes = try await inbound.next() { received += String(buffer: bytes) }
      } catch is IOError {
        // A reset also ends the connection.
      }
      return received
    }
  }
}

/// Runs a service and `body`, which receives its address and service group, then shuts it down.
func withService<Result: Sendable>(
  at address: ServerAddress = .tcp(host: "127.0.0.1", port: 0),
  http2: (@Sendable (any Channel) -> EventLoopFuture<Void>)? = nil,
  configuration: HTTPService.Configuration = HTTPService.Configuration(),
  roster: ConnectionRoster? = nil,
  budget: TransferBudget? = nil,
  immediate: (any ImmediateResponder)? = nil,
  upgrader: HTTPService.Upgrader? = nil,
  outlivesClient: @escaping @Sendable (Request) -> Bool = { _ in false },
  responder: @escaping HTTPService.Responder,
  _ body: (ServerAddress, ServiceGroup) async throws -> Result
) async throws -> Result {
  let (listening, continuation) = AsyncStream<ServerAddress>.makeStream()
  let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  let service = HTTPService(
    address: address,
    http2: http2,
    configuration: configuration,
    roster: roster,
    budget: budget,
    logger: logger,
    onListening: { continuation.yield($0) },
    screen: { request in
      guard request.headers[.authorization] == "refused" else { return nil }
      return .text("screened", status: .forbidden)
    },
    immediate: immediate,
    upgrader: upgrader,
    outlivesClient: outlivesClient,
    responder: responder
  )
  let group = ServiceGroup(services: [service], logger: logger)
  async let running: Void = {
    defer { continuation.finish() }
    try await group.run()
  }()
  guard let bound = await listening.first(where: { _ in true }) else {
    try await running
    throw CancellationError()
  }
  do {
    let result = try await body(bound, group)
    await group.triggerGracefulShutdown()
    try await running
    return result
  } catch {
    await group.triggerGracefulShutdown()
    throw error
  }
}
