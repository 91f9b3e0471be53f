import NIOCore
import Synchronization

/// The connections that one listening socket has accepted, and the tasks that work for them.
final class OpenConnections: Sendable {
  private enum Phase {
    case serving
    case quiescing
    case aborted
  }

  private struct State {
    var phase = Phase.serving
    var channels: [ObjectIdentifier: any Channel] = [:]
    var tasks = 0
    var waiting: [CheckedContinuation<Void, Never>] = []

    mutating func takeWaiting() -> [CheckedContinuation<Void, Never>] {
      guard channels.isEmpty, tasks == 0 else { return [] }
      defer { waiting = [] }
      return waiting
    }
  }

  private let state = Mutex(State())

  /// Whether connections are ended with what they do.
  var areAborted: Bool { state.withLock { $0.phase == .aborted } }

  func enter(_ channel: any Channel) {
    let phase = state.withLock { state in
      state.channels[ObjectIdentifier(channel)] = channel
      return state.phase
    }
    channel.closeFuture.whenComplete { _ in
      self.change { $0.channels[ObjectIdentifier(channel)] = nil }
    }
    if phase != .serving { channel.close(promise: nil) }
  }

  func taskBegan() { state.withLock { $0.tasks += 1 } }

  func taskEnded() { change { $0.tasks -= 1 } }

  /// Lets each connection finish what it is doing, and close.
  func quiesce() {
    for channel in entering(.quiescing) {
      channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
  }

  /// Closes all connections and cancels the tasks that work for them.
  func abort() {
    for channel in entering(.aborted) { channel.close(promise: nil) }
  }

  private func entering(_ phase: Phase) -> [any Channel] {
    state.withLock { state in
      state.phase = phase
      return Array(state.channels.values)
    }
  }

  /// Returns once there is no connection and no task.
  func ended() async {
    await withCheckedContinuation { continuation in
      change { $0.waiting.append(continuation) }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let waiting = state.withLock { state in
      body(&state)
      return state.takeWaiting()
    }
    for continuation in waiting { continuation.resume() }
  }
}
