import Synchronization

/// A client as the server can identify it, to notify its listeners before acknowledging its commit.
package enum ListenClient: Sendable, Hashable {
  /// The connection that carries all streams of the client.
  case connection(ObjectIdentifier)
  /// The header fields that all requests of a web page share; several pages may have the same.
  case page(String)
}

/// A wait until a set of listeners have passed all earlier queued events to their transports.
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

  /// True if the wait has ended.
  var isOver: Bool { state.withLock(\.isOver) }

  /// Adds a listener, which must later call `done`.
  func add() { state.withLock { $0.pendingCount += 1 } }

  /// Records that a listener has passed everything to its transport, or has been closed.
  func done() { change { $0.pendingCount -= 1 } }

  /// Records that no more listeners will be added.
  func seal() { change { $0.isSealed = true } }

  /// Ends the wait, even if some listeners are not done.
  func end() { change { $0.isOver = true } }

  private func change(_ body: (inout State) -> Void) {
    let waiter = state.withLock { state in
      body(&state)
      return state.takeDueWaiter()
    }
    waiter?.resume()
  }

  /// Returns when the wait is over; only one task may call it.
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
