import Synchronization

/// A set of unstructured tasks that can be awaited together.
final class BegunTasks: Sendable {
  private struct State {
    var count = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  /// Starts a task and returns a closure that cancels it.
  func begin(_ body: @escaping @Sendable () async -> Void) -> @Sendable () -> Void {
    state.withLock { $0.count += 1 }
    let task = Task {
      await body()
      let waiting = state.withLock { state in
        state.count -= 1
        guard state.count == 0 else { return [] as [CheckedContinuation<Void, Never>] }
        defer { state.waiting = [] }
        return state.waiting
      }
      for continuation in waiting { continuation.resume() }
    }
    return { task.cancel() }
  }

  /// Waits until no task is left, even if the waiting task is cancelled.
  func ended() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.count > 0 { state.waiting.append(continuation) }
        return state.count == 0
      }
      if isOver { continuation.resume() }
    }
  }
}
