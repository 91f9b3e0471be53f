import HTTPSupport
import Logging
import NIOCore
import NIOHPACK
import StatusCodes

/// A gRPC call: it reads its stream, runs its method's handler in a task and writes the replies.
///
/// It is `@unchecked Sendable` because all properties are accessed on the connection's event loop
/// only. The call's task holds a reference to it only to return to the event loop.
final class GRPCCall: HTTP2Call, @unchecked Sendable {
  /// The longest timeout, in effect unlimited, which keeps the clock's arithmetic from overflowing.
  private static let timeoutMax = Duration.seconds(30 * 24 * 3600)

  /// The maximum size of a quick request, which names about ten documents.
  private static let quickBytesMax = 1024

  private let server: GRPCRouter
  private let stream: HTTP2Stream
  private let method: GRPCMethod
  private let codec: GRPCCodec
  private let context: GRPCContext
  private var state: GRPCStreamState
  private var task: Task<Void, Never>?
  private var writer: GRPCStreamWriter?
  private var requests: GRPCMethod.Requests?
  private var isPaused = false
  private var deadlineTimer: Scheduled<Void>?

  /// Creates a call whose head was accepted.
  init(
    _ head: GRPCRequestHead,
    headers: HPACKHeaders,
    method: GRPCMethod,
    stream: HTTP2Stream,
    server: GRPCRouter
  ) {
    self.server = server
    self.stream = stream
    self.method = method
    codec = GRPCCodec(limit: server.limit, compressesReplies: head.acceptsCompressed)
    context = GRPCContext(
      path: head.path,
      metadata: headers,
      deadline: head.timeout.map { ContinuousClock.now + min($0, Self.timeoutMax) },
      remoteAddress: server.remoteAddress,
      connection: ObjectIdentifier(server)
    )
    state = GRPCStreamState(
      takesOneRequest: method.takesOneRequest,
      decoder: GRPCMessageDecoder(limit: server.limit, takesCompressed: head.isCompressed)
    )
    if let timeout = head.timeout {
      let time = TimeAmount(min(timeout, Self.timeoutMax))
      deadlineTimer = server.loop.scheduleTask(in: time) { self.deadlinePassed() }
    }
    if case .bidirectional(let handler) = method { runBidirectional(handler) }
  }

  // MARK: The stream

  var wantsMore: Bool { !isPaused }
  var heldBytes: Int { state.heldBytes }

  func received(_ bytes: ByteBuffer) {
    state.received(bytes)
    advance()
  }

  func receivedEnd() {
    state.receivedEnd()
    advance()
  }

  func hasRoom() {
    sendQueued()
  }

  func refuseForSize(_ error: StatusError) { fail(error) }

  func closed() {
    state.closed()
    deadlineTimer?.cancel()
    deadlineTimer = nil
    cancel()
    task = nil
    writer = nil
    requests = nil
  }

  private func advance() {
    while !isPaused, let action = state.next() {
      switch action {
      case .call(let request): run(request)
      case .deliver(let message):
        isPaused = requests?.yield(message, bytes: message.bytes.readableBytes) == false
      case .finishRequests: requests?.finish()
      case .fail(let error): fail(error)
      }
    }
  }

  private func resumeReading() {
    guard isPaused else { return }
    isPaused = false
    advance()
    stream.resumeReading()
  }

  private func deadlinePassed() {
    deadlineTimer = nil
    if state.isEnded {
      // The end was written, but the client does not read it, and its time is over.
      stream.reset(.cancel)
    } else {
      fail(StatusError(.deadlineExceeded, "The deadline of the call has passed."))
    }
  }

  private func fail(_ error: StatusError) {
    end(error)
    cancel()
  }

  private func cancel() {
    task?.cancel()
    writer?.close()
    requests?.finish(.failure(CancellationError()))
  }

  // MARK: The call's task

  private func run(_ request: GRPCMessage) {
    let codec = codec
    let context = context
    switch method {
    case .unary(let place, let handler):
      let budget = server.budget
      start(on: self.place(place, for: request)) {
        let frame = try await handler(request, codec, context)
        // Counted at once, because many replies may be on their way to the connection.
        return Reply(frame: frame, hold: try self.hold(frame, in: budget))
      }
    case .serverStreaming(let place, let handler):
      let writer = makeWriter()
      start(on: self.place(place, for: request)) {
        try await handler(request, codec, writer, context)
        return nil
      }
    case .bidirectional: break
    }
  }

  /// Returns the place where the handler runs; only short requests may use the connection's thread.
  private func place(_ place: GRPCPlace, for request: GRPCMessage) -> GRPCPlace {
    let isShort = request.bytes.readableBytes <= Self.quickBytesMax && !request.isCompressed
    return isShort ? place : .pool
  }

  private func runBidirectional(
    _ handler:
      @escaping @Sendable (GRPCMethod.Requests, GRPCCodec, GRPCStreamWriter, GRPCContext)
      async throws -> Void
  ) {
    let writer = makeWriter()
    let codec = codec
    let context = context
    let loop = server.loop
    let requests = GRPCMethod.Requests {
      loop.execute { self.resumeReading() }
    }
    self.requests = requests
    start(on: .pool) {
      try await handler(requests, codec, writer, context)
      return nil
    }
  }

  /// Runs the handler in a task owned by this call.
  ///
  /// The call cancels the task when its stream or its time ends. A handler that responds to
  /// cancellation then ends too.
  private func start(
    on place: GRPCPlace,
    _ body: @escaping @Sendable () async throws -> Reply?
  ) {
    let executor: (any TaskExecutor)? =
      switch place {
      case .pool: nil
      case .connection: server.executor
      }
    stream.connection.runningCalls += 1
    let loop = server.loop
    task = Task(executorPreference: executor) {
      let outcome: Result<Reply?, any Error>
      do {
        outcome = .success(try await body())
      } catch {
        outcome = .failure(error)
      }
      if loop.inEventLoop {
        self.finish(outcome)
      } else {
        loop.execute { self.finish(outcome) }
      }
    }
  }

  /// The only reply of a unary call, with the hold for its memory.
  private struct Reply: Sendable {
    var frame: ByteBuffer
    var hold: TransferHold?
  }

  /// Reserves memory for a large reply; throws `RESOURCE_EXHAUSTED` if there is not enough.
  private func hold(
    _ frame: ByteBuffer,
    in budget: TransferBudget?
  ) throws(StatusError) -> TransferHold? {
    guard let budget, frame.readableBytes > HTTP2Stream.uncountedBytesMax else { return nil }
    let loop = server.loop
    let hold = TransferHold(budget) { loop.execute { self.stream.reset(.enhanceYourCalm) } }
    guard hold.add(frame.readableBytes) else { throw budget.error.exhausted }
    return hold
  }

  private func makeWriter() -> GRPCStreamWriter {
    let loop = server.loop
    let writer = GRPCStreamWriter(budget: server.budget) {
      if loop.inEventLoop {
        self.sendQueued()
      } else {
        loop.execute { self.sendQueued() }
      }
    }
    self.writer = writer
    return writer
  }

  private func finish(_ outcome: Result<Reply?, any Error>) {
    stream.connection.runningCalls -= 1
    for frame in writer?.take() ?? [] { write(frame) }
    switch outcome {
    case .success(let reply):
      if let reply {
        if !stream.isOver { stream.replyHold = reply.hold }
        write(reply.frame)
      }
      end(nil)
    case .failure(let error):
      end(state.isEnded ? nil : status(of: error))
    }
  }

  private func status(of error: any Error) -> StatusError {
    let error = StatusError.publicError(for: error) {
      server.logger.error(
        "A call failed without a status",
        metadata: ["grpc.path": "\(context.path)", "error": "\($0)"]
      )
    }
    return StatusError(error.statusCode, error.statusMessage)
  }

  // MARK: Outbound

  private func sendQueued() {
    guard let writer, !stream.isOver else { return }
    if !stream.isFull {
      for frame in writer.take() { write(frame) }
      stream.flush()
    }
    writer.setWritable(!stream.isFull)
  }

  private func write(_ frame: ByteBuffer) {
    guard let isFirst = state.sending() else { return }
    if isFirst {
      stream.writeHead(codec.compressesReplies ? GRPCTrailers.compressedHead : GRPCTrailers.head)
    }
    stream.write(frame)
  }

  /// Ends the call unless it has already ended; a nil status means success.
  private func end(_ status: StatusError?) {
    guard let trailersOnly = state.end() else { return }
    let status = status ?? StatusError(.ok, "")
    stream.end(.trailers(GRPCTrailers.make(status, trailersOnly: trailersOnly)))
    stream.flush()
  }
}
