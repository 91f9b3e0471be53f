import Synchronization

/// Watches whether the client of a request leaves before it is answered.
package final class ClientWatch: Sendable {
  private let isGone = Atomic(false)
  private let task = Mutex<CancellableTask?>(nil)

  /// A watch on a client that is there.
  package init() {}

  /// Runs `operation`; cancels the calling task when the client leaves meanwhile or has left.
  ///
  /// For one operation at a time. What the task does afterwards can only be for its own sake: nobody
  /// reads an answer.
  package func whileConnected<Value>(
    _ operation: () async throws -> Value
  ) async rethrows -> Value {
    try await withUnsafeCurrentTask { task in
      if let task { begin(CancellableTask(task)) }
      defer { self.task.withLock { $0 = nil } }
      return try await operation()
    }
  }

  /// Whether the client has gone away.
  package var hasLeft: Bool { isGone.load(ordering: .acquiring) }

  private func begin(_ running: CancellableTask) {
    task.withLock { task in
      if isGone.load(ordering: .acquiring) { running.cancel() } else { task = running }
    }
  }

  /// Cancels under the lock, so `whileConnected` cannot return, nor the task end, before that.
  ///
  /// Cancelling may close the connection, which calls this again; the flag then avoids the lock.
  package func clientLeft() {
    guard !isGone.exchange(true, ordering: .acquiringAndReleasing) else { return }
    task.withLock { $0?.cancel() }
  }
}

/// A task that others may cancel, as long as it is known to run.
// `cancel` is one of the calls that any task may make; the watch's lock keeps the task alive.
private struct CancellableTask: @unchecked Sendable {
  private let task: UnsafeCurrentTask

  init(_ task: UnsafeCurrentTask) {
    self.task = task
  }

  func cancel() { task.cancel() }
}
