import Synchronization

/// A semaphore that limits concurrent calls; further calls wait in order.
final class CallSlots: Sendable {
  private struct State {
    var free: Int
    var nextID = 0
    var waiting: [(id: Int, turn: CheckedContinuation<Void, any Error>)] = []
    /// The ids of callers that were cancelled before they began to wait.
    var cancelled: Set<Int> = []
  }

  private let state: Mutex<State>

  /// Creates a semaphore with the given number of free slots.
  init(_ count: Int) {
    state = Mutex(State(free: count))
  }

  /// Waits for a slot, which the caller must give back.
  ///
  /// Throws `CancellationError` if the caller is cancelled first.
  func take() async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { turn in
        let result: Result<Void, any Error>? = state.withLock { state in
          if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
          guard state.free == 0 else {
            state.free -= 1
            return .success(())
          }
          state.waiting.append((id, turn))
          return nil
        }
        if let result { turn.resume(with: result) }
      }
    } onCancel: {
      let turn: CheckedContinuation<Void, any Error>? = state.withLock { state in
        guard let index = state.waiting.firstIndex(where: { $0.id == id }) else {
          state.cancelled.insert(id)
          return nil
        }
        return state.waiting.remove(at: index).turn
      }
      turn?.resume(throwing: CancellationError())
    }
    // A cancellation after the slot was granted has left its id in the set.
    state.withLock { _ = $0.cancelled.remove(id) }
  }

  /// Gives the slot to the caller that has waited longest, or frees it.
  func release() {
    let turn: CheckedContinuation<Void, any Error>? = state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.free += 1
        return nil
      }
      return state.waiting.removeFirst().turn
    }
    turn?.resume()
  }
}
