import Synchronization

/// A bounded memory of the most recently used tokens.
final class ConsumedTokens: Sendable {
  private struct State {
    var known: Set<Int> = []
    var order: [Int] = []
    var next = 0
  }

  // Tokens live for at most an hour, and a worker on a developer's machine sees fewer in that time.
  private static let countMax = 10_000

  private let state = Mutex(State())

  /// Records the use of a token; returns true if it had been used before.
  func consume(_ token: String) -> Bool {
    let mark = token.hashValue
    return state.withLock { state in
      guard state.known.insert(mark).inserted else { return true }
      if state.order.count < Self.countMax {
        state.order.append(mark)
      } else {
        state.known.remove(state.order[state.next])
        state.order[state.next] = mark
        state.next = (state.next + 1) % Self.countMax
      }
      return false
    }
  }
}
