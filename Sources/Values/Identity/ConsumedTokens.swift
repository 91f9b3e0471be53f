import Synchronization

/// Remembers the tokens used last.
final class ConsumedTokens: Sendable {
  private struct State {
    var known: Set<Int> = []
    var order: [Int] = []
    var next = 0
  }

  // Tokens live for an hour at most, and a worker on a developer's machine sees fewer in that time.
  private static let countMax = 10_000

  private let state = Mutex(State())

  /// Notes that a token is used; true when it had been used before.
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
