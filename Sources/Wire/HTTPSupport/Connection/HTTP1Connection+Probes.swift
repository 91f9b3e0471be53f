import FlowControl
import NIOCore

/// The probes of a client that has stopped sending.
extension HTTP1Connection {
  /// The minimum pause before the second probe of a client that has stopped sending.
  ///
  /// Each further pause is twice as long, because some clients count the interim responses.
  private static let probePauseMin = Duration.milliseconds(100)
  private static let probePauseMax = Duration.seconds(60)

  func probeLater(_ exchange: Exchange, _ context: ChannelHandlerContext) {
    guard let patience = service.configuration.halfCloseTimeMax else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    let (number, pieces) = (exchange.number, exchange.pieces)
    let backOff = BackOff(
      initial: max(patience * 2, Self.probePauseMin),
      maximum: Self.probePauseMax
    )
    let pause = exchange.probes == 0 ? patience : backOff.delay(afterFailures: exchange.probes)
    exchange.probes += 1
    context.eventLoop.scheduleTask(in: TimeAmount(pause)) {
      bound.value.probe(number, pieces: pieces)
    }
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
}
