import HTTPMessages
import Synchronization

/// A race between several replies to one request, of which the first wins.
final class ReplyRace: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<Response, Never>)
    case finished(Response?)
  }

  private let state = Mutex(State.open)

  /// Offers a reply.
  ///
  /// Only the first counts; later replies are dropped.
  func finish(_ reply: Response) {
    let waiting: CheckedContinuation<Response, Never>? = state.withLock { state in
      switch state {
      case .open:
        state = .finished(reply)
        return nil
      case .awaited(let continuation):
        state = .finished(nil)
        return continuation
      case .finished: return nil
      }
    }
    waiting?.resume(returning: reply)
  }

  /// Waits for the first reply.
  ///
  /// Call it only once.
  func reply() async -> Response {
    await withCheckedContinuation { continuation in
      let finished: Response? = state.withLock { state in
        guard case .finished(let reply) = state else {
          state = .awaited(continuation)
          return nil
        }
        return reply
      }
      if let finished { continuation.resume(returning: finished) }
    }
  }
}
