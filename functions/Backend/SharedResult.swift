import Synchronization

/// The result of one call with several waiting callers, each of whom may be cancelled.
final class SharedResult<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var nextID = 0
    var waiting: [Int: CheckedContinuation<Value, any Error>] = [:]
  }

  private let state = Mutex(State())

  /// Returns or throws the result; throws `CancellationError` if the caller is cancelled.
  func value() async throws -> Value {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiter in
        let result: Result<Value, any Error>? = state.withLock { state in
          // The handler below does not find a caller that is cancelled before it waits.
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

  /// Passes the result to all waiting callers and keeps it for later ones.
  func finish(_ result: Result<Value, any Error>) {
    let waiting = state.withLock { state in
      state.result = result
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for waiter in waiting { waiter.resume(with: result) }
  }
}
