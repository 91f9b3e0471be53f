import Invocation
import HTTPMessages
import HTTPTypes
import LibC
import NIOCore
import NIOHTTP1
import NIOPosix
import StatusCodes

/// The owner of a connection, notified of the outcome of its invocation.
protocol InvocationOwner: AnyObject, Sendable {
  /// The worker has finished the invocation; the connection is idle again if `isReusable`.
  func invocationEnded(
    _ invocation: WorkerInvocation,
    on connection: WorkerConnection,
    isReusable: Bool
  )
  /// The connection closed before the response was complete.
  func invocationBroke(_ invocation: WorkerInvocation)
  /// No part of the request was sent.
  func invocationNotSent(_ invocation: WorkerInvocation)
}

/// An HTTP/1.1 connection to a worker's socket that carries one invocation at a time.
final class WorkerConnection: Sendable {
  private let channel: any Channel
  private let handler: NIOLoopBound<WorkerConnectionHandler>

  /// The address at which a worker listens.
  enum Address {
    case socket(String)
    /// A port on the loopback interface.
    case port(Int)
  }

  private init(channel: any Channel, handler: NIOLoopBound<WorkerConnectionHandler>) {
    self.channel = channel
    self.handler = handler
  }

  /// Opens a connection; the future fails if no process listens at the address.
  static func connect(
    to address: Address,
    on eventLoop: any EventLoop,
    _ configuration: WorkerFleet.Configuration
  ) -> EventLoopFuture<WorkerConnection> {
    let bootstrap = ClientBootstrap(group: eventLoop)
    let connected =
      switch address {
      case .socket(let path): bootstrap.connect(unixDomainSocketPath: path)
      case .port(let port): bootstrap.connect(host: "127.0.0.1", port: port)
      }
    return connected.flatMapThrowing { channel in
      // HTTPTypes has already validated the header names and values.
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

  /// Sends the request of an invocation and reports the outcome to `owner`.
  func send(_ invocation: WorkerInvocation, for owner: any InvocationOwner) {
    if channel.eventLoop.inEventLoop {
      handler.value.start(invocation, for: owner)
    } else {
      channel.eventLoop.execute { self.handler.value.start(invocation, for: owner) }
    }
  }

  /// Sends a request's body as it arrives, each piece once the previous one has been written.
  fileprivate func upload(
    _ pieces: AsyncThrowingStream<ByteBuffer, any Error>,
    of invocation: WorkerInvocation
  ) {
    // The task ends with the body, or with the first piece after the invocation's end. It is not
    // cancelled, because that would also close the client's connection. The service that produced
    // the body waits until its reader has finished.
    Task {
      do {
        for try await piece in pieces {
          guard try await send(piece, of: invocation) else { return }
        }
        channel.eventLoop.execute { self.handler.value.uploadEnded(of: invocation) }
      } catch {
        invocation.abandon(error)
      }
    }
  }

  /// Sends one piece; returns false if the invocation no longer takes its request body.
  private func send(_ piece: ByteBuffer, of invocation: WorkerInvocation) async throws -> Bool {
    let promise = channel.eventLoop.makePromise(of: Bool.self)
    channel.eventLoop.execute { self.handler.value.upload(piece, of: invocation, promise) }
    return try await promise.futureResult.get()
  }

  /// The event loop of the connection.
  var eventLoop: any EventLoop { channel.eventLoop }

  /// Records that no caller is waiting for this invocation anymore.
  func cancel(_ invocation: WorkerInvocation) {
    channel.eventLoop.execute { self.handler.value.cancel(invocation) }
  }

  /// Delivers what the worker has sent, then ends the invocation unless its response is complete.
  ///
  /// `end` is called on the connection's event loop.
  func endAfterReading(_ invocation: WorkerInvocation, _ end: @escaping @Sendable () -> Void) {
    channel.eventLoop.execute { self.handler.value.endAfterReading(invocation, end) }
  }

  /// Resumes reading, because the body's buffer has room again.
  func resumeReading() {
    channel.eventLoop.execute { self.handler.value.resumeReading() }
  }

  /// True if the connection runs on an event loop, or if no event loop is given.
  func isOf(_ eventLoop: (any EventLoop)?) -> Bool {
    eventLoop.map { $0 === channel.eventLoop } ?? true
  }

  var isActive: Bool { channel.isActive }

  func close() {
    channel.close(promise: nil)
  }
}

/// The channel handler that carries out the decisions of `ConnectionStateMachine`.
final class WorkerConnectionHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// The connection of this handler, set before the first invocation.
  ///
  /// It is cleared when the channel closes, which breaks the reference cycle.
  var connection: WorkerConnection?
  private let configuration: WorkerFleet.Configuration
  private var machine: ConnectionStateMachine
  private var context: ChannelHandlerContext?
  private var invocation: WorkerInvocation?
  private var owner: (any InvocationOwner)?
  private var head: HTTPResponse?
  private var stream: ResponseStream?
  private var isPaused = false
  /// True until the end of the request is written.
  private var isUploading = false
  /// Ends an invocation whose worker has crashed, once nothing is left to read.
  private var endWhenRead: (@Sendable () -> Void)?

  init(_ configuration: WorkerFleet.Configuration) {
    self.configuration = configuration
    self.machine = ConnectionStateMachine(wholeBytesMax: configuration.wholeReplyBytesMax)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    connection = nil
  }

  func start(_ invocation: WorkerInvocation, for owner: any InvocationOwner) {
    guard let context, let connection, context.channel.isActive, machine.isIdle else {
      owner.invocationNotSent(invocation)
      return
    }
    guard invocation.started(on: connection) else {
      owner.invocationEnded(invocation, on: connection, isReusable: true)
      return
    }
    _ = machine.start()
    self.invocation = invocation
    self.owner = owner
    let request = invocation.request
    write(context, .head(HTTPRequestHead(request, clockLead: configuration.clockLead())))
    switch request.body {
    case .whole(let body):
      if body.readableBytes > 0 { write(context, .body(.byteBuffer(body))) }
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    case .stream(let pieces):
      isUploading = true
      context.flush()
      connection.upload(pieces, of: invocation)
    }
  }

  func upload(
    _ piece: ByteBuffer,
    of uploading: WorkerInvocation,
    _ promise: EventLoopPromise<Bool>
  ) {
    guard let context, uploading === invocation, isUploading else {
      promise.succeed(false)
      return
    }
    let written = context.eventLoop.makePromise(of: Void.self)
    // A failed write closes the connection, and that notifies the invocation's owner.
    written.futureResult.whenComplete { result in
      promise.succeed((try? result.get()) != nil)
    }
    context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(piece))), promise: written)
  }

  func uploadEnded(of uploaded: WorkerInvocation) {
    guard let context, uploaded === invocation, isUploading else { return }
    isUploading = false
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func cancel(_ cancelled: WorkerInvocation) {
    guard let context, cancelled === invocation else { return }
    switch machine.cancel() {
    case .none: break
    case .halfClose:
      resumeReading()
      context.close(mode: .output, promise: nil)
    }
  }

  /// Shuts the socket for reading, which still delivers the bytes that have already arrived.
  ///
  /// The worker may live on to write its crash report, so its end of the connection stays open.
  func endAfterReading(_ ending: WorkerInvocation, _ end: @escaping @Sendable () -> Void) {
    guard let context, ending === invocation, context.channel.isActive else { return end() }
    endWhenRead = end
    resumeReading()
    do {
      try context.pipeline.syncOperations.withUnsafeTransportIfAvailable {
        (socket: NIOBSDSocket.Handle) in
        // It fails only if the worker has closed the connection, whose end then arrives anyway.
        _ = shutdown(socket, Int32(SHUT_RD))
      }
    } catch {
      errorCaught(context: context, error: error)
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
    // A response to HEAD announces the length of a body that is not sent.
    let isHead = invocation?.request.head.method == .head
    let length =
      isHead ? 0 : received.headers.first(name: "content-length").flatMap(Int.init)
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
      let stream = ResponseStream(bufferedBytesMax: configuration.streamBufferBytesMax) {
        connection.resumeReading()
      }
      self.stream = stream
      invocation?.deliver(HTTPResponse(received), stream)
    }
  }

  private func receivedEnd(_ context: ChannelHandlerContext) {
    var (action, isReusable) = machine.end()
    guard action != .none, let finished = invocation else { return }
    // A worker that has responded reads no more of the request. The next request cannot begin
    // before this one has ended, so the connection is not reusable.
    if isUploading || endWhenRead != nil { isReusable = false }
    let head = head
    // The connection is freed before the caller is notified, so that its next call can use it.
    forget { invocation, owner, connection in
      owner.invocationEnded(invocation, on: connection, isReusable: isReusable)
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
    case .breakInvocation:
      endWhenRead?()
      forget { invocation, owner, _ in owner.invocationBroke(invocation) }
    case .finishAbandoned:
      forget { invocation, owner, connection in
        owner.invocationEnded(invocation, on: connection, isReusable: false)
      }
    }
  }

  /// Clears the invocation's state, then calls `tell`.
  ///
  /// The state is cleared first because the owner may start another invocation at once.
  private func forget(
    _ notify: (WorkerInvocation, any InvocationOwner, WorkerConnection) -> Void
  ) {
    guard let invocation, let owner, let connection else { return }
    self.invocation = nil
    self.owner = nil
    isUploading = false
    endWhenRead = nil
    head = nil
    stream = nil
    resumeReading()
    notify(invocation, owner, connection)
  }

  private func write(_ context: ChannelHandlerContext, _ part: HTTPClientRequestPart) {
    context.write(wrapOutboundOut(part), promise: nil)
  }
}
