import HTTPTypes
import NIOCore

extension HTTP1Connection {
  /// The time limit for lingering before a connection is closed.
  ///
  /// A lingering connection counts as idle, so it keeps no other client out.
  private static let lingeringTimeMax = TimeAmount.seconds(30)
  /// The longest pause in the client's input while lingering.
  ///
  /// A client that waits for the end of the connection sends nothing.
  private static let lingeringPauseMax = TimeAmount.seconds(2)
  /// The time limit for lingering while the server is stopping.
  private static let lastLingeringTimeMax = TimeAmount.milliseconds(250)
  /// The time limit for skipping a body that is not read.
  private static let skippingTimeMax = TimeAmount.seconds(5)

  /// The time by which the client must act; nil while the server has to act.
  var deadline: NIODeadline? {
    let limits = service.configuration
    let idleEnd = idleTime + TimeAmount(limits.idleTimeMax)
    guard context?.channel.isWritable != false else { return idleEnd }
    switch input {
    case .head:
      if let first = watch.firstRead { return first + TimeAmount(limits.headTimeMax) }
      return idleEnd
    case .collecting: return requestTime + TimeAmount(limits.shortBodyTimeMax)
    case .streaming:
      if isPaused { return nil }
      // A client that is already receiving its response may pause for longer.
      guard exchange?.framing == nil else { return watch.lastRead + TimeAmount(limits.idleTimeMax) }
      let pauseEnd = watch.lastRead + TimeAmount(limits.bodyPauseMax)
      guard limits.bodyRateMin > 0 else { return pauseEnd }
      let milliseconds = Int64(bodyBytes) * 1000 / Int64(limits.bodyRateMin)
      let rateEnd = bodyTime + TimeAmount(limits.bodyTimeMin) + .milliseconds(milliseconds)
      return min(pauseEnd, rateEnd)
    case .skipping: return exchange == nil ? requestTime + Self.skippingTimeMax : nil
    case .complete: return nil
    case .lingering:
      guard isFlushed else { return idleEnd }
      if isQuiescing { return requestTime + Self.lastLingeringTimeMax }
      let pauseEnd = max(requestTime, watch.lastRead) + Self.lingeringPauseMax
      return min(requestTime + Self.lingeringTimeMax, pauseEnd)
    }
  }

  func setTimer(_ context: ChannelHandlerContext) {
    timer?.cancel()
    let limit = NIODeadline.now() + TimeAmount(service.configuration.idleTimeMax)
    let deadline = deadline ?? limit
    timerDeadline = deadline
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(deadline: deadline) { bound.value.timerFired() }
  }

  private func timerFired() {
    guard let context else { return }
    timerDeadline = nil
    guard let deadline, deadline <= .now() else { return setTimer(context) }
    switch input {
    case .head where watch.firstRead != nil, .collecting: refuseSlowRequest()
    case .streaming(let queue) where exchange?.framing == nil: giveUpBody(queue, context)
    default: context.close(promise: nil)
    }
  }

  func refuseSlowRequest() {
    guard let context else { return }
    refuse(
      RequestHead.RefusalError(
        status: .requestTimeout,
        message: "The request took too long to come."
      ),
      context
    )
  }

  /// Reports to the roster whether the server is busy for the client.
  ///
  /// A connection that waits for its client may be closed to make room.
  func noteBusy(_ context: ChannelHandlerContext) {
    let isArrived =
      switch input {
      case .complete: true
      case .streaming: isPaused
      default: false
      }
    let isBusy = exchange != nil && isArrived && context.channel.isWritable
    guard isBusy != isNotedBusy else { return }
    isNotedBusy = isBusy
    service.roster.note(context.channel, isBusy: isBusy)
  }
}
