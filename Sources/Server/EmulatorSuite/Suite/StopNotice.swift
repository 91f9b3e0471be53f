import ServiceLifecycle
import StatusCodes
import Synchronization

/// The service that cancels operations as soon as the suite begins to stop.
///
/// For example, a jump of the clock would otherwise continue without workers, and waiting
/// deliveries would time out.
final class StopNotice: Service {
  private struct State {
    var isStopping = false
    var waiting: [UInt64: AsyncStream<Void>.Continuation] = [:]
    var last: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Waits until the suite stops, then ends the operations of `untilStop`.
  func run() async {
    // Cancellation also means that the suite stops.
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

  private func wait() async {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self,
      bufferingPolicy: .bufferingNewest(1)
    )
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
