import DequeModule
import Synchronization

/// Lets a bounded number of large reads gather their results at a time, in the order of asking.
///
/// What is read is gathered in memory, and after a restart all clients come at once.
package final class ReadGate: Sendable {
  private struct State {
    var free: Int
    var waiting: Deque<CheckedContinuation<Void, Never>> = []
  }

  private let state: Mutex<State>

  /// A gate for `count` reads at a time.
  package init(_ count: Int) { state = Mutex(State(free: count)) }

  /// Returns when it is the caller's turn; `leave` must follow.
  package func enter() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.free > 0 else {
          state.waiting.append(continuation)
          return false
        }
        state.free -= 1
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  /// Ends a turn.
  package func leave() {
    let next = state.withLock { state in
      guard let next = state.waiting.popFirst() else {
        state.free += 1
        return CheckedContinuation<Void, Never>?.none
      }
      return next
    }
    next?.resume()
  }
}
