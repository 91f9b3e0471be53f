import DocumentModel
import Synchronization

/// The reads of the targets' initial documents.
extension ListenSession {
  /// A target whose documents are to be read.
  struct Job: Sendable {
    var subscription: SubscriptionID
    var target: PreparedTarget
    var resumePoint: ResumePoint?
    var expectedCount: Int?
  }

  /// A part of a target's initial documents.
  struct Results {
    var changes: ArraySlice<ListenedChange>
    var count: ResultCount?
    var time: Timestamp
    /// The bytes that the results take in the queue; 0 if the session does not limit them.
    var bytes: Int

    init(
      changes: [ListenedChange],
      count: ResultCount? = nil,
      time: Timestamp,
      bytes: Int = 0
    ) {
      self.changes = changes[...]
      self.count = count
      self.time = time
      self.bytes = bytes
    }

    /// The results such that each part's count comes after its changes.
    var inOrder: [Results] {
      guard let count, count.precedesDepartures else { return [self] }
      var (members, departures) = (self, self)
      members.changes = changes.filter(\.isMember)[...]
      departures.changes = changes.filter { !$0.isMember }[...]
      departures.count = nil
      departures.bytes = 0
      return departures.changes.isEmpty ? [members] : [members, departures]
    }
  }

  /// Reads a target's initial documents; called by the hub.
  func read(_ job: Job) async {
    defer { finish(job) }
    // A few reads at a time, so that one client neither fills the memory nor takes all permits.
    while !beginRead() {
      await waitForRoom { [configuration] in
        $0.queue.resultBytes <= configuration.resultBytesMax
          && $0.readCount < configuration.readsMax
      }
    }
    await store.hub.gate.enter()
    defer { store.hub.gate.leave() }
    do {
      guard wants(job.subscription) else { return }
      try await readCancellably(job)
    } catch is CancellationError {
      // The target is gone or starts over; changes are no longer kept for it.
      store.hub.withTable { $0.unsubscribe(job.subscription) }
    } catch {
      deliver(failure: store.publicError(for: error), of: job.subscription)
      wake()
      store.hub.withTable { $0.unsubscribe(job.subscription) }
    }
  }

  /// Reads a target's documents until they are complete or the client no longer wants them.
  private func readCancellably(_ job: Job) async throws {
    // The session owns the task and cancels it when the target ends; this method waits for its end.
    let read = Task {
      try await store.listen(
        self,
        job.subscription,
        to: job.target,
        from: job.resumePoint,
        expecting: job.expectedCount,
        auth: auth
      )
    }
    let isWanted = state.withLock { state in
      guard state.wants(job.subscription) else { return false }
      state.reads[job.subscription] = read
      return true
    }
    if !isWanted { read.cancel() }
    defer { state.withLock { _ = $0.reads.removeValue(forKey: job.subscription) } }
    try await withTaskCancellationHandler {
      try await read.value
    } onCancel: {
      read.cancel()
    }
  }

  /// Returns true if the client still wants a subscription's documents.
  func wants(_ id: SubscriptionID) -> Bool { state.withLock { $0.wants(id) } }

  /// Takes a permit for one of the session's reads; returns false if none is free.
  private func beginRead() -> Bool {
    state.withLock { state in
      guard
        state.isClosed
          || state.queue.resultBytes <= configuration.resultBytesMax
            && state.readCount < configuration.readsMax
      else { return false }
      state.readCount += 1
      return true
    }
  }

  private func finish(_ job: Job) {
    let waiters = state.withLock { state in
      state.jobCount -= 1
      state.readCount -= 1
      return state.takeRoomWaiters()
    }
    for waiter in waiters { waiter.resume(returning: true) }
  }

  /// Marks a subscription so that the client discards its documents before it receives more.
  func reset(_ id: SubscriptionID) { state.withLock { $0.targets[id]?.needsReset = true } }

  /// Queues the first results of a large target and returns once the client has taken most of them.
  ///
  /// `bytes` is the memory that the read holds until it continues.
  func deliverEarly(_ results: Results, of id: SubscriptionID, keeping bytes: Int) async {
    state.withLock { $0.keptBytes += bytes }
    defer { state.withLock { $0.keptBytes -= bytes } }
    deliver(results, of: id)
    wake()
    // While this client is slow, other reads use its permit.
    store.hub.gate.leave()
    await waitForRoom { [configuration] in
      $0.queue.resultBytes <= configuration.resultBytesMax || !$0.wants(id)
    }
    await store.hub.gate.enter()
  }

  /// The bytes of results queued for the client.
  var queuedResultBytes: Int { state.withLock { $0.queue.resultBytes } }

  /// The bytes of results collected before the first ones are sent.
  var resultBytesMax: Int { configuration.resultBytesMax }
}
