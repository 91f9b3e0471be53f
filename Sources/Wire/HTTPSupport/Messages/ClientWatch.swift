import Synchronization

/// A watch that reports when the client of a request leaves before the response.
package final class ClientWatch: Sendable {
  private let isGone = Atomic(false)
  private let task = Mutex<CancellableTask?>(nil)

  package init() {}

  /// Runs `operation` and cancels the calling task if the client leaves or has left.
  ///
  /// Only one operation may run at a time. After a cancellation no client reads a response, so any
  /// further work of the task is for its own purposes.
  package func whileConnected<Value>(
    _ operation: () async throws -> Value
  ) async rethrows -> Value {
    try await withUnsafeCurrentTask { task in
      if let task { begin(CancellableTask(task)) }
      defer { self.task.withLock { $0 = nil } }
      return try await operation()
    }
  }

  /// True if the client has disconnected.
  package var hasLeft: Bool { isGone.load(ordering: .acquiring) }

  private func begin(_ running: CancellableTask) {
    task.withLock { task in
      if isGone.load(ordering: .acquiring) { running.cancel() } else { task = running }
    }
  }

  /// Records that the client has left and cancels the task of a running `whileConnected`.
  ///
  /// It cancels under the lock, so that `whileConnected` cannot return, and the task cannot end,
  /// before the cancellation. Cancelling may close the connection, which calls this method again;
  /// the flag then avoids the lock.
  package func clientLeft() {
    guard !isGone.exchange(true, ordering: .acquiringAndReleasing) else { return }
    task.withLock { $0?.cancel() }
  }
}

/// A task that may be cancelled from outside while it is known to be running.
// Any task may call `cancel`; the lock of `ClientWatch` keeps the task alive during the call.
private struct CancellableTask: @unchecked Sendable {
  private let task: UnsafeCurrentTask

  init(_ task: UnsafeCurrentTask) {
    self.task = task
  }

  func cancel() { task.cancel() }
}
