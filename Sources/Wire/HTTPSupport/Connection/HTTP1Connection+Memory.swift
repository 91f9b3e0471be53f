import NIOCore

/// The bodies that arrive slowly and the memory that they hold.
extension HTTP1Connection {
  /// Creates a hold for the next request or its response; nil without a budget.
  func makeHold(
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
  func holdUnfinishedBody(_ context: ChannelHandlerContext) {
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
  func bodyStalled(_ number: UInt64) {
    guard let context, exchange?.number == number, case .streaming(let queue) = input else {
      return
    }
    giveUpBody(queue, context)
  }

  func giveUpBody(_ queue: InboundQueue<ByteBuffer>, _ context: ChannelHandlerContext) {
    queue.finish(.failure(BodyTooSlowError()))
    exchange?.closes = true
    exchange?.isBodyTooSlow = true
    input = .skipping
    setTimer(context)
  }

  func bodyHasRoom() {
    guard let context, isPaused else { return }
    isPaused = false
    if let paused = pauseTime { bodyTime = bodyTime + (NIODeadline.now() - paused) }
    pauseTime = nil
    takeWaiting(context)
    noteBusy(context)
    goOnReading(context)
  }

  func bodyIsWanted() {
    if let context, isContinueDue, exchange?.framing == nil { writeContinue(context) }
  }

  func writeContinue(_ context: ChannelHandlerContext) {
    isContinueDue = false
    context.writeAndFlush(
      wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")),
      promise: nil
    )
  }
}
