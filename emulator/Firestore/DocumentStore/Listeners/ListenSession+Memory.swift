import Synchronization

/// The memory that the queue takes.
extension ListenSession {
  /// Drops the queue of a slow client because other clients need the memory.
  ///
  /// The client's targets are reset when it takes more events.
  package func dropQueued() {
    state.withLock { $0.startAgain() }
    wake()
  }

  /// Wakes the task that takes events and cancels outdated reads.
  func wake() {
    let (waiter, released) = state.withLock { state in
      (state.waiter.take(), state.takeOutdated())
    }
    waiter?.resume()
    released?.resume()
    reportMemory()
  }

  /// Reports the session's memory use, and drops the queue if there is too little memory for all.
  func reportMemory() {
    guard let memory else { return }
    let fits = counting.withLock { _ in
      let change = state.withLock { state -> Int? in
        guard !state.isClosed else { return nil }
        let bytes =
          state.queue.commitBytes + state.queue.resultBytes + state.keptBytes
          + state.takenBytes
        let counted = bytes < Self.uncountedBytesMax ? 0 : bytes
        guard counted != state.heldBytes else { return nil }
        state.heldBytes = counted
        return counted
      }
      return change.map(memory.hold) ?? true
    }
    guard !fits else { return }
    let released = state.withLock { state in
      state.startAgain()
      return state.takeOutdated()
    }
    released?.resume()
    counting.withLock { _ in
      let bytes = state.withLock { state in
        state.heldBytes = state.takenBytes
        return state.takenBytes
      }
      // The events on their way to the transport are few; they are counted again with later ones.
      _ = memory.hold(bytes)
    }
  }

  /// The bytes up to which a session's queue is not counted, because the stream itself takes more.
  private static let uncountedBytesMax = 16 << 10
}
