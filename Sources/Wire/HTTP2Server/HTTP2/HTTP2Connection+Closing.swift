import DequeModule
import Logging
import NIOCore

/// The end of streams and of the connection.
extension HTTP2Connection {
  /// The time that a client has to close the connection after the server has ended it.
  private static let lingerTime = TimeAmount.seconds(1)

  // MARK: Closing streams

  /// Resets a stream immediately.
  func reset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
    guard !stream.isClosed else { return }
    output.writeReset(stream: stream.id, code: code)
    close(stream)
    scheduleFlush()
  }

  func closeIfOver(_ stream: HTTP2Stream) {
    guard stream.isEndSent, !stream.isClosed else { return }
    if !stream.hasClientEnded {
      // The response does not need the rest of the request, so the client may stop sending it.
      output.writeReset(stream: stream.id, code: .noError)
    }
    close(stream)
  }

  func close(_ stream: HTTP2Stream) {
    guard !stream.isClosed else { return }
    stream.isClosed = true
    streams[stream.id] = nil
    if stream.isWaiting { waiting.removeAll { $0 === stream } }
    heldBytes -= stream.countedBytes
    stream.drop()
    stream.requestHold = nil
    stream.replyHold = nil
    let call = stream.call
    stream.call = nil
    call?.closed()
    guard streams.isEmpty else { return }
    idleSince = .now()
    if case .draining = phase { linger() }
  }

  // MARK: Closing the connection

  /// Asks the client to open no more streams, lets the open streams end, and then closes.
  ///
  /// This takes two steps, so that a stream that is already on its way is still processed. A client
  /// that does not acknowledge the first step gets the second one after `lingerTime`.
  func drain() {
    guard case .open = phase else { return }
    let ping = UInt64.random(in: .min ... .max)
    phase = .announcing(ping: ping)
    output.writeGoAway(lastStream: UInt32(HTTP2Size.windowMax), code: .noError, reason: "")
    output.writePing(ping, acknowledgement: false)
    scheduleFlush()
    lingerTimer = context?.eventLoop.scheduleTask(in: Self.lingerTime) {
      if case .announcing = self.phase { self.nameLastStream() }
    }
  }

  func nameLastStream() {
    lingerTimer?.cancel()
    phase = .draining
    output.writeGoAway(lastStream: lastStream, code: .noError, reason: "")
    if streams.isEmpty { linger() } else { scheduleFlush() }
  }

  func fail(_ error: HTTP2ConnectionError) {
    logger.debug(
      "An HTTP/2 connection was ended",
      metadata: ["http2.code": "\(error.code)", "http2.reason": "\(error.reason)"]
    )
    output.writeGoAway(lastStream: lastStream, code: error.code, reason: error.reason)
    linger()
  }

  /// Closes the sending side and waits briefly for the client to close its own.
  ///
  /// If both sides were closed at once, the system would drop output that the client has not read
  /// yet.
  private func linger() {
    guard let context, isServing else { return }
    flush()
    phase = .lingering
    closeStreams()
    context.close(mode: .output, promise: nil)
    lingerTimer = context.eventLoop.scheduleTask(in: Self.lingerTime) {
      self.context?.close(promise: nil)
    }
  }

  func end() {
    phase = .closed
    for timer in [keepAliveTimer, idleTimer, lingerTimer] { timer?.cancel() }
    closeStreams()
  }

  private func closeStreams() {
    for stream in Array(streams.values) { close(stream) }
    waiting = []
  }
}
