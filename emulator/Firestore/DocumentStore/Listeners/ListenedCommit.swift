import DocumentModel
import Synchronization

/// The effects of one commit on the targets of one listener.
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
  /// The size of the commit in the log, for the limits of queues.
  var bytes: Int
}

/// Changes that are known only after a read; computed once and shared by many listeners.
final class LaterChanges: Sendable {
  enum Outcome: Sendable {
    case known([ListenedChange])
    /// The changes will never be known; the target starts over.
    case lost
  }

  private struct State {
    var outcome: Outcome?
    var waiting: [ObjectIdentifier: ListenSession] = [:]
  }

  private let state = Mutex(State())

  /// Returns the changes; nil if they are not known yet.
  ///
  /// In that case, `session` is woken when they are.
  func outcome(for session: ListenSession) -> Outcome? {
    state.withLock { state in
      if state.outcome == nil { state.waiting[ObjectIdentifier(session)] = session }
      return state.outcome
    }
  }

  /// Sets the changes and returns the sessions to wake.
  func resolve(_ outcome: Outcome) -> [ListenSession] {
    state.withLock { state in
      state.outcome = outcome
      defer { state.waiting = [:] }
      return Array(state.waiting.values)
    }
  }
}
