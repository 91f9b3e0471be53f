import DocumentModel
import Identity
package import StatusCodes
import Synchronization

/// A client's listener: its targets in one database and the queue of events for the client.
///
/// One task adds and removes targets, and one task takes events. The events of a commit that
/// concern several targets are delivered together, followed by one `snapshot`. An idle session
/// occupies no thread. The queue for a slow client is bounded: beyond the limit its targets are
/// reset, and their documents are read again once the client has taken the queued events.
package final class ListenSession: Sendable {
  /// The limits of a session.
  package struct Configuration: Sendable {
    /// The maximum number of targets of one session.
    package var targetsMax: Int
    /// The maximum stored size of commits queued for the client.
    package var waitingBytesMax: Int
    /// The maximum number of commits queued for the client.
    package var waitingCommitsMax: Int
    /// The maximum number of rechecks of access queued until the client takes events.
    ///
    /// One commit can cause a recheck of every target.
    package var waitingRechecksMax: Int
    /// The bytes of results collected before the first ones are sent to the client.
    package var resultBytesMax: Int
    /// The maximum number of targets whose documents are read at a time.
    package var readsMax: Int

    /// Creates limits; the defaults suit phones.
    package init(
      targetsMax: Int = 10_000,
      waitingBytesMax: Int = 8 << 20,
      waitingCommitsMax: Int = 10_000,
      waitingRechecksMax: Int = 50_000,
      resultBytesMax: Int = 4 << 20,
      readsMax: Int = 4
    ) {
      self.targetsMax = targetsMax
      self.waitingBytesMax = waitingBytesMax
      self.waitingCommitsMax = waitingCommitsMax
      self.waitingRechecksMax = waitingRechecksMax
      self.resultBytesMax = resultBytesMax
      self.readsMax = readsMax
    }
  }

  typealias SubscriptionID = ListenTable.SubscriptionID

  let store: DocumentDatabase
  let database: DatabaseName
  let auth: AuthContext
  let configuration: Configuration
  /// The client this listener belongs to, if known.
  let client: ListenClient?
  let memory: (any ListenMemory)?
  /// Held during calls to `memory`; no other lock is held then.
  let counting = Mutex<Void>(())
  let state = Mutex(State())

  init(
    store: DocumentDatabase,
    database: DatabaseName,
    auth: AuthContext,
    client: ListenClient? = nil,
    memory: (any ListenMemory)? = nil,
    configuration: Configuration
  ) {
    self.store = store
    self.database = database
    self.auth = auth
    self.client = client
    self.memory = memory
    self.configuration = configuration
  }

  // MARK: Targets

  /// Adds a target, replacing one with the same ID; with ID 0, the session chooses the ID.
  ///
  /// An invalid target is reported by a `removed` event with its cause. Waits while the client has
  /// too many responses to take.
  package func add(_ request: ListenRequest, id: Int32) async {
    await waitForRoom { $0.queue.count < Self.answersMax && $0.jobCount < Self.answersMax }
    let id = id == 0 ? makeTargetID() : id
    drop(id)
    let prepared: PreparedTarget
    do {
      prepared = try store.prepare(request.target, of: database)
      guard state.withLock({ $0.targets.count < configuration.targetsMax }) else {
        throw StatusError(
          .resourceExhausted,
          "A stream can have at most \(configuration.targetsMax) targets."
        )
      }
    } catch {
      return send(.removed(id, cause: store.publicError(for: error)))
    }
    begin(
      Target(id: id, prepared: prepared, isOnce: request.isOnce),
      request.resumePoint,
      request.expectedCount
    )
  }

  func begin(
    _ target: Target,
    _ resumePoint: ResumePoint? = nil,
    _ expectedCount: Int? = nil,
    after old: SubscriptionID? = nil
  ) {
    let subscription = store.hub.withTable { table -> SubscriptionID? in
      let subscription = table.subscribe(self, to: target.prepared)
      let isWanted = state.withLock { state in
        guard !state.isClosed, state.subscriptions[target.id] == old else {
          // The client has removed the target in the meantime.
          if old != nil { state.forgetOutdated() }
          return false
        }
        state.subscriptions[target.id] = subscription
        state.targets[subscription] = target
        if old == nil { state.queue.append(.event(.added(target.id))) }
        state.incomplete.insert(subscription)
        state.jobCount += 1
        if old != nil {
          state.partly.insert(subscription)
          state.forgetOutdated()
        }
        return true
      }
      if !isWanted { table.unsubscribe(subscription) }
      return isWanted ? subscription : nil
    }
    guard let subscription else { return }
    wake()
    let job = Job(
      subscription: subscription,
      target: target.prepared,
      resumePoint: resumePoint,
      expectedCount: expectedCount
    )
    store.hub.read(job, for: self)
  }

  /// Refuses a target that could not be decoded; an existing target with the same ID ends.
  package func refuse(_ id: Int32, _ cause: StatusError) async {
    await waitForRoom { $0.queue.count < Self.answersMax }
    drop(id)
    send(.removed(id, cause: cause))
  }

  /// Ends a target; responds with a `removed` event, even if the ID is not in use.
  package func remove(_ id: Int32) async {
    await waitForRoom { $0.queue.count < Self.answersMax }
    drop(id)
    send(.removed(id, cause: nil))
  }

  private func makeTargetID() -> Int32 {
    state.withLock { state in
      while state.subscriptions[state.nextTargetID] != nil { state.nextTargetID += 1 }
      return state.nextTargetID
    }
  }

  /// Removes a target and its queued items.
  private func drop(_ id: Int32) {
    let dropped = state.withLock { state -> (SubscriptionID, Released)? in
      guard let subscription = state.subscriptions.removeValue(forKey: id) else { return nil }
      state.forget(subscription)
      state.queue.removeItems(of: subscription)
      return (subscription, state.release(readOf: subscription))
    }
    guard let (subscription, released) = dropped else { return }
    released.resume()
    store.hub.withTable { $0.unsubscribe(subscription) }
    reportMemory()
  }

  /// Ends all targets at once, without an event.
  ///
  /// Drops the queue and cancels the reads in progress.
  package func close() {
    let old = state.withLock { state in
      defer { state = State(isClosed: true) }
      return state
    }
    old.waiter?.resume()
    for read in old.reads.values { read.cancel() }
    for read in old.outdatedReads { read.cancel() }
    store.hub.withTable { table in for id in old.targets.keys { table.unsubscribe(id) } }
    store.hub.remove(self)
    for waiter in old.roomWaiters { waiter.resume(returning: true) }
    for handover in old.queue.handovers { handover.done() }
    counting.withLock { _ in _ = memory?.hold(0) }
  }

  /// Waits until `hasRoom` or until the session is closed.
  func waitForRoom(_ hasRoom: @Sendable (borrowing State) -> Bool) async {
    while true {
      let waited = await withCheckedContinuation { continuation in
        let isDone = state.withLock { state in
          if state.isClosed || hasRoom(state) { return true }
          state.roomWaiters.append(continuation)
          return false
        }
        if isDone { continuation.resume(returning: false) }
      }
      if !waited { return }
    }
  }

  /// The maximum number of queued responses; beyond it, no more of the client's requests are read.
  private static let answersMax = 1000

  func send(_ event: ListenEvent) {
    enqueue(.event(event))
    wake()
  }

}
