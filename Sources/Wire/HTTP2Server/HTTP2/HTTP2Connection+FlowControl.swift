import DequeModule
import NIOCore

/// The windows in both directions, and the data that is sent within them.
extension HTTP2Connection {
  /// The number of bytes passed to the socket at a time while a large reply is split into frames.
  private static let writeBytes = 64 * 1024

  // MARK: Receive windows

  func returnConnectionWindow(_ bytes: Int) {
    unreturned += bytes
    guard unreturned >= configuration.connectionWindowBytes / 2 else { return }
    output.writeWindowUpdate(stream: 0, increment: unreturned)
    receiveWindow += unreturned
    unreturned = 0
  }

  /// Lets the client send more on a stream if the call accepts more; in few large steps.
  func returnWindow(_ stream: HTTP2Stream) {
    countHeld(stream)
    guard !stream.isClosed, !stream.hasClientEnded, let call = stream.call, call.wantsMore,
      stream.unreturned >= configuration.streamWindowBytes / 2
    else { return }
    output.writeWindowUpdate(stream: stream.id, increment: stream.unreturned)
    stream.receiveWindow += stream.unreturned
    stream.unreturned = 0
    pings.replied()
    scheduleFlush()
  }

  func countHeld(_ stream: HTTP2Stream) {
    let held = stream.isClosed ? 0 : stream.call?.heldBytes ?? 0
    heldBytes += held - stream.countedBytes
    stream.countedBytes = held
  }

  // MARK: Sending

  // MARK: Sending

  /// Writes an encoded header block.
  func writeHeaders(_ stream: HTTP2Stream, _ block: ByteBuffer, end: Bool) {
    var block = block
    if !isTableSizeSent {
      // The blocks sent here use no dynamic table. One table size update of 0 stays valid whatever
      // size the client allows later.
      var prefixed = ByteBuffer(bytes: [0x20])
      prefixed.writeImmutableBuffer(block)
      block = prefixed
      isTableSizeSent = true
    }
    output.writeHeaders(stream: stream.id, block: block, end: end)
    pings.replied()
    if end { stream.isEndSent = true }
  }

  /// Sends the queued data of a stream, as far as the windows and the socket allow.
  func send(_ stream: HTTP2Stream) {
    guard !stream.isClosed else { return }
    var sent = false
    let queuedBytes = stream.queuedBytes
    while stream.queuedBytes > 0, stream.sendWindow > 0 {
      // Making room may let other streams send, and they use the same window.
      guard hasRoom, sendWindow > 0 else {
        if !stream.isWaiting {
          stream.isWaiting = true
          waiting.append(stream)
        }
        break
      }
      let bytesMax = min(HTTP2Size.frameMax, stream.sendWindow, sendWindow)
      guard let bytes = stream.takeQueued(bytesMax) else { break }
      stream.sendWindow -= bytes.readableBytes
      sendWindow -= bytes.readableBytes
      output.writeData(stream: stream.id, bytes: bytes)
      sent = true
    }
    if sent { pings.replied() }
    if stream.queuedBytes == 0, let end = stream.end, !stream.isEndSent {
      switch end {
      case .trailers(let block): writeHeaders(stream, block, end: true)
      case .data:
        output.writeFrameHeader(
          length: 0,
          type: HTTP2FrameType.data,
          flags: HTTP2Flag.endStream,
          stream: stream.id
        )
        stream.isEndSent = true
      }
    }
    if stream.queuedBytes > 0 || stream.replyHold != nil {
      holdReplies(stream, moved: queuedBytes - stream.queuedBytes)
    }
    closeIfOver(stream)
    scheduleFlush()
  }

  /// Sends more once the client or the socket has room, and asks the call for more.
  func resume(_ stream: HTTP2Stream) {
    send(stream)
    if !stream.isOver, !stream.isFull { stream.call?.hasRoom() }
  }

  /// True if the socket accepts more; flushes first if a piece of a large reply is complete.
  private var hasRoom: Bool {
    if output.readableBytes >= Self.writeBytes { flush() }
    return context?.channel.isWritable ?? false
  }

  func sendWaiting() {
    // A stream that has to wait again goes last, so that a large reply does not hold others back.
    while sendWindow > 0, hasRoom, let stream = waiting.popFirst() {
      stream.isWaiting = false
      resume(stream)
    }
  }

  /// Schedules a flush of the written bytes at the end of this pass of the event loop.
  func scheduleFlush() {
    guard !isReading, !isFlushScheduled, let context else { return }
    isFlushScheduled = true
    context.eventLoop.execute {
      self.isFlushScheduled = false
      self.flush()
    }
  }

  func flush() {
    guard output.readableBytes > 0, let context else { return }
    let bytes = output
    output = ByteBuffer()
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }
}
