import Synchronization

/// A client as a server can know it: the one whose listeners learn of a commit before the commit's
/// own acknowledgement reaches it.
package enum ListenClient: Sendable, Hashable {
  /// The connection that carries all streams of the client.
  case connection(ObjectIdentifier)
  /// The header fields that all requests of a web page share; pages may have them in common.
  case page(String)
}

/// A wait until some listeners have given their transports everything that was queued before.
///
/// Listeners are added until `seal`; the wait ends when each of them is done, or with `end`.
final class Handover: Sendable {
  private struct State {
    var pendingCount = 0
    var isSealed = false
    var isOver = false
    var waiter: CheckedContinuation<Void, Never>?

    var isDue: Bool { isOver || isSealed && pendingCount == 0 }

    mutating func takeDueWaiter() -> CheckedContinuation<Void, Never>? {
      guard isDue else { return nil }
      isOver = true
      return waiter.take()
    }
  }

  private let state = Mutex(State())

  /// Whether nobody waits any longer.
  var isOver: Bool { state.withLock(\.isOver) }

  /// Adds a listener, which must say when it is done.
  func add() { state.withLock { $0.pendingCount += 1 } }

  /// A listener has given everything to its transport, or is gone.
  func done() { change { $0.pendingCount -= 1 } }

  /// No more listeners are added.
  func seal() { change { $0.isSealed = true } }

  /// Ends the wait, whatever the listeners have done.
  func end() { change { $0.isOver = true } }

  private func change(_ body: (inout State) -> Void) {
    let waiter = state.withLock { state in
      body(&state)
      return state.takeDueWaiter()
    }
    waiter?.resume()
  }

  /// Returns when the wait is over; one task may wait.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.isDue { return true }
        state.waiter = continuation
        return false
      }
      if isOver { continuation.resume() }
    }
  }
}
