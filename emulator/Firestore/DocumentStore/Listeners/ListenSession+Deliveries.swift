import DocumentModel
import StatusCodes
import Synchronization

/// The deliveries from the hub.
///
/// The hub calls these methods with its lock held, so none of them wakes the task that takes
/// events; the hub wakes it later.
extension ListenSession {
  func deliver(_ results: Results, of id: SubscriptionID) {
    guard !results.changes.isEmpty || results.count != nil else { return }
    state.withLock { state in
      guard state.wants(id) else { return }
      state.targets[id]?.isReported = true
      for part in results.inOrder { state.queue.append(.results(id, part)) }
    }
  }

  func deliver(current id: SubscriptionID, at time: Timestamp) {
    state.withLock { state in
      guard state.wants(id) else { return }
      state.targets[id]?.isReported = true
      state.queue.append(.current(id, time))
    }
  }

  /// Adds the listener to a wait, unless its transport has everything already.
  ///
  /// A listener that has not finished an earlier wait in time is not added again until it has.
  func deliver(_ handover: Handover) {
    state.withLock { state in
      guard !state.isClosed, !(state.queue.isEmpty && state.waiter != nil),
        state.queue.handover?.isOver != true
      else { return }
      handover.add()
      state.queue.append(.handover(handover))
    }
  }

  func deliver(failure error: StatusError, of id: SubscriptionID) { enqueue(.failure(id, error)) }

  func deliver(resetOf id: SubscriptionID) { enqueue(.reset(id)) }

  func deliver(recheckOf id: SubscriptionID, at moment: AccessMoment) {
    state.withLock { state in
      guard state.wants(id), let target = state.targets[id] else { return }
      // What a target without all its documents will be sent may show an earlier moment.
      state.queue.append(recheckOf: id, at: moment, isSole: target.isCurrent)
      restartIfOverfull(&state)
    }
  }

  /// Reports that nothing has changed up to a time, unless a queued item will report it.
  func deliver(_ time: Timestamp) {
    state.withLock { state in
      guard state.queue.isEmpty, state.targets.values.contains(where: \.isCurrent) else { return }
      state.queue.append(.time(time))
    }
  }

  func deliver(_ commit: ListenedCommit) {
    state.withLock { state in
      guard !state.isClosed, commit.parts.contains(where: { state.wants($0.subscription) }) else {
        return
      }
      state.queue.append(.commit(commit))
      restartIfOverfull(&state)
    }
  }

  private func restartIfOverfull(_ state: inout State) {
    guard
      state.queue.commitBytes > configuration.waitingBytesMax
        || state.queue.commitCount > configuration.waitingCommitsMax
        || state.queue.recheckCount > configuration.waitingRechecksMax
    else { return }
    state.startAgain()
  }

  func enqueue(_ item: ListenQueue.Item) {
    state.withLock { state in
      if !state.isClosed { state.queue.append(item) }
    }
  }
}
