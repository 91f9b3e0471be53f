import NIOCore

/// A detector that recognizes an HTTP/2 connection by its first bytes.
///
/// HTTP/2 without negotiation begins with a fixed preface. No HTTP/1 request begins with its first
/// bytes, `PRI `.
package struct PrefaceSniff: Sendable {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private var matched = 0

  package init() {}

  /// The protocol of a connection.
  package enum Verdict: Sendable, Hashable {
    /// All bytes so far match the preface, which is still incomplete.
    case undecided
    case http1
    case http2
  }

  /// Examines the next bytes; must not be called again after a decision.
  package mutating func receive(_ bytes: some Sequence<UInt8>) -> Verdict {
    for byte in bytes {
      guard byte == Self.preface[matched] else { return .http1 }
      matched += 1
      if matched == Self.preface.count { return .http2 }
    }
    return .undecided
  }
}

/// The first handler of a connection, which holds its bytes until the protocol is known.
///
/// `configure` builds the pipeline for the verdict; then the handler passes the bytes on and
/// removes itself. An undecided connection is closed when the client stops sending, when the server
/// shuts down, and after `timeMax`. Otherwise it would stay open forever.
final class ConnectionSniffer: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private enum State {
    case sniffing
    case configuring
    case done
  }

  private let timeMax: TimeAmount
  private let configure: (PrefaceSniff.Verdict) -> EventLoopFuture<Void>
  private var state = State.sniffing
  private var sniff = PrefaceSniff()
  private var held = ByteBuffer()
  private var heldEvents: [ChannelEvent] = []
  private var timer: Scheduled<Void>?

  /// Creates a sniffer that calls `configure` at most once, on the channel's event loop.
  init(
    timeMax: TimeAmount,
    configure: @escaping (PrefaceSniff.Verdict) -> EventLoopFuture<Void>
  ) {
    self.timeMax = timeMax
    self.configure = configure
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: timeMax) {
      let (sniffer, context) = bound.value
      sniffer.giveUp(context)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    giveUp(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    guard state == .sniffing else {
      if state == .done { return context.fireChannelRead(data) }
      held.writeBuffer(&bytes)
      return
    }
    let verdict = sniff.receive(bytes.readableBytesView)
    if held.readableBytes == 0 { held = bytes } else { held.writeBuffer(&bytes) }
    guard verdict != .undecided else { return }

    state = .configuring
    timer?.cancel()
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    configure(verdict).whenComplete { result in
      let (sniffer, context) = bound.value
      sniffer.configured(result, context)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch (state, event) {
    case (.sniffing, is ChannelShouldQuiesceEvent):
      giveUp(context)
    case (.sniffing, ChannelEvent.inputClosed):
      giveUp(context)
    case (.configuring, let event as ChannelEvent):
      heldEvents.append(event)
    default:
      context.fireUserInboundEventTriggered(event)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    giveUp(context)
    context.fireChannelInactive()
  }

  private func configured(_ result: Result<Void, any Error>, _ context: ChannelHandlerContext) {
    state = .done
    if case .failure = result {
      context.close(promise: nil)
      return
    }
    context.fireChannelRead(wrapInboundOut(held))
    held = ByteBuffer()
    context.fireChannelReadComplete()
    for event in heldEvents { context.fireUserInboundEventTriggered(event) }
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }

  private func giveUp(_ context: ChannelHandlerContext) {
    guard state == .sniffing else { return }
    state = .done
    timer?.cancel()
    context.close(promise: nil)
  }
}
