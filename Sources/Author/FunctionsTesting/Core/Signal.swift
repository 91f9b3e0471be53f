import Synchronization

/// A condition that wakes all waiting tasks each time `fire` is called.
final class Signal: Sendable {
  private struct State {
    var count: UInt64 = 0
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var cancelled: Set<UInt64> = []
    var nextID: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The number of times that the signal has fired.
  var count: UInt64 { state.withLock { $0.count } }

  func fire() {
    let waiters = state.withLock { state in
      state.count += 1
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Waits until the signal has fired more than `count` times, or until the task is cancelled.
  func fired(after count: UInt64) async {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    // A cancellation after the wait has ended leaves this entry behind.
    defer { state.withLock { _ = $0.cancelled.remove(id) } }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isWaiting = state.withLock { state in
          guard state.count <= count, state.cancelled.remove(id) == nil else { return false }
          state.waiters[id] = continuation
          return true
        }
        if !isWaiting { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        let waiter = state.waiters.removeValue(forKey: id)
        if waiter == nil { state.cancelled.insert(id) }
        return waiter
      }
      waiter?.resume()
    }
  }
}
