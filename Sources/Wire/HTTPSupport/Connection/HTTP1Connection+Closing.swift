import HTTPMessages
import DequeModule
import NIOCore

extension HTTP1Connection {
  /// The number of bytes that are read and dropped before a connection is closed.
  ///
  /// Many clients send the whole request before they read the response. They report a failure if
  /// the connection closes while they are still writing. The limit is twice the longest body that
  /// any service accepts.
  static let lingeringBytesMax = 64 << 20

  /// Responds to malformed input, after the responses to earlier requests, and ends the connection.
  func refuse(_ refusal: RequestHead.RefusalError, _ context: ChannelHandlerContext) {
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
  func end(_ context: ChannelHandlerContext, after bytes: ByteBuffer?) {
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
}
