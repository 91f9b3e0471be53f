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
  enum Outcome: Sendable {
    case known([ListenedChange])
    /// They will never be known: the target begins anew.
    case lost
  }

  private struct State {
    var outcome: Outcome?
    var waiting: [ObjectIdentifier: ListenSession] = [:]
  }

  private let state = Mutex(State())

  /// The changes, or nil; then `session` is woken when they are known.
  func outcome(for session: ListenSession) -> Outcome? {
    state.withLock { state in
      if state.outcome == nil { state.waiting[ObjectIdentifier(session)] = session }
      return state.outcome
    }
  }

  /// Says what the changes are, and returns the sessions that have to be woken.
  func resolve(_ outcome: Outcome) -> [ListenSession] {
    state.withLock { state in
      state.outcome = outcome
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
  }
}
