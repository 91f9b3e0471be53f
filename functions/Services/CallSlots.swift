import Synchronization

/// A number of calls that may be under way at a time; further ones wait for their turn, in order.
final class CallSlots: Sendable {
  private struct State {
    var free: Int
    var nextID = 0
    var waiting: [(id: Int, turn: CheckedContinuation<Void, any Error>)] = []
    /// Those cancelled before they began to wait.
    var cancelled: Set<Int> = []
  }

  private let state: Mutex<State>

  /// All slots are free.
  init(_ count: Int) {
    state = Mutex(State(free: count))
  }

  /// Returns when the caller has a slot, which it must give back; throws when cancelled before.
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
    // A cancellation that came after the turn left its mark.
    state.withLock { _ = $0.cancelled.remove(id) }
  }

  /// Hands the slot to the caller that has waited longest.
  func giveBack() {
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
