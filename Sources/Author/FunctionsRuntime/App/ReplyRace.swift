import Invocation
import Synchronization

/// The first of several replies to one request.
final class ReplyRace: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<InvocationReply, Never>)
    case finished(InvocationReply?)
  }

  private let state = Mutex(State.open)

  /// Offers a reply; replies after the first are dropped.
  func finish(_ reply: InvocationReply) {
    let waiting: CheckedContinuation<InvocationReply, Never>? = state.withLock { state in
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

  /// The first reply; call it only once.
  func reply() async -> InvocationReply {
    await withCheckedContinuation { continuation in
      let finished: InvocationReply? = state.withLock { state in
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
