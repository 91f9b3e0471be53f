import HTTPTypes
import Invocation
import NIOCore
import NIOHTTP1
import NIOPosix

/// Whom a connection tells what became of the exchange it carried.
protocol ExchangeOwner: AnyObject, Sendable {
  /// The worker is done with it; the connection is idle again where `isReusable`.
  func exchangeEnded(_ exchange: Exchange, on connection: WorkerConnection, isReusable: Bool)
  /// The connection ended before the reply did.
  func exchangeBroke(_ exchange: Exchange)
  /// Nothing of it was sent.
  func exchangeNotSent(_ exchange: Exchange)
}

/// An HTTP/1.1 connection to a worker's socket, which carries one exchange at a time.
final class WorkerConnection: Sendable {
  private let channel: any Channel
  private let handler: NIOLoopBound<WorkerConnectionHandler>

  private init(channel: any Channel, handler: NIOLoopBound<WorkerConnectionHandler>) {
    self.channel = channel
    self.handler = handler
  }

  /// Connects; the future fails when nobody listens.
  static func connect(
    to path: String,
    on eventLoop: any EventLoop,
    _ configuration: WorkerFleet.Configuration
  ) -> EventLoopFuture<WorkerConnection> {
    ClientBootstrap(group: eventLoop).connect(unixDomainSocketPath: path).flatMapThrowing {
      channel in
      // Header names and values are of HTTPTypes, which has checked them.
      try channel.pipeline.syncOperations.addHTTPClientHandlers(
        enableOutboundHeaderValidation: false
      )
      let handler = WorkerConnectionHandler(configuration)
      try channel.pipeline.syncOperations.addHandler(handler)
      let connection = WorkerConnection(
        channel: channel,
        handler: NIOLoopBound(handler, eventLoop: channel.eventLoop)
      )
      handler.connection = connection
      return connection
    }
  }

  /// Sends the exchange's request; the owner hears what becomes of it.
  func send(_ exchange: Exchange, for owner: any ExchangeOwner) {
    if channel.eventLoop.inEventLoop {
      handler.value.start(exchange, for: owner)
    } else {
      channel.eventLoop.execute { self.handler.value.start(exchange, for: owner) }
    }
  }

  /// Nobody waits for this exchange any more.
  func cancel(_ exchange: Exchange) {
    channel.eventLoop.execute { self.handler.value.cancel(exchange) }
  }

  /// There is room for more of the body.
  func resumeReading() {
    channel.eventLoop.execute { self.handler.value.resumeReading() }
  }

  /// Whether the connection is open.
  var isActive: Bool { channel.isActive }

  /// Ends the connection.
  func close() {
    channel.close(promise: nil)
  }
}

/// Does what `ConnectionStateMachine` decides.
final class WorkerConnectionHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// Set before the first exchange; cleared when the channel closes, which ends the cycle.
  var connection: WorkerConnection?
  private let configuration: WorkerFleet.Configuration
  private var machine: ConnectionStateMachine
  private var context: ChannelHandlerContext?
  private var exchange: Exchange?
  private var owner: (any ExchangeOwner)?
  private var head: HTTPResponse?
  private var stream: ReplyStream?
  private var isPaused = false

  init(_ configuration: WorkerFleet.Configuration) {
    self.configuration = configuration
    self.machine = ConnectionStateMachine(wholeBytesMax: configuration.wholeReplyBytesMax)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    connection = nil
  }

  func start(_ exchange: Exchange, for owner: any ExchangeOwner) {
    guard let context, let connection, context.channel.isActive, machine.isIdle else {
      owner.exchangeNotSent(exchange)
      return
    }
    guard exchange.started(on: connection) else {
      owner.exchangeEnded(exchange, on: connection, isReusable: true)
      return
    }
    _ = machine.start()
    self.exchange = exchange
    self.owner = owner
    let request = exchange.request
    write(context, .head(HTTPRequestHead(request)))
    if request.body.readableBytes > 0 { write(context, .body(.byteBuffer(request.body))) }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func cancel(_ cancelled: Exchange) {
    guard let context, cancelled === exchange else { return }
    switch machine.cancel() {
    case .none: break
    case .halfClose:
      resumeReading()
      context.close(mode: .output, promise: nil)
    }
  }

  func resumeReading() {
    guard isPaused else { return }
    isPaused = false
    context?.read()
  }

  func read(context: ChannelHandlerContext) {
    if !isPaused { context.read() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): received(head)
    case .body(let piece):
      if case .forward(let piece) = machine.body(piece), stream?.push(piece) == false {
        isPaused = true
      }
    case .end: receivedEnd(context)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    ended()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    ended()
    context.close(promise: nil)
  }

  private func received(_ received: HTTPResponseHead) {
    let length = received.headers.first(name: "content-length").flatMap(Int.init)
    let action = machine.head(
      ConnectionStateMachine.Head(
        statusCode: Int(received.status.code),
        contentLength: length,
        isKeepAlive: received.isKeepAlive
      )
    )
    switch action {
    case .ignore: break
    case .keep: head = HTTPResponse(received)
    case .deliver:
      guard let connection else { return }
      let stream = ReplyStream(bufferedBytesMax: configuration.streamBufferBytesMax) {
        connection.resumeReading()
      }
      self.stream = stream
      exchange?.deliver(HTTPResponse(received), stream)
    }
  }

  private func receivedEnd(_ context: ChannelHandlerContext) {
    let (action, isReusable) = machine.end()
    guard action != .none, let finished = exchange else { return }
    let head = head
    // First the connection is free again, then the caller hears, so that its next call can use it.
    forget { exchange, owner, connection in
      owner.exchangeEnded(exchange, on: connection, isReusable: isReusable)
    }
    switch action {
    case .deliverWhole(let body):
      if let head { finished.deliver(head, body) }
    case .finishStream: finished.finish()
    case .none, .finishAbandoned: break
    }
    if !isReusable { context.close(promise: nil) }
  }

  private func ended() {
    switch machine.closed() {
    case .none: break
    case .breakExchange: forget { exchange, owner, _ in owner.exchangeBroke(exchange) }
    case .finishAbandoned:
      forget { exchange, owner, connection in
        owner.exchangeEnded(exchange, on: connection, isReusable: false)
      }
    }
  }

  /// Clears what belongs to the exchange first, because the owner may start the next at once.
  private func forget(
    _ tell: (Exchange, any ExchangeOwner, WorkerConnection) -> Void
  ) {
    guard let exchange, let owner, let connection else { return }
    self.exchange = nil
    self.owner = nil
    head = nil
    stream = nil
    resumeReading()
    tell(exchange, owner, connection)
  }

  private func write(_ context: ChannelHandlerContext, _ part: HTTPClientRequestPart) {
    context.write(wrapOutboundOut(part), promise: nil)
  }
}
