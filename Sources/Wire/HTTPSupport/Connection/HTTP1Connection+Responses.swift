import HTTPMessages
import HTTPTypes
import NIOCore

extension HTTP1Connection {
  /// The size up to which a body is copied behind its head, which saves a system call.
  private static let copiedBytesMax = 16 << 10
  /// The part size in which longer responses are written, to observe how far the client has read.
  private static let unreadPartBytes = 128 << 10

  func write(_ response: Response, _ number: UInt64) {
    guard let context, let exchange, exchange.number == number, exchange.framing == nil else {
      return
    }
    exchange.stop = nil
    var response = response
    var responseHold: TransferHold?
    var heldBytes = response.heldBytes
    if case .whole(let body) = response.body { heldBytes = body.readableBytes }
    if heldBytes > Self.unreadPartBytes {
      responseHold = makeHold(context, number: exchanges) { connection, _ in
        connection.context?.close(promise: nil)
      }
      if let hold = responseHold, !hold.add(heldBytes) {
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
      exchange.responseHold = responseHold
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

  func write(
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
      exchange.responseHold?.moved(piece.readableBytes)
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
}
