import NIOCore
import Synchronization

/// The connections that one listening socket has accepted, and the tasks that serve them.
final class OpenConnections: Sendable {
  private enum Phase {
    case serving
    case quiescing
    case aborted
  }

  private struct State {
    var phase = Phase.serving
    var channels: [ObjectIdentifier: any Channel] = [:]
    var tasks: Set<UInt64> = []
    var lastTask: UInt64 = 0
    /// The running tasks that may finish although their clients have left.
    var outliving: [UInt64: Task<Void, Never>] = [:]
    var isWaitOver = false
    var waiting: [CheckedContinuation<Void, Never>] = []

    mutating func takeWaiting() -> [CheckedContinuation<Void, Never>] {
      guard isWaitOver || channels.isEmpty && tasks.isEmpty else { return [] }
      defer { waiting = [] }
      return waiting
    }
  }

  private let state = Mutex(State())

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

  /// Counts a new task and returns its id.
  func taskBegan() -> UInt64 {
    state.withLock { state in
      state.lastTask += 1
      state.tasks.insert(state.lastTask)
      return state.lastTask
    }
  }

  func taskEnded(_ id: UInt64) {
    change { state in
      state.tasks.remove(id)
      state.outliving[id] = nil
    }
  }

  /// Lets a task finish although its client has left, unless the server stops first.
  func keep(_ task: Task<Void, Never>, _ id: UInt64) {
    let isOver = state.withLock { state in
      guard state.phase != .aborted else { return true }
      if state.tasks.contains(id) { state.outliving[id] = task }
      return false
    }
    if isOver { task.cancel() }
  }

  /// Asks each connection to finish its current work and then close.
  func quiesce() {
    for channel in entering(.quiescing) {
      channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
  }

  /// Closes all connections and cancels their tasks, and the tasks whose clients have already left.
  func abort() {
    let channels = entering(.aborted)
    for task in state.withLock({ Array($0.outliving.values) }) { task.cancel() }
    for channel in channels { channel.close(promise: nil) }
  }

  private func entering(_ phase: Phase) -> [any Channel] {
    state.withLock { state in
      state.phase = phase
      return Array(state.channels.values)
    }
  }

  /// Returns once there are no connections and tasks, or once `endWait` has been called.
  func ended() async {
    await withCheckedContinuation { continuation in
      change { $0.waiting.append(continuation) }
    }
  }

  /// Ends the wait for tasks, because a task that ignores cancellation must not delay shutdown.
  ///
  /// Returns the number of tasks that are still running.
  @discardableResult
  func endWait() -> Int {
    change { $0.isWaitOver = true }
    return state.withLock { $0.tasks.count }
  }

  private func change(_ body: (inout State) -> Void) {
    let waiting = state.withLock { state in
      body(&state)
      return state.takeWaiting()
    }
    for continuation in waiting { continuation.resume() }
  }
}
