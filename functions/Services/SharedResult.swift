import Synchronization

/// The result of one call for which several callers wait, each of whom may stop waiting.
final class SharedResult<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var nextID = 0
    var waiting: [Int: CheckedContinuation<Value, any Error>] = [:]
  }

  private let state = Mutex(State())

  /// Returns or throws what the call did; throws `CancellationError` when the caller is cancelled.
  func value() async throws -> Value {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiter in
        let result: Result<Value, any Error>? = state.withLock { state in
          // A caller that is cancelled before it waits was not found by the handler below.
          if Task.isCancelled { return .failure(CancellationError()) }
          if state.result == nil { state.waiting[id] = waiter }
          return state.result
        }
        if let result { waiter.resume(with: result) }
      }
    } onCancel: {
      let waiter = state.withLock { $0.waiting.removeValue(forKey: id) }
      waiter?.resume(throwing: CancellationError())
    }
  }

  /// Hands the result to all who wait, and to all who come later.
  func finish(_ result: Result<Value, any Error>) {
    let waiting = state.withLock { state in
      state.result = result
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for waiter in waiting { waiter.resume(with: result) }
  }
}
