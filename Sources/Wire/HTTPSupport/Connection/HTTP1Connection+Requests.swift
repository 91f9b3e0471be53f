import DequeModule
import HTTPMessages
import HTTPTypes
import NIOCore
import NIOHTTP1

/// The requests: their heads, their bodies and the start of their responders.
extension HTTP1Connection {
  /// The announced size up to which a body is read in full before the responder sees the request.
  static let wholeBytesMax = 64 << 10
  /// The memory counted for a streamed request body: the queue's content while its reader is busy.
  private static let queuedBytes = 64 << 10

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

  func goOnReading(_ context: ChannelHandlerContext) {
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
  func takeWaiting(_ context: ChannelHandlerContext) {
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

  func newExchange(_ head: RequestHead, _ context: ChannelHandlerContext) -> Exchange {
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
    let request = Request(head: head.request, body: body, hold: hold)
    if let upgrader = upgrader(for: head) { return upgrade(request, upgrader, context) }
    respond(to: request, exchange, context)
  }

  func respond(to request: Request, _ exchange: Exchange, _ context: ChannelHandlerContext) {
    let number = exchange.number
    let eventLoop = context.eventLoop
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    let reply: @Sendable (Response) -> Void = { response in
      if eventLoop.inEventLoop {
        bound.value.write(response, number)
      } else {
        eventLoop.execute { bound.value.write(response, number) }
      }
    }
    if case .whole = request.body,
      let stop = service.immediate?.begin(request, on: eventLoop, reply: reply)
    {
      exchange.stop = stop
    } else {
      let context = HTTPContext(channel: context.channel, client: exchange.client)
      exchange.task = service.respond(to: request, context, reply: reply)
    }
  }
}
