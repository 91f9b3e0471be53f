import DequeModule
import Synchronization

/// A limit on the number of large reads that collect results at a time, in order of arrival.
///
/// Results are collected in memory, and after a restart all clients read at once.
package final class ReadGate: Sendable {
  private struct State {
    var free: Int
    var waiting: Deque<CheckedContinuation<Void, Never>> = []
  }

  private let state: Mutex<State>

  /// Creates a gate for `count` reads at a time.
  package init(_ count: Int) { state = Mutex(State(free: count)) }

  /// Returns when the caller may read; `leave` must follow.
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

  /// Ends a read and admits the next one.
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
