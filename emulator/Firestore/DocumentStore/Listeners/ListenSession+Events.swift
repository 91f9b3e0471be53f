import DocumentModel
import Identity
import Synchronization

extension ListenSession {
  /// Returns the next events, at least one; nil if the session is closed or the task cancelled.
  ///
  /// Only one task at a time may call it.
  package func next() async -> [ListenEvent]? {
    while true {
      let moved = state.withLock { state in
        defer { state.takenBytes = 0 }
        return state.takenBytes
      }
      if moved > 0 { memory?.moved(moved) }
      let taken = state.withLock { state in
        var assembly = SnapshotAssembly(for: self)
        assembly.take(from: &state)
        return assembly
      }
      for waiter in taken.roomWaiters { waiter.resume(returning: true) }
      for handover in taken.handovers { handover.done() }
      reportMemory()
      for (target, old) in taken.restarted { begin(target, after: old) }
      if !taken.ended.isEmpty {
        store.hub.withTable { table in for id in taken.ended { table.unsubscribe(id) } }
      }
      if taken.isClosed { return nil }
      if let (id, moment) = taken.recheck { await recheck(id, at: moment) }
      if !taken.events.isEmpty { return taken.events }
      await waitForItems()
    }
  }

  private func waitForItems() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waits = state.withLock { state in
          guard !state.isClosed, !state.isInterrupted, !hasNews(state) else { return false }
          state.waiter = continuation
          return true
        }
        if !waits { continuation.resume() }
      }
    } onCancel: {
      interrupt()
    }
  }

  /// Resumes the task that takes events, so that it ends.
  ///
  /// Called while the task's own lock is held, so it takes no lock except the session's.
  private func interrupt() {
    let waiter = state.withLock { state in
      state.isInterrupted = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  private func hasNews(_ state: borrowing State) -> Bool {
    switch state.queue.first {
    case nil: false
    case .commit(let commit): state.changes(of: commit, for: self) != nil
    default: true
    }
  }

  /// Rechecks access to a target; without access then, the target starts over.
  ///
  /// The start decides whether the client has access now, and ends the target if not.
  private func recheck(_ id: SubscriptionID, at moment: AccessMoment) async {
    guard let target = state.withLock({ $0.targets[id]?.prepared }) else { return }
    // If the decision failed for another reason than access, so does the start, which reports it.
    if (try? await store.isAuthorized(target, id, at: moment, auth)) == true { return }
    state.withLock { $0.queue.prepend(.reset(id)) }
  }

  /// True if a document that has left a target may be one that the client must not see.
  var hidesFormer: Bool { auth != .admin && !store.accessPolicy.isOpen(database) }

  func token(_ time: Timestamp) -> [UInt8] { store.hub.token(time, of: database) }
}
