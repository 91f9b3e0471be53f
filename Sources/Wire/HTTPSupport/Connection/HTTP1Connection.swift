import DequeModule
import HTTPMessages
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import Synchronization

/// A connection that uses HTTP/1.1 or 1.0 and handles its requests one after the other.
///
/// The handler is placed after the decoder and writes bytes. Everything happens on the connection's
/// event loop, with two exceptions: the responder runs in one task per request, and a streamed
/// response body has a task of its own.
final class HTTP1Connection: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The announced size up to which a body is read in full before the responder sees the request.
  static let wholeBytesMax = 64 << 10
  /// The size up to which a body is copied behind its head, which saves a system call.
  private static let copiedBytesMax = 16 << 10
  /// The number of bytes of an unread body that are skipped to keep the connection usable.
  private static let skippedBytesMax = 1 << 20
  /// The number of bytes that are read and dropped before a connection is closed.
  ///
  /// Many clients send the whole request before they read the response. They report a failure if
  /// the connection closes while they are still writing. The limit is twice the longest body that
  /// any service accepts.
  static let lingeringBytesMax = 64 << 20
  /// The time limit for lingering before a connection is closed.
  ///
  /// A lingering connection counts as idle, so it keeps no other client out.
  private static let lingeringTimeMax = TimeAmount.seconds(30)
  /// The longest pause in the client's input while lingering.
  ///
  /// A client that waits for the end of the connection sends nothing.
  private static let lingeringPauseMax = TimeAmount.seconds(2)
  /// The time limit for lingering while the server is stopping.
  private static let lastLingeringTimeMax = TimeAmount.milliseconds(250)
  /// The part size in which longer responses are written, to observe how far the client has read.
  private static let unreadPartBytes = 128 << 10
  /// The memory counted for a streamed request body: the queue's content while its reader is busy.
  private static let queuedBytes = 64 << 10
  /// The time limit for skipping a body that is not read.
  private static let skippingTimeMax = TimeAmount.seconds(5)

  /// The minimum pause before the second probe of a client that has stopped sending.
  ///
  /// Each further pause is twice as long, because some clients count the interim responses.
  private static let probePauseMin = TimeAmount.milliseconds(100)
  private static let probePauseMax = TimeAmount.seconds(60)

  /// The part of the current request that has arrived.
  private enum Input {
    case head
    case collecting(RequestHead, ByteBuffer)
    case streaming(InboundQueue<ByteBuffer>)
    /// The rest of a body that has no reader is being skipped.
    case skipping
    /// The request being handled is complete; further input waits.
    case complete
    /// Input is ignored because the connection is about to end.
    case lingering
  }

  /// A request and the state of its response.
  private final class Exchange {
    let head: RequestHead
    let number: UInt64
    let client = ClientWatch()
    /// Stops a response that is produced without a task.
    var stop: (@Sendable () -> Void)?
    /// The task that runs the responder.
    var task: HTTPExchanges.CountedTask?
    /// The task that writes a streamed body.
    var writing: HTTPExchanges.CountedTask?
    /// The framing of the response; nil until the response has begun.
    var framing: ResponseFraming?
    /// The number of bytes still missing from a body of announced length.
    var bytesLeft = 0
    /// A promise that completes when the last piece has been passed to the system.
    ///
    /// It fails if the client leaves.
    var unwritten: EventLoopPromise<Void>?
    /// The number of pieces that have been written.
    ///
    /// `isWriting` is true until the last piece has been passed to the system.
    var pieces: UInt64 = 0
    var isWriting = false
    /// The pause before the next probe of the client; nil before the first.
    var probePause: TimeAmount?
    /// The memory hold for the request's body; nil while the body is short.
    var hold: TransferHold?
    /// True if the body was abandoned because it arrived too slowly.
    var isBodyTooSlow = false
    var hasLeft = false
    var closes = false

    init(_ head: RequestHead, _ number: UInt64) {
      self.head = head
      self.number = number
    }

    /// Ends all work for a client that has disconnected, except work that must finish without it.
    func clientLeft(_ service: HTTPExchanges) {
      hasLeft = true
      stop?()
      stop = nil
      client.clientLeft()
      writing?.cancel()
      unwritten?.fail(CancellationError())
      guard let task else { return }
      if service.outlivesClient(Request(head: head.request)) {
        service.keep(task)
      } else {
        task.cancel()
      }
    }
  }

  private let service: HTTPExchanges
  private let watch: InputWatch
  private var input = Input.head
  private var exchange: Exchange?
  private var exchanges: UInt64 = 0
  /// The parts that arrived after the request being handled.
  private var waiting: Deque<HTTPServerRequestPart> = []
  /// The error in the input that follows the request being handled.
  private var refusal: RequestHead.RefusalError?
  private var bodyBytes = 0
  /// The time at which the body began to arrive, shifted by the time that its reader was busy.
  private var bodyTime = NIODeadline.now()
  private var pauseTime: NIODeadline?
  /// The memory hold for a short body that did not arrive at once.
  private var collectingHold: TransferHold?
  /// The number of body bytes received when the body's reader stopped.
  private var skippedFrom = 0
  private var requestTime = NIODeadline.now()
  /// True if the body's reader has no room for more.
  private var isPaused = false
  private var isReadHeld = false
  private var isContinueDue = false
  private var hasInputEnded = false
  /// True if the last response on the connection has been passed to the system.
  private var isFlushed = false
  private var isQuiescing = false
  private var isTaking = false
  private var isNotedBusy = false
  private var idleTime = NIODeadline.now()
  private var timer: Scheduled<Void>?
  private var timerDeadline: NIODeadline?
  private var context: ChannelHandlerContext?

  init(_ service: HTTPExchanges, watch: InputWatch) {
    self.service = service
    self.watch = watch
  }

  // MARK: - Life cycle

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    setTimer(context)
  }

  func handlerRemoved(context: ChannelHandlerContext) { forget() }

  func channelInactive(context: ChannelHandlerContext) {
    forget()
    context.fireChannelInactive()
  }

  private func forget() {
    timer?.cancel()
    context = nil
    if case .streaming(let queue) = input { queue.finish(.failure(CancellationError())) }
    input = .lingering
    collectingHold = nil
    exchange?.clientLeft(service)
    exchange = nil
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case ChannelEvent.inputClosed: inputEnded(context)
    case is ChannelShouldQuiesceEvent:
      isQuiescing = true
      if exchange == nil { end(context, after: nil) }
      if case .lingering = input { setTimer(context) }
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  /// Handles the end of the client's input; the client may have left or may wait for the response.
  private func inputEnded(_ context: ChannelHandlerContext) {
    hasInputEnded = true
    switch input {
    // A response that is being written still goes out.
    case .head where exchange == nil, .complete where exchange == nil: return goOn(context)
    case .lingering: return isFlushed ? context.close(promise: nil) : ()
    // The request is incomplete.
    case .head, .collecting, .streaming, .skipping: return context.close(promise: nil)
    case .complete: break
    }
    guard let exchange else { return }
    if service.configuration.halfCloseTimeMax == nil {
      exchange.clientLeft(service)
    } else {
      probeLater(exchange, context)
    }
  }

  private func probeLater(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    guard let patience = service.configuration.halfCloseTimeMax else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let (number, pieces) = (exchange.number, exchange.pieces)
    let pause = exchange.probePause ?? TimeAmount(patience)
    exchange.probePause = min(max(pause * 2, Self.probePauseMin), Self.probePauseMax)
    context.eventLoop.scheduleTask(in: pause) { bound.value.probe(number, pieces: pieces) }
  }

  /// Finds out whether a client that has stopped sending still reads.
  ///
  /// A client that left and a client that only stopped sending look the same until something is
  /// written: a closed socket replies to that with a reset. Before the response, an interim
  /// response may be sent at any time, and a client that still reads skips it. The probe is
  /// repeated with growing pauses, because the client may receive the first one and leave
  /// afterward. Nothing can be inserted into a response body, so a client also counts as gone if
  /// there is nothing to write.
  private func probe(_ number: UInt64, pieces: UInt64) {
    guard let context, let exchange, exchange.number == number else { return }
    if exchange.framing == nil {
      guard exchange.head.isHTTP11 else { return }
      writeContinue(context)
      probeLater(exchange, context)
    } else if exchange.pieces == pieces, !exchange.isWriting {
      exchange.clientLeft(service)
    } else {
      probeLater(exchange, context)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? HTTPParserError else { return context.close(promise: nil) }
    switch input {
    case .streaming(let queue):
      queue.finish(.failure(MalformedBodyError(reason: "\(error)")))
      exchange?.closes = true
      input = .skipping
    case .lingering: break
    // The request that this input belongs to already has its response.
    case .skipping where exchange == nil: end(context, after: nil)
    case .skipping: exchange?.closes = true
    default: refuse(RequestHead.RefusalError(error), context)
    }
  }

  // MARK: - Requests

  func read(context: ChannelHandlerContext) {
    if wantsMore { context.read() } else { isReadHeld = true }
  }

  private var wantsMore: Bool {
    guard waiting.isEmpty else { return false }
    return switch input {
    case .complete: false
    case .streaming: !isPaused
    case .head, .collecting, .skipping, .lingering: true
    }
  }

  private func goOnReading(_ context: ChannelHandlerContext) {
    guard isReadHeld, wantsMore else { return }
    isReadHeld = false
    context.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    guard waiting.isEmpty, takesParts(context) else { return waiting.append(part) }
    take(part, context)
  }

  /// Returns true if the next part can be processed now.
  ///
  /// The part either belongs to the current request or begins a new one.
  private func takesParts(_ context: ChannelHandlerContext) -> Bool {
    switch input {
    case .complete: false
    // A client that does not read its responses gets no further ones.
    case .head: context.channel.isWritable
    case .streaming: !isPaused
    case .collecting, .skipping, .lingering: true
    }
  }

  /// Processes waiting parts for as long as they can be accepted.
  private func takeWaiting(_ context: ChannelHandlerContext) {
    guard !isTaking else { return }
    isTaking = true
    while takesParts(context), let part = waiting.popFirst() {
      take(part, context)
      if exchange == nil, case .complete = input { input = .head }
    }
    isTaking = false
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    holdUnfinishedBody(context)
    // A request that arrived in one piece needs no timer.
    if let deadline, timerDeadline.map({ deadline < $0 }) ?? true { setTimer(context) }
    context.fireChannelReadComplete()
  }

  private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
    switch (input, part) {
    case (.head, .head(let head)): begin(head, context)
    case (.collecting(let head, var body), .body(var piece)):
      // Moved out of the state first so that the buffer is not copied.
      input = .head
      if body.readableBytes == 0 { body = piece } else { body.writeBuffer(&piece) }
      input = .collecting(head, body)
    case (.collecting(let head, let body), .end):
      input = .complete
      collectingHold = nil
      watch.requestRead()
      respond(to: head, .whole(body), context)
    case (.streaming(let queue), .body(let piece)):
      bodyBytes += piece.readableBytes
      isPaused = !queue.yield(piece, bytes: piece.readableBytes)
      if isPaused, pauseTime == nil { pauseTime = .now() }
      service.roster.note(context.channel, isBusy: isPaused)
      isNotedBusy = isPaused
    case (.streaming(let queue), .end):
      watch.requestRead()
      input = .complete
      exchange?.hold?.clientIsDone()
      queue.finish()
      noteBusy(context)
    case (.skipping, .body(let piece)):
      bodyBytes += piece.readableBytes
      if bodyBytes - skippedFrom > Self.skippedBytesMax, exchange == nil {
        end(context, after: nil)
      }
    case (.skipping, .end):
      watch.requestRead()
      input = exchange == nil ? .head : .complete
    default: break
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let head = Result { () throws(RequestHead.RefusalError) in try RequestHead(head) }
    switch head {
    case .failure(let refusal): refuse(refusal, context)
    case .success(let head): begin(head, context)
    }
  }

  private func begin(_ head: RequestHead, _ context: ChannelHandlerContext) {
    bodyBytes = 0
    skippedFrom = 0
    requestTime = .now()
    bodyTime = requestTime
    pauseTime = nil
    isPaused = false
    isContinueDue = head.expectsContinue
    if let refusal = service.screen(Request(head: head.request)) {
      input = .skipping
      let exchange = newExchange(head, context)
      return write(refusal, exchange.number)
    }
    switch head.body {
    case .none: input = .collecting(head, ByteBuffer())
    case .announced(let length) where length <= Self.wholeBytesMax:
      input = .collecting(head, ByteBuffer())
      if isContinueDue { writeContinue(context) }
    case .announced, .chunked:
      let hold = makeHold(context) { connection, number in connection.bodyStalled(number) }
      if let hold, !hold.add(Self.queuedBytes) {
        input = .skipping
        let exchange = newExchange(head, context)
        return write(.error(hold.budget.error), exchange.number)
      }
      let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
      let eventLoop = context.eventLoop
      let queue = InboundQueue<ByteBuffer> { eventLoop.execute { bound.value.bodyHasRoom() } }
      input = .streaming(queue)
      let pieces =
        isContinueDue
        ? AsyncThrowingStream {
          eventLoop.execute { bound.value.bodyIsWanted() }
          return try await queue.next()
        } : queue.elements
      respond(to: head, .stream(pieces), context, hold: hold)
    }
  }

  // MARK: - Memory

  /// Creates a hold for the next request or its response; nil without a budget.
  private func makeHold(
    _ context: ChannelHandlerContext,
    number: UInt64? = nil,
    _ onEnd: @escaping @Sendable (HTTP1Connection, UInt64) -> Void
  ) -> TransferHold? {
    guard let budget = service.budget else { return nil }
    let eventLoop = context.eventLoop
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let number = number ?? exchanges + 1
    return TransferHold(budget) { eventLoop.execute { onEnd(bound.value, number) } }
  }

  /// Reserves memory for a short body that has not arrived completely, or refuses the request.
  private func holdUnfinishedBody(_ context: ChannelHandlerContext) {
    guard case .collecting(let head, _) = input, collectingHold == nil,
      case .announced(let length) = head.body
    else { return }
    let hold = makeHold(context) { connection, number in
      guard number == connection.exchanges + 1 else { return }
      connection.refuseSlowRequest()
    }
    guard let hold else { return }
    collectingHold = hold
    guard !hold.add(length) else { return }
    input = .skipping
    let exchange = newExchange(head, context)
    write(.error(hold.budget.error), exchange.number)
  }

  /// Abandons a stalled body, because other requests need its memory.
  private func bodyStalled(_ number: UInt64) {
    guard let context, exchange?.number == number, case .streaming(let queue) = input else {
      return
    }
    giveUpBody(queue, context)
  }

  private func giveUpBody(_ queue: InboundQueue<ByteBuffer>, _ context: ChannelHandlerContext) {
    queue.finish(.failure(BodyTooSlowError()))
    exchange?.closes = true
    exchange?.isBodyTooSlow = true
    input = .skipping
    setTimer(context)
  }

  private func bodyHasRoom() {
    guard let context, isPaused else { return }
    isPaused = false
    if let paused = pauseTime { bodyTime = bodyTime + (NIODeadline.now() - paused) }
    pauseTime = nil
    takeWaiting(context)
    noteBusy(context)
    goOnReading(context)
  }

  private func bodyIsWanted() {
    if let context, isContinueDue, exchange?.framing == nil { writeContinue(context) }
  }

  private func writeContinue(_ context: ChannelHandlerContext) {
    isContinueDue = false
    context.writeAndFlush(
      wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")),
      promise: nil
    )
  }

  private func newExchange(_ head: RequestHead, _ context: ChannelHandlerContext) -> Exchange {
    exchanges += 1
    let exchange = Exchange(head, exchanges)
    self.exchange = exchange
    noteBusy(context)
    return exchange
  }

  private func respond(
    to head: RequestHead,
    _ body: RequestBody,
    _ context: ChannelHandlerContext,
    hold: TransferHold? = nil
  ) {
    let exchange = newExchange(head, context)
    exchange.hold = hold
    let number = exchange.number
    let request = Request(head: head.request, body: body, hold: hold)
    let eventLoop = context.eventLoop
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let reply: @Sendable (Response) -> Void = { response in
      if eventLoop.inEventLoop {
        bound.value.write(response, number)
      } else {
        eventLoop.execute { bound.value.write(response, number) }
      }
    }
    if case .whole = body, let stop = service.immediate?.begin(request, on: eventLoop, reply: reply)
    {
      exchange.stop = stop
    } else {
      let context = HTTPContext(channel: context.channel, client: exchange.client)
      exchange.task = service.respond(to: request, context, reply: reply)
    }
  }

  // MARK: - Responses

  private func write(_ response: Response, _ number: UInt64) {
    guard let context, let exchange, exchange.number == number, exchange.framing == nil else {
      return
    }
    exchange.stop = nil
    var response = response
    var responseHold: TransferHold?
    if case .whole(let body) = response.body, body.readableBytes > Self.unreadPartBytes {
      responseHold = makeHold(context, number: exchanges) { connection, _ in
        connection.context?.close(promise: nil)
      }
      if let hold = responseHold, !hold.add(body.readableBytes) {
        response = .error(hold.budget.error)
        responseHold = nil
      }
    }
    let isTooSlow = exchange.isBodyTooSlow || exchange.hold?.isEnded == true
    if isTooSlow, response.status.kind != .successful {
      response.head.status = .requestTimeout
    }
    let head = exchange.head
    let framing = ResponseFraming(
      response,
      isHead: head.request.method == .head,
      isHTTP11: head.isHTTP11
    )
    exchange.framing = framing
    exchange.closes =
      exchange.closes || !head.keepsAlive || isQuiescing || framing == .untilClose
      || response.headers.connectionOptions.contains("close")
    var whole: ByteBuffer?
    if case .whole(let body) = response.body {
      whole = body
      exchange.closes = exchange.closes || !canSkipRest(of: head)
    }
    var bytes = context.channel.allocator.buffer(
      capacity: 512 + min(whole?.readableBytes ?? 0, Self.copiedBytesMax)
    )
    bytes.writeHead(
      response.head,
      framing,
      bodyBytes: whole?.readableBytes,
      connection: exchange.closes ? "close" : head.isHTTP11 ? nil : "keep-alive"
    )
    guard framing != .none, whole?.readableBytes != 0 else { return writeLast(bytes, context) }
    guard let whole else {
      context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
      if case .length(let length) = framing { exchange.bytesLeft = length }
      exchange.writing = writing(response.body, number, context.eventLoop)
      return
    }
    if whole.readableBytes <= Self.copiedBytesMax {
      bytes.writeImmutableBuffer(whole)
      writeLast(bytes, context)
    } else {
      context.write(wrapOutboundOut(bytes), promise: nil)
      writeParts(of: whole, responseHold, context)
      writeLast(ByteBuffer(), context)
    }
  }

  /// Writes a long body in parts and records how far the client reads.
  ///
  /// The whole body stays in memory until the last part has been passed to the system, because the
  /// parts share its storage.
  private func writeParts(
    of body: ByteBuffer,
    _ hold: TransferHold?,
    _ context: ChannelHandlerContext
  ) {
    var rest = body
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    while rest.readableBytes > 0,
      let part = rest.readSlice(length: min(rest.readableBytes, Self.unreadPartBytes))
    {
      let written = context.eventLoop.makePromise(of: Void.self)
      written.futureResult.whenComplete { _ in
        hold?.moved(Self.unreadPartBytes)
        bound.value.idleTime = .now()
      }
      context.write(wrapOutboundOut(part), promise: written)
    }
  }

  /// Returns true if the rest of the request is short enough to be skipped for the next request.
  private func canSkipRest(of head: RequestHead) -> Bool {
    switch (input, head.body) {
    case (.complete, _), (_, .none): true
    case (_, .announced(let length)): !isContinueDue && length - bodyBytes <= Self.skippedBytesMax
    // The length is known only as the body arrives. A client that waits for 100 Continue may send
    // nothing.
    case (_, .chunked): !isContinueDue
    }
  }

  /// Starts a task that writes a body piece by piece.
  ///
  /// Each piece is handed to the system before the next one is requested. If the process then dies,
  /// the piece has still been sent.
  private func writing(
    _ body: Response.Body,
    _ number: UInt64,
    _ eventLoop: any EventLoop
  ) -> HTTPExchanges.CountedTask {
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let write: Response.Body.Write = { piece in
      try await eventLoop.flatSubmit { bound.value.write(piece, of: number, eventLoop) }.get()
    }
    return service.task {
      do {
        switch body {
        case .whole(let piece): try await write(piece)
        case .stream(let pieces): for try await piece in pieces { try await write(piece) }
        case .produced(let produce): try await produce(write)
        }
        eventLoop.execute { bound.value.bodyEnded(number, isWhole: true) }
      } catch {
        eventLoop.execute { bound.value.bodyEnded(number, isWhole: false) }
      }
    }
  }

  private func write(
    _ piece: ByteBuffer,
    of number: UInt64,
    _ eventLoop: any EventLoop
  ) -> EventLoopFuture<Void> {
    guard let context, let exchange, exchange.number == number, !exchange.hasLeft else {
      return eventLoop.makeFailedFuture(CancellationError())
    }
    guard piece.readableBytes > 0 else { return eventLoop.makeSucceededVoidFuture() }
    var bytes = piece
    switch exchange.framing {
    case .chunked:
      bytes = context.channel.allocator.buffer(capacity: piece.readableBytes + 16)
      bytes.writeChunk(piece)
    case .length:
      // Bytes beyond the announced length would be taken for the next response.
      guard piece.readableBytes <= exchange.bytesLeft else {
        context.close(promise: nil)
        return eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
      }
      exchange.bytesLeft -= piece.readableBytes
    case .untilClose, .some(.none), nil: break
    }
    var hold: TransferHold?
    if bytes.readableBytes > Self.unreadPartBytes {
      hold = makeHold(context, number: number) { connection, _ in
        connection.context?.close(promise: nil)
      }
      if let hold, !hold.add(bytes.readableBytes) {
        // Only closing the connection shows the client that something is missing.
        context.close(promise: nil)
        return eventLoop.makeFailedFuture(hold.budget.error)
      }
    }
    let promise = eventLoop.makePromise(of: Void.self)
    exchange.unwritten = promise
    exchange.pieces += 1
    exchange.isWriting = true
    idleTime = .now()
    let written = context.writeAndFlush(wrapOutboundOut(bytes))
    written.assumeIsolated().whenComplete { _ in
      exchange.isWriting = false
      withExtendedLifetime(hold) {}
    }
    written.cascade(to: promise)
    return promise.futureResult
  }

  private func bodyEnded(_ number: UInt64, isWhole: Bool) {
    guard let context, let exchange, exchange.number == number else { return }
    // Only closing the connection shows the client that something is missing.
    guard isWhole, exchange.bytesLeft == 0 else { return context.close(promise: nil) }
    let end = exchange.framing == .chunked ? "0\r\n\r\n" : ""
    writeLast(ByteBuffer(string: end), context)
  }

  private func writeLast(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
    guard let exchange else { return }
    self.exchange = nil
    // A streamed response may end before its request, whose body is then still arriving.
    exchange.closes = exchange.closes || !canSkipRest(of: exchange.head)
    if case .streaming(let queue) = input {
      queue.finish(.failure(CancellationError()))
      input = .skipping
      skippedFrom = bodyBytes
      requestTime = .now()
    }
    guard exchange.closes else {
      context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
      return goOn(context)
    }
    end(context, after: bytes)
  }

  /// Continues with the input that follows the last handled request.
  private func goOn(_ context: ChannelHandlerContext) {
    idleTime = .now()
    noteBusy(context)
    if case .lingering = input { return }
    guard !isTaking, exchange == nil, context.channel.isWritable else { return }
    if case .complete = input { input = .head }
    takeWaiting(context)
    guard self.context != nil else { return }
    // The body of the next request may not have arrived yet.
    guard exchange == nil else { return goOnReading(context) }
    if let refusal { return refuse(refusal, context) }
    if hasInputEnded || isQuiescing, waiting.isEmpty { return end(context, after: nil) }
    goOnReading(context)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    noteBusy(context)
    if context.channel.isWritable, exchange == nil { goOn(context) }
    context.fireChannelWritabilityChanged()
  }

  // MARK: - Closing

  /// Responds to malformed input, after the responses to earlier requests, and ends the connection.
  private func refuse(_ refusal: RequestHead.RefusalError, _ context: ChannelHandlerContext) {
    guard exchange == nil, waiting.isEmpty else { return self.refusal = refusal }
    self.refusal = nil
    let response = refusal.response
    guard case .whole(let body) = response.body else { return }
    var bytes = ByteBuffer()
    let length = body.readableBytes
    bytes.writeHead(response.head, .length(length), bodyBytes: length, connection: "close")
    bytes.writeImmutableBuffer(body)
    input = .skipping
    end(context, after: bytes)
  }

  /// Ends the connection so that the client receives earlier output, even if it is still sending.
  private func end(_ context: ChannelHandlerContext, after bytes: ByteBuffer?) {
    if case .lingering = input { return }
    // If the client has sent nothing that is unread, a plain close loses no output.
    let isAllRead =
      if case .head = input { watch.firstRead == nil && waiting.isEmpty } else { hasInputEnded }
    input = .lingering
    collectingHold = nil
    idleTime = .now()
    noteBusy(context)
    waiting = []
    watch.discard(upTo: Self.lingeringBytesMax)
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { _ in bound.value.ended(isAllRead: isAllRead) }
    context.writeAndFlush(wrapOutboundOut(bytes ?? ByteBuffer()), promise: promise)
  }

  private func ended(isAllRead: Bool) {
    guard let context else { return }
    isFlushed = true
    guard !isAllRead, !hasInputEnded else { return context.close(promise: nil) }
    context.close(mode: .output, promise: nil)
    requestTime = .now()
    setTimer(context)
    goOnReading(context)
  }

  // MARK: - Time limits

  /// The time by which the client must act; nil while the server has to act.
  private var deadline: NIODeadline? {
    let limits = service.configuration
    let idleEnd = idleTime + TimeAmount(limits.idleTimeMax)
    guard context?.channel.isWritable != false else { return idleEnd }
    switch input {
    case .head:
      if let first = watch.firstRead { return first + TimeAmount(limits.headTimeMax) }
      return idleEnd
    case .collecting: return requestTime + TimeAmount(limits.shortBodyTimeMax)
    case .streaming:
      if isPaused { return nil }
      // A client that is already receiving its response may pause for longer.
      guard exchange?.framing == nil else { return watch.lastRead + TimeAmount(limits.idleTimeMax) }
      let pauseEnd = watch.lastRead + TimeAmount(limits.bodyPauseMax)
      guard limits.bodyRateMin > 0 else { return pauseEnd }
      let milliseconds = Int64(bodyBytes) * 1000 / Int64(limits.bodyRateMin)
      let rateEnd = bodyTime + TimeAmount(limits.bodyTimeMin) + .milliseconds(milliseconds)
      return min(pauseEnd, rateEnd)
    case .skipping: return exchange == nil ? requestTime + Self.skippingTimeMax : nil
    case .complete: return nil
    case .lingering:
      guard isFlushed else { return idleEnd }
      if isQuiescing { return requestTime + Self.lastLingeringTimeMax }
      let pauseEnd = max(requestTime, watch.lastRead) + Self.lingeringPauseMax
      return min(requestTime + Self.lingeringTimeMax, pauseEnd)
    }
  }

  private func setTimer(_ context: ChannelHandlerContext) {
    timer?.cancel()
    let limit = NIODeadline.now() + TimeAmount(service.configuration.idleTimeMax)
    let deadline = deadline ?? limit
    timerDeadline = deadline
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(deadline: deadline) { bound.value.timerFired() }
  }

  private func timerFired() {
    guard let context else { return }
    timerDeadline = nil
    guard let deadline, deadline <= .now() else { return setTimer(context) }
    switch input {
    case .head where watch.firstRead != nil, .collecting: refuseSlowRequest()
    case .streaming(let queue) where exchange?.framing == nil: giveUpBody(queue, context)
    default: context.close(promise: nil)
    }
  }

  private func refuseSlowRequest() {
    guard let context else { return }
    refuse(
      RequestHead.RefusalError(
        status: .requestTimeout,
        message: "The request took too long to come."
      ),
      context
    )
  }

  /// Reports to the roster whether the server is busy for the client.
  ///
  /// A connection that waits for its client may be closed to make room.
  private func noteBusy(_ context: ChannelHandlerContext) {
    let isArrived =
      switch input {
      case .complete: true
      case .streaming: isPaused
      default: false
      }
    let isBusy = exchange != nil && isArrived && context.channel.isWritable
    guard isBusy != isNotedBusy else { return }
    isNotedBusy = isBusy
    service.roster.note(context.channel, isBusy: isBusy)
  }
}
