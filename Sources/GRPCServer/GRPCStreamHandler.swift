import Logging
import NIOCore
import NIOHPACK
import NIOHTTP2
import RuntimeSupport

/// One call: reads its stream, runs its method's handler in a task, writes what that answers.
///
/// `@unchecked Sendable`: all properties are touched on the stream's event loop only; the call's
/// task holds a reference just to come back to it.
final class GRPCStreamHandler: ChannelDuplexHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundIn = Never
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// Longer timeouts are as good as none; this one keeps the clock's arithmetic from overflowing.
  private static let timeoutMax = Duration.seconds(30 * 24 * 3600)

  private let connection: GRPCConnection
  private var state: GRPCStreamState
  private var context: ChannelHandlerContext?
  private var method: GRPCMethod?
  private var callContext: GRPCContext?
  private var task: Task<Void, Never>?
  private var writer: GRPCStreamWriter?
  private var requests: GRPCInboundMessages.Source?
  private var isReadingPaused = false
  private var isReadWanted = false
  private var deadlineTimer: Scheduled<Void>?

  init(_ connection: GRPCConnection) {
    self.connection = connection
    self.state = GRPCStreamState(requestBytesMax: connection.requestBytesMax)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    streamEnded()
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    streamEnded()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A reset by the client comes this way and is followed by `channelInactive`; an error of this
    // stream alone has been answered with a reset by NIO. Either way the call is over.
    streamEnded()
  }

  // MARK: Inbound

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let payload):
      if payload.endStream { state.receivedEnd() }
      if state.isAwaitingHead { open(payload.headers) }
    case .data(let payload):
      guard case .byteBuffer(let bytes) = payload.data else { return }
      state.received(bytes)
      if payload.endStream { state.receivedEnd() }
    default:
      return
    }
    while let action = state.next() { act(action) }
  }

  func read(context: ChannelHandlerContext) {
    if isReadingPaused {
      isReadWanted = true
    } else {
      context.read()
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    writer?.setWritable(context.channel.isWritable)
    context.fireChannelWritabilityChanged()
  }

  private func open(_ headers: HPACKHeaders) {
    let head: GRPCRequestHead
    do {
      head = try GRPCRequestHead(headers)
    } catch {
      return refuse(error)
    }
    guard let method = connection.methods[head.path] else {
      return end(unknownMethod(head.path))
    }
    self.method = method
    callContext = GRPCContext(
      path: head.path,
      metadata: headers,
      deadline: head.timeout.map { ContinuousClock.now + min($0, Self.timeoutMax) },
      remoteAddress: connection.remoteAddress
    )
    if let timeout = head.timeout { startTimer(timeout) }
    state.opened(takesOneRequest: method.takesOneRequest)
    if case .bidirectional(let handler) = method { runBidirectional(handler) }
  }

  private func act(_ action: GRPCStreamState.Action) {
    switch action {
    case .call(let request):
      run(request)
    case .deliver(let message):
      if requests?.yield(message) == .stopProducing { isReadingPaused = true }
    case .finishRequests:
      requests?.finish()
    case .fail(let error):
      end(error)
      cancelCall()
    }
  }

  private func unknownMethod(_ path: String) -> StatusError {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].isEmpty, connection.services.contains(String(parts[1])) else {
      let hint = connection.elsewhere(path).map { " " + $0 } ?? ""
      return StatusError(.unimplemented, "No service answers \(path).\(hint)")
    }
    return StatusError(.unimplemented, "The service \(parts[1]) has no method \(parts[2]).")
  }

  private func startTimer(_ timeout: Duration) {
    guard let context else { return }
    deadlineTimer = context.eventLoop.scheduleTask(
      in: TimeAmount(min(timeout, Self.timeoutMax))
    ) {
      self.deadlinePassed()
    }
  }

  private func deadlinePassed() {
    deadlineTimer = nil
    if state.isEnded {
      // The end is written, but the client takes nothing: it has had its time.
      reset(.cancel)
    } else {
      end(StatusError(.deadlineExceeded, "The deadline of the call has passed."))
      cancelCall()
    }
  }

  // MARK: The call's task

  // Each task below is owned by this handler, which cancels it when its stream or its time ends;
  // a handler that heeds cancellation ends with it.

  private func run(_ request: ByteBuffer) {
    guard let context, let method, let callContext else { return }
    let loop = context.eventLoop
    switch method {
    case .unary(let handler):
      task = Task {
        do {
          let reply = try await handler(request, callContext)
          loop.execute { self.finish(reply) }
        } catch {
          loop.execute { self.finish(throwing: error) }
        }
      }
    case .serverStreaming(let handler):
      let writer = makeWriter(loop)
      task = Task {
        do {
          try await handler(request, writer, callContext)
          loop.execute { self.finish() }
        } catch {
          loop.execute { self.finish(throwing: error) }
        }
      }
    case .bidirectional:
      break
    }
  }

  private func runBidirectional(
    _ handler:
      @escaping @Sendable (GRPCInboundMessages, GRPCStreamWriter, GRPCContext) async throws -> Void
  ) {
    guard let context, let callContext else { return }
    let loop = context.eventLoop
    let writer = makeWriter(loop)
    let (messages, source) = GRPCInboundMessages.make {
      loop.execute { self.resumeReading() }
    }
    requests = source
    task = Task {
      do {
        try await handler(messages, writer, callContext)
        loop.execute { self.finish() }
      } catch {
        loop.execute { self.finish(throwing: error) }
      }
    }
  }

  private func makeWriter(_ loop: any EventLoop) -> GRPCStreamWriter {
    let writer = GRPCStreamWriter {
      loop.execute { self.writeQueued() }
    }
    self.writer = writer
    return writer
  }

  private func resumeReading() {
    guard isReadingPaused else { return }
    isReadingPaused = false
    guard isReadWanted else { return }
    isReadWanted = false
    context?.read()
  }

  // MARK: Outbound

  private func writeQueued() {
    guard let writer, let context else { return }
    let frames = writer.take()
    for frame in frames { write(frame) }
    context.flush()
    writer.setWritable(context.channel.isWritable)
  }

  private func finish(_ reply: ByteBuffer) {
    write(reply)
    end(nil)
  }

  private func finish() {
    writeQueued()
    end(nil)
  }

  private func finish(throwing error: any Error) {
    writeQueued()
    end(status(of: error))
  }

  private func status(of error: any Error) -> StatusError {
    switch error {
    case let error as any StatusConvertible:
      return StatusError(error.statusCode, error.statusMessage)
    case is CancellationError:
      return StatusError(.cancelled, "The call was cancelled.")
    default:
      connection.logger.error(
        "A call failed without a status",
        metadata: ["grpc.path": "\(callContext?.path ?? "")", "error": "\(error)"]
      )
      return StatusError(.internal, "Internal error.")
    }
  }

  private func write(_ frame: ByteBuffer) {
    guard let context, let isFirst = state.sending() else { return }
    if isFirst { write(context, headers: GRPCTrailers.head) }
    context.write(wrapOutboundOut(.data(.init(data: .byteBuffer(frame)))), promise: nil)
  }

  /// Ends the call, with nil as success, unless it has ended already.
  private func end(_ status: StatusError?) {
    guard let context, let end = state.end() else { return }
    let status = status ?? StatusError(.ok, "")
    let trailers = GRPCTrailers.make(status, trailersOnly: end.trailersOnly)
    write(context, headers: trailers, endStream: true)
    writer?.close()
    requests?.finish()
    if end.reset {
      reset(.noError)
    } else {
      context.flush()
    }
  }

  private func refuse(_ refusal: GRPCRequestHead.Refusal) {
    switch refusal {
    case .status(let error):
      end(error)
    case .compression(let error):
      var trailers = GRPCTrailers.make(error, trailersOnly: true)
      trailers.add(name: "grpc-accept-encoding", value: "identity")
      endAtOnce(trailers)
    case .http(let status):
      endAtOnce([":status": String(status), "content-length": "0"])
    }
  }

  private func endAtOnce(_ headers: HPACKHeaders) {
    guard let context, let end = state.end() else { return }
    write(context, headers: headers, endStream: true)
    if end.reset {
      reset(.noError)
    } else {
      context.flush()
    }
  }

  private func write(
    _ context: ChannelHandlerContext,
    headers: HPACKHeaders,
    endStream: Bool = false
  ) {
    let payload = HTTP2Frame.FramePayload.headers(.init(headers: headers, endStream: endStream))
    context.write(wrapOutboundOut(payload), promise: nil)
  }

  /// Tells the client that nothing more is read or written.
  private func reset(_ code: HTTP2ErrorCode) {
    context?.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
  }

  private func cancelCall() {
    task?.cancel()
    writer?.close()
    requests?.finish(CancellationError())
  }

  private func streamEnded() {
    state.closed()
    deadlineTimer?.cancel()
    deadlineTimer = nil
    cancelCall()
    task = nil
    writer = nil
    requests = nil
  }
}
