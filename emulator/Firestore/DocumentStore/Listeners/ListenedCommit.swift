import DocumentModel
import Synchronization

/// What one commit means to the targets of one listener.
struct ListenedCommit: Sendable {
  /// A target's part of the commit.
  struct Part: Sendable {
    var subscription: ListenTable.SubscriptionID
    var delta: Delta
  }

  enum Delta: Sendable {
    case now([ListenedChange])
    case later(LaterChanges)
  }

  var time: Timestamp
  var parts: [Part]
  /// What the commit takes in the log, for the bounds of queues.
  var bytes: Int
}

/// Changes that are known only after a read; made once, asked for by many listeners.
final class LaterChanges: Sendable {
  private struct State {
    var changes: [ListenedChange]?
    var waiting: [ListenSession] = []
  }

  private let state = Mutex(State())

  /// The changes, or nil; then `session` is woken when they are known.
  func changes(for session: ListenSession) -> [ListenedChange]? {
    state.withLock { state in
      if state.changes == nil { state.waiting.append(session) }
      return state.changes
    }
  }

  /// Says what the changes are, and returns the sessions that have to be woken.
  func resolve(_ changes: [ListenedChange]) -> [ListenSession] {
    state.withLock { state in
      state.changes = changes
      defer { state.waiting = [] }
      return state.waiting
    }
  }
}
