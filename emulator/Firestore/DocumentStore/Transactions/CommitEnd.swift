import Synchronization

/// The end of one commit, for requests that repeat the commit while it is in progress.
final class CommitEnd: Sendable {
  private typealias Waiter = CheckedContinuation<Result<CommitOutcome, any Error>, Never>

  private enum State {
    case awaited([Waiter])
    case ended(Result<CommitOutcome, any Error>)
  }

  private let state = Mutex(State.awaited([]))

  /// Sets the result of the commit; called once.
  func reach(_ result: Result<CommitOutcome, any Error>) {
    let waiting = state.withLock { state -> [Waiter] in
      defer { state = .ended(result) }
      if case .awaited(let waiting) = state { return waiting }
      return []
    }
    for continuation in waiting { continuation.resume(returning: result) }
  }

  /// The result of the commit; a `CancellationError` if it was given up without effect.
  ///
  /// A cancelled caller still waits for the end of the commit, which takes bounded time.
  var result: Result<CommitOutcome, any Error> {
    get async {
      await withCheckedContinuation { continuation in
        let result: Result<CommitOutcome, any Error>? = state.withLock { state in
          switch state {
          case .ended(let result): return result
          case .awaited(let waiting):
            state = .awaited(waiting + [continuation])
            return nil
          }
        }
        if let result { continuation.resume(returning: result) }
      }
    }
  }
}
