import Logging
import NIOCore

/// A handler that stops a listening socket from accepting while the roster has no room.
final class AcceptGate: ChannelDuplexHandler {
  typealias InboundIn = any Channel
  typealias InboundOut = any Channel
  typealias OutboundIn = Never
  typealias OutboundOut = Never

  /// The pause in accepting after the system failed to accept a connection.
  private static let pause = TimeAmount.milliseconds(100)

  private let roster: ConnectionRoster
  private let logger: Logger
  private var isPausing = false

  init(_ roster: ConnectionRoster, logger: Logger) {
    self.roster = roster
    self.logger = logger
  }

  func read(context: ChannelHandlerContext) {
    if !isPausing, roster.hasRoom() { context.read() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    roster.accepted()
    context.fireChannelRead(data)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard !isPausing else { return }
    isPausing = true
    logger.warning("A connection cannot be accepted", metadata: ["error": "\(error)"])
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: Self.pause) {
      let (gate, context) = bound.value
      gate.isPausing = false
      context.channel.read()
    }
  }
}
