import Logging
import NIOCore

/// The pings that find lost clients, and the end of idle connections.
extension HTTP2Connection {
  func checkAliveLater() {
    guard isServing else { return }
    hasHeard = false
    keepAliveTimer = context?.eventLoop.scheduleTask(
      in: TimeAmount(configuration.keepAliveInterval)
    ) {
      self.checkAlive()
    }
  }

  private func checkAlive() {
    guard isServing, !hasHeard else { return checkAliveLater() }
    output.writePing(0, acknowledgement: false)
    flush()
    keepAliveTimer = context?.eventLoop.scheduleTask(
      in: TimeAmount(configuration.keepAliveTimeMax)
    ) {
      guard !self.hasHeard else { return self.checkAliveLater() }
      self.logger.debug("A client gave no sign of life; its connection is closed")
      self.context?.close(promise: nil)
    }
  }

  func checkIdleLater(in time: TimeAmount) {
    guard isServing else { return }
    idleTimer = context?.eventLoop.scheduleTask(in: time) { self.checkIdle() }
  }

  private func checkIdle() {
    let idleTimeMax = TimeAmount(configuration.idleTimeMax)
    let idle = streams.isEmpty ? NIODeadline.now() - idleSince : .zero
    if idle >= idleTimeMax { return drain() }
    checkIdleLater(in: idleTimeMax - idle)
  }
}
