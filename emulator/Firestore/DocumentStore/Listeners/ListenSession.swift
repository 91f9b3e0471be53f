import DequeModule
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
    /// The bytes of results collected before the first ones are sent to the client.
    package var resultBytesMax: Int
    /// The maximum number of targets whose documents are read at a time.
    package var readsMax: Int

    /// Creates limits; the defaults suit phones.
    package init(
      targetsMax: Int = 10_000,
      waitingBytesMax: Int = 8 << 20,
      waitingCommitsMax: Int = 10_000,
      resultBytesMax: Int = 4 << 20,
      readsMax: Int = 4
    ) {
      self.targetsMax = targetsMax
      self.waitingBytesMax = waitingBytesMax
      self.waitingCommitsMax = waitingCommitsMax
      self.resultBytesMax = resultBytesMax
      self.readsMax = readsMax
    }
  }

  typealias SubscriptionID = ListenTable.SubscriptionID

  fileprivate struct Target {
    var id: Int32
    var prepared: PreparedTarget
    var isOnce: Bool
    /// True if some of the target's documents have been sent or queued.
    var isReported = false
    /// True if all of the target's documents have been sent.
    var isCurrent = false
    /// True if the client must discard the target's documents before it receives more.
    var needsReset = false
    /// True if the target is about to start over, so that nothing more is queued for it.
    var isOutdated = false
  }

  fileprivate enum Item {
    case event(ListenEvent)
    case results(SubscriptionID, Results)
    case current(SubscriptionID, Timestamp)
    case failure(SubscriptionID, StatusError)
    case reset(SubscriptionID)
    /// A recheck of the client's access, due before any later item is sent.
    case recheck(SubscriptionID, AccessMoment)
    case commit(ListenedCommit)
    case time(Timestamp)
    /// A wait until the client's transport has everything before this item.
    case handover(Handover)
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
  }

  fileprivate struct State {
    var subscriptions: [Int32: SubscriptionID] = [:]
    var targets: [SubscriptionID: Target] = [:]
    var items: Deque<Item> = []
    /// The bytes and the number of the commits in `items`.
    var commitBytes = 0
    var commitCount = 0
    /// The bytes of the results in `items`.
    var resultBytes = 0
    /// The bytes of the events taken last, which may not have reached the transport yet.
    var takenBytes = 0
    /// The bytes kept by reads that wait for the client.
    var keptBytes = 0
    /// The bytes currently reported to the memory for slow clients.
    var heldBytes = 0
    /// The last handover in `items`.
    var handover: Handover?
    /// The tasks that read documents of targets.
    var reads: [SubscriptionID: Task<Void, any Error>] = [:]
    /// The read tasks of targets that start over; cancelled once no lock is held.
    var outdatedReads: [Task<Void, any Error>] = []
    /// The subscriptions whose documents the client does not have completely yet.
    var incomplete: Set<SubscriptionID> = []
    /// The incomplete subscriptions of which the client has some documents.
    var partly: Set<SubscriptionID> = []
    /// The number of targets about to start over, whose documents at the client are out of date.
    var outdatedCount = 0
    /// The latest time that was withheld because of partial or outdated targets.
    var held: Timestamp?
    var isClosed = false
    var isInterrupted = false
    var waiter: CheckedContinuation<Void, Never>?
    var roomWaiters: [CheckedContinuation<Bool, Never>] = []
    var nextTargetID: Int32 = 1
    /// The number of targets whose documents are still to be read.
    var jobCount = 0
    /// The number of targets whose documents are being read.
    var readCount = 0
  }

  /// A target whose documents are to be read.
  struct Job: Sendable {
    var subscription: SubscriptionID
    var target: PreparedTarget
    var resumePoint: ResumePoint?
    var expectedCount: Int?
  }

  private let store: DocumentDatabase
  private let database: DatabaseName
  private let auth: AuthContext
  private let configuration: Configuration
  /// The client this listener belongs to, if known.
  let client: ListenClient?
  private let memory: (any ListenMemory)?
  /// Held during calls to `memory`; no other lock is held then.
  private let counting = Mutex<Void>(())
  private let state = Mutex(State())

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
    await waitForRoom { $0.items.count < Self.answersMax && $0.jobCount < Self.answersMax }
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
      return tell(.removed(id, cause: store.publicError(for: error)))
    }
    begin(
      Target(id: id, prepared: prepared, isOnce: request.isOnce),
      request.resumePoint,
      request.expectedCount
    )
  }

  private func begin(
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
        if old == nil { state.items.append(.event(.added(target.id))) }
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
    await waitForRoom { $0.items.count < Self.answersMax }
    drop(id)
    tell(.removed(id, cause: cause))
  }

  /// Ends a target; responds with a `removed` event, even if the ID is not in use.
  package func remove(_ id: Int32) async {
    await waitForRoom { $0.items.count < Self.answersMax }
    drop(id)
    tell(.removed(id, cause: nil))
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
      state.dropItems(of: subscription)
      return (subscription, state.release(readOf: subscription))
    }
    guard let (subscription, released) = dropped else { return }
    released.resume()
    store.hub.withTable { $0.unsubscribe(subscription) }
    count()
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
    for case .handover(let handover) in old.items { handover.done() }
    counting.withLock { _ in _ = memory?.hold(0) }
  }

  // MARK: Reading

  /// Reads a target's initial documents; called by the hub.
  func read(_ job: Job) async {
    defer { finish(job) }
    // A few reads at a time, so that one client neither fills the memory nor takes all permits.
    while !beginRead() {
      await waitForRoom { [configuration] in
        $0.resultBytes <= configuration.resultBytesMax && $0.readCount < configuration.readsMax
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
          || state.resultBytes <= configuration.resultBytesMax
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
      $0.resultBytes <= configuration.resultBytesMax || !$0.wants(id)
    }
    await store.hub.gate.enter()
  }

  /// The bytes of results queued for the client.
  var queuedResultBytes: Int { state.withLock { $0.resultBytes } }

  /// The bytes of results collected before the first ones are sent.
  var resultBytesMax: Int { configuration.resultBytesMax }

  private func waitForRoom(_ hasRoom: @Sendable (borrowing State) -> Bool) async {
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

  // MARK: Deliveries from the hub

  // The hub calls these methods with its lock held, so none of them wakes the task that takes
  // events; the hub wakes it later.

  func deliver(_ results: Results, of id: SubscriptionID) {
    guard !results.changes.isEmpty || results.count != nil else { return }
    state.withLock { state in
      guard state.wants(id) else { return }
      state.targets[id]?.isReported = true
      state.resultBytes += results.bytes
      state.items.append(.results(id, results))
    }
  }

  func deliver(current id: SubscriptionID, at time: Timestamp) {
    state.withLock { state in
      guard state.wants(id) else { return }
      state.targets[id]?.isReported = true
      state.items.append(.current(id, time))
    }
  }

  /// Adds the listener to a wait, unless its transport has everything already.
  ///
  /// A listener that has not finished an earlier wait in time is not added again until it has.
  func deliver(_ handover: Handover) {
    state.withLock { state in
      guard !state.isClosed, !(state.items.isEmpty && state.waiter != nil),
        state.handover?.isOver != true
      else { return }
      handover.add()
      state.handover = handover
      state.items.append(.handover(handover))
    }
  }

  func deliver(failure error: StatusError, of id: SubscriptionID) { enqueue(.failure(id, error)) }

  func deliver(resetOf id: SubscriptionID) { enqueue(.reset(id)) }

  func deliver(recheckOf id: SubscriptionID, since moment: AccessMoment) {
    enqueue(.recheck(id, moment))
  }

  /// Reports that nothing has changed up to a time, unless a queued item will report it.
  func deliver(_ time: Timestamp) {
    state.withLock { state in
      guard state.items.isEmpty, state.targets.values.contains(where: \.isCurrent) else { return }
      state.items.append(.time(time))
    }
  }

  func deliver(_ commit: ListenedCommit) {
    state.withLock { state in
      guard !state.isClosed, commit.parts.contains(where: { state.wants($0.subscription) }) else {
        return
      }
      state.commitBytes += commit.bytes
      state.commitCount += 1
      state.items.append(.commit(commit))
      if state.commitBytes > configuration.waitingBytesMax
        || state.commitCount > configuration.waitingCommitsMax
      {
        state.startAgain()
      }
    }
  }

  private func enqueue(_ item: Item) {
    state.withLock { state in
      if !state.isClosed { state.items.append(item) }
    }
  }

  private func tell(_ event: ListenEvent) {
    enqueue(.event(event))
    wake()
  }

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
    count()
  }

  /// Reports the session's memory use, and drops the queue if there is too little memory for all.
  private func count() {
    guard let memory else { return }
    let fits = counting.withLock { _ in
      let change = state.withLock { state -> Int? in
        guard !state.isClosed else { return nil }
        let bytes = state.commitBytes + state.resultBytes + state.keptBytes + state.takenBytes
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

  // MARK: Events for the client

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
      let taken = take()
      for waiter in taken.roomWaiters { waiter.resume(returning: true) }
      for handover in taken.handovers { handover.done() }
      count()
      for (target, old) in taken.restarted { begin(target, after: old) }
      if !taken.ended.isEmpty {
        store.hub.withTable { table in for id in taken.ended { table.unsubscribe(id) } }
      }
      if taken.isClosed { return nil }
      if let (id, moment) = taken.recheck { await recheck(id, since: moment) }
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
    switch state.items.first {
    case nil: false
    case .commit(let commit): changes(of: commit, state) != nil
    default: true
    }
  }

  /// The result of taking items from the queue.
  private struct Taken {
    var events: [ListenEvent] = []
    /// The targets whose documents are to be read again.
    var restarted: [(target: Target, old: SubscriptionID)] = []
    /// The subscriptions that are no longer needed.
    var ended: [SubscriptionID] = []
    /// A subscription whose access has to be rechecked before anything else is taken.
    var recheck: (SubscriptionID, AccessMoment)?
    var roomWaiters: [CheckedContinuation<Bool, Never>] = []
    /// The waits that end because the transport has everything taken before.
    var handovers: [Handover] = []
    /// The bytes of the events.
    var bytes = 0
    var isClosed = false
  }

  /// Rechecks access to a target and ends the target if access is denied.
  ///
  /// If the client may have lacked access to some of the queued changes, the target starts over.
  private func recheck(_ id: SubscriptionID, since moment: AccessMoment) async {
    guard let target = state.withLock({ $0.targets[id]?.prepared }) else { return }
    do {
      if try await store.isStillAuthorized(target, id, since: moment, auth) { return }
      state.withLock { $0.items.prepend(.reset(id)) }
    } catch {
      let reported = store.publicError(for: error)
      state.withLock { $0.items.prepend(.failure(id, reported)) }
      store.hub.withTable { $0.unsubscribe(id) }
    }
  }

  private func take() -> Taken {
    state.withLock { state in
      var taken = Taken()
      while taken.events.count < Self.eventsMax, taken.bytes < Self.eventBytesMax,
        let item = state.items.first
      {
        if case .handover(let handover) = item {
          guard taken.events.isEmpty else { break }
          state.items.removeFirst()
          if state.handover === handover { state.handover = nil }
          taken.handovers.append(handover)
          continue
        }
        if case .recheck(let id, let moment) = item {
          // The events taken so far are sent first.
          guard taken.events.isEmpty else { break }
          taken.recheck = (id, moment)
          state.items.removeFirst()
          break
        }
        if case .commit(let commit) = item {
          guard let (changes, lost) = changes(of: commit, state) else { break }
          taken.bytes += commit.bytes
          state.commitBytes -= commit.bytes
          state.commitCount -= 1
          for id in lost { take(.reset(id), &state, &taken) }
          append(changes, at: commit.time, to: &taken)
          tell(commit.time, &state, &taken)
        } else if case .results(let id, let results) = item,
          let rest = takePart(of: results, id, &state, &taken)
        {
          state.items[0] = .results(id, rest)
          continue
        } else {
          take(item, &state, &taken)
        }
        state.items.removeFirst()
      }
      state.takenBytes = taken.bytes
      taken.roomWaiters = state.takeRoomWaiters()
      taken.isClosed = state.isClosed || state.isInterrupted
      return taken
    }
  }

  /// Takes as many results as fit into one batch of events; returns nil if all of them fit.
  private func takePart(
    of results: Results,
    _ id: SubscriptionID,
    _ state: inout State,
    _ taken: inout Taken
  ) -> Results? {
    let average = max(1, results.bytes / max(1, results.changes.count))
    let count = max(
      1,
      min(Self.eventsMax - taken.events.count, (Self.eventBytesMax - taken.bytes) / average)
    )
    guard count < results.changes.count else { return nil }
    var (part, rest) = (results, results)
    part.count = nil
    part.changes = results.changes.prefix(count)
    part.bytes = min(results.bytes, count * average)
    rest.changes.removeFirst(count)
    rest.bytes -= part.bytes
    take(.results(id, part), &state, &taken)
    return rest
  }

  private func take(_ item: Item, _ state: inout State, _ taken: inout Taken) {
    switch item {
    case .event(let event): taken.events.append(event)
    case .time(let time): tell(time, &state, &taken)
    case .commit, .recheck, .handover: break
    case .results(let id, let results):
      state.resultBytes -= results.bytes
      taken.bytes += results.bytes
      guard let target = state.reset(id, &taken.events) else { return }
      state.partly.insert(id)
      append([(target.id, Array(results.changes))], at: results.time, to: &taken)
      // The client compares the count with the documents it then has. If the filter came before the
      // departures, a departing document could hide the loss of another one.
      if let count = results.count {
        taken.events.append(.filter(target.id, count: count.count, names: count.names))
      }
    case .current(let id, let time):
      guard let target = state.reset(id, &taken.events) else { return }
      state.partly.remove(id)
      state.incomplete.remove(id)
      state.targets[id]?.isCurrent = true
      taken.events.append(.current(target.id, readTime: time, token: token(time)))
      tell(time, &state, &taken)
      if target.isOnce {
        taken.events.append(.removed(target.id, cause: nil))
        state.subscriptions[target.id] = nil
        state.forget(id)
        taken.ended.append(id)
      }
    case .failure(let id, let error):
      guard let target = state.targets[id] else { return }
      taken.events.append(.removed(target.id, cause: error))
      state.subscriptions[target.id] = nil
      state.forget(id)
    case .reset(let id):
      guard var target = state.targets[id] else { return }
      state.forget(id)
      target.isReported = false
      target.isCurrent = false
      target.needsReset = true
      target.isOutdated = false
      state.outdatedCount += 1
      taken.restarted.append((target, id))
      taken.ended.append(id)
    }
  }

  /// Returns the changes of a commit by target, and the subscriptions whose changes are lost.
  ///
  /// Returns nil if some changes are not known yet.
  private func changes(
    of commit: ListenedCommit,
    _ state: borrowing State
  ) -> (known: [(target: Int32, changes: [ListenedChange])], lost: [SubscriptionID])? {
    var known: [(target: Int32, changes: [ListenedChange])] = []
    var lost: [SubscriptionID] = []
    for part in commit.parts {
      guard let target = state.targets[part.subscription] else { continue }
      switch part.delta {
      case .now(let changes): known.append((target.id, changes))
      case .later(let later):
        switch later.outcome(for: self) {
        case .known(let changes): known.append((target.id, changes))
        case .lost: lost.append(part.subscription)
        case nil: return nil
        }
      }
    }
    return (known, lost)
  }

  /// Adds a snapshot, unless the client has only a part of some target's documents.
  private func tell(_ time: Timestamp, _ state: inout State, _ taken: inout Taken) {
    guard state.partly.isEmpty, state.outdatedCount == 0 else {
      state.held = time
      return
    }
    state.held = nil
    // A client applies the token to all its targets, including one whose documents it does not
    // have.
    let token = state.incomplete.isEmpty ? token(time) : []
    taken.events.append(.snapshot(readTime: time, token: token))
  }

  /// Adds the changes of documents, one event per document regardless of the number of its targets.
  private func append(
    _ changes: [(target: Int32, changes: [ListenedChange])],
    at time: Timestamp,
    to taken: inout Taken
  ) {
    if changes.count == 1, let (target, only) = changes.first {
      for change in only {
        var outcome = DocumentOutcome()
        outcome.add(change, target)
        taken.events.append(outcome.event(change.name, at: time, hidesFormer: hidesFormer))
      }
      return
    }
    var names: [DocumentName] = []
    var outcomes: [DocumentName: DocumentOutcome] = [:]
    for (target, changes) in changes {
      for change in changes {
        if outcomes[change.name] == nil { names.append(change.name) }
        outcomes[change.name, default: DocumentOutcome()].add(change, target)
      }
    }
    for name in names {
      guard let outcome = outcomes[name] else { continue }
      taken.events.append(outcome.event(name, at: time, hidesFormer: hidesFormer))
    }
  }

  /// True if a document that has left a target may be one that the client must not see.
  private var hidesFormer: Bool { auth != .admin && !store.accessPolicy.isOpen(database) }

  private func token(_ time: Timestamp) -> [UInt8] { store.hub.token(time, of: database) }

  /// The maximum number of events taken at a time.
  private static let eventsMax = 256
  /// The bytes of events taken at a time, after which no more are added.
  ///
  /// Taken events can no longer be dropped if the client does not read.
  private static let eventBytesMax = 1 << 20
}

/// The outcome of one commit for a document in all targets of a listener.
private struct DocumentOutcome {
  private var document: ListenedDocument?
  private var isDeleted = false
  private var targets: [Int32] = []
  private var removedTargets: [Int32] = []

  mutating func add(_ change: ListenedChange, _ target: Int32) {
    switch change {
    case .member(let document):
      self.document = document
      targets.append(target)
    case .former(let document):
      self.document = document
      removedTargets.append(target)
    case .departed: removedTargets.append(target)
    case .deleted:
      isDeleted = true
      removedTargets.append(target)
    }
  }

  func event(_ name: DocumentName, at time: Timestamp, hidesFormer: Bool) -> ListenEvent {
    let (targets, removedTargets) = (targets.sorted(), removedTargets.sorted())
    if isDeleted { return .deleted(name, removedTargets: removedTargets, readTime: time) }
    guard let document, !(hidesFormer && targets.isEmpty) else {
      return .departed(name, removedTargets: removedTargets, readTime: time)
    }
    return .document(document, targets: targets, removedTargets: removedTargets)
  }
}

/// Tasks and waiters to cancel or resume once no lock is held.
private struct Released {
  var reads: [Task<Void, any Error>] = []
  var roomWaiters: [CheckedContinuation<Bool, Never>] = []

  func resume() {
    for read in reads { read.cancel() }
    for waiter in roomWaiters { waiter.resume(returning: true) }
  }
}

extension ListenSession.State {
  /// Removes a subscription.
  fileprivate mutating func forget(_ id: ListenSession.SubscriptionID) {
    targets[id] = nil
    incomplete.remove(id)
    if partly.remove(id) != nil { release() }
  }

  /// Returns true if more may be queued for a subscription.
  fileprivate func wants(_ id: ListenSession.SubscriptionID) -> Bool {
    targets[id].map { !$0.isOutdated } ?? false
  }

  /// Drops the queued items of a subscription that has ended.
  fileprivate mutating func dropItems(of id: ListenSession.SubscriptionID) {
    var kept: Deque<ListenSession.Item> = []
    for item in items {
      switch item {
      case .results(id, let results): resultBytes -= results.bytes
      case .current(id, _), .failure(id, _), .reset(id), .recheck(id, _): continue
      case .commit(var commit):
        commit.parts.removeAll { $0.subscription == id }
        guard commit.parts.isEmpty else {
          kept.append(.commit(commit))
          continue
        }
        commitBytes -= commit.bytes
        commitCount -= 1
        kept.append(.time(commit.time))
      default: kept.append(item)
      }
    }
    items = kept
  }

  /// Drops the queue of a slow client; its targets are reset when it reads on.
  fileprivate mutating func startAgain() {
    guard !isClosed else { return }
    var kept: Deque<ListenSession.Item> = []
    // Targets whose documents are still being read have missed nothing.
    var resets = Set(targets.filter(\.value.isReported).keys)
    for item in items {
      switch item {
      case .event, .failure, .recheck, .handover: kept.append(item)
      case .reset(let id): resets.insert(id)
      case .results, .current, .commit, .time: continue
      }
    }
    items = kept
    for id in resets.sorted() where targets[id] != nil {
      targets[id]?.isOutdated = true
      if let read = reads.removeValue(forKey: id) { outdatedReads.append(read) }
      items.append(.reset(id))
    }
    commitBytes = 0
    commitCount = 0
    resultBytes = 0
  }

  /// Removes the read of a subscription and all tasks waiting for room, which check again.
  fileprivate mutating func release(readOf id: ListenSession.SubscriptionID) -> Released {
    Released(
      reads: reads.removeValue(forKey: id).map { [$0] } ?? [],
      roomWaiters: takeRoomWaiters()
    )
  }

  /// Removes the reads of outdated targets and all tasks waiting for room; nil without such reads.
  fileprivate mutating func takeOutdated() -> Released? {
    guard !outdatedReads.isEmpty else { return nil }
    defer { outdatedReads = [] }
    return Released(reads: outdatedReads, roomWaiters: takeRoomWaiters())
  }

  /// Records that an outdated target has started over or is gone.
  fileprivate mutating func forgetOutdated() {
    outdatedCount -= 1
    release()
  }

  /// Queues the withheld time once nothing withholds it any longer.
  private mutating func release() {
    guard partly.isEmpty, outdatedCount == 0, let time = held else { return }
    held = nil
    items.append(.time(time))
  }

  /// Returns the target of a subscription, adding a reset event first if one is due.
  fileprivate mutating func reset(
    _ id: ListenSession.SubscriptionID,
    _ events: inout [ListenEvent]
  ) -> ListenSession.Target? {
    guard let target = targets[id] else { return nil }
    if target.needsReset {
      events.append(.reset(target.id))
      targets[id]?.needsReset = false
    }
    return target
  }

  fileprivate mutating func takeRoomWaiters() -> [CheckedContinuation<Bool, Never>] {
    defer { roomWaiters = [] }
    return roomWaiters
  }
}
