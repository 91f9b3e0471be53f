import RuntimeSupport
import ServiceLifecycle
import Synchronization

/// Ends work that must not outlast the beginning of the suite's stop.
///
/// A jump of the clock would go on without workers, and let waiting deliveries run out of time.
final class StopNotice: Service {
  private struct State {
    var isStopping = false
    var waiting: [UInt64: AsyncStream<Void>.Continuation] = [:]
    var last: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Waits for the suite's stop, then ends what runs under `untilStop`.
  func run() async {
    // Cancellation is an end as well.
    try? await gracefulShutdown()
    let waiting = state.withLock { state in
      state.isStopping = true
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for continuation in waiting { continuation.finish() }
  }

  /// Runs `operation`; cancels it and throws `UNAVAILABLE` when the suite stops.
  func untilStop<Value: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
      group.addTask(operation: operation)
      group.addTask {
        await self.wait()
        throw StatusError(.unavailable, "The suite is stopping.")
      }
      defer { group.cancelAll() }
      guard let value = try await group.next() else { throw CancellationError() }
      return value
    }
  }

  /// Returns when the suite stops or the task is cancelled.
  private func wait() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    let id: UInt64? = state.withLock { state in
      guard !state.isStopping else { return nil }
      state.last += 1
      state.waiting[state.last] = continuation
      return state.last
    }
    guard let id else { return }
    for await _ in stream {}
    state.withLock { $0.waiting[id] = nil }
  }
}
