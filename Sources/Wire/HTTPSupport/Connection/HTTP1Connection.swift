import DequeModule
import NIOCore
import NIOHTTP1

/// A connection that uses HTTP/1.1 or 1.0 and handles its requests one after the other.
///
/// The handler is placed after the decoder and writes bytes. Everything happens on the connection's
/// event loop, with two exceptions: the responder runs in one task per request, and a streamed
/// response body has a task of its own.
final class HTTP1Connection: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The number of bytes of an unread body that are skipped to keep the connection usable.
  static let skippedBytesMax = 1 << 20

  /// The part of the current request that has arrived.
  enum Input {
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

  let service: HTTPExchanges
  let watch: InputWatch
  let decoder: ByteToMessageHandler<HTTPRequestDecoder>
  var input = Input.head
  var exchange: Exchange?
  var exchanges: UInt64 = 0
  /// The parts that arrived after the request being handled.
  var waiting: Deque<HTTPServerRequestPart> = []
  /// The error in the input that follows the request being handled.
  var refusal: RequestHead.RefusalError?
  var bodyBytes = 0
  /// The time at which the body began to arrive, shifted by the time that its reader was busy.
  var bodyTime = NIODeadline.now()
  var pauseTime: NIODeadline?
  /// The memory hold for a short body that did not arrive at once.
  var collectingHold: TransferHold?
  /// The number of body bytes received when the body's reader stopped.
  var skippedFrom = 0
  var requestTime = NIODeadline.now()
  /// True if the body's reader has no room for more.
  var isPaused = false
  var isReadHeld = false
  var isContinueDue = false
  var hasInputEnded = false
  /// True if the last response on the connection has been passed to the system.
  var isFlushed = false
  var isQuiescing = false
  var isTaking = false
  var isNotedBusy = false
  var idleTime = NIODeadline.now()
  var timer: Scheduled<Void>?
  var timerDeadline: NIODeadline?
  var context: ChannelHandlerContext?

  init(
    _ service: HTTPExchanges,
    watch: InputWatch,
    decoder: ByteToMessageHandler<HTTPRequestDecoder>
  ) {
    self.service = service
    self.watch = watch
    self.decoder = decoder
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

  // MARK: - Next request

  /// Continues with the input that follows the last handled request.
  func goOn(_ context: ChannelHandlerContext) {
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
}
