import DequeModule
import DocumentModel
import Identity
package import RuntimeSupport
import Synchronization

/// One client's listener: its targets in one database, and what it is still to be told.
///
/// One task adds and removes targets, one takes events; the events of a commit that concern several
/// targets come together, followed by one `snapshot`. While nothing happens neither costs a thread.
/// What waits for a slow client is bounded: beyond the bound its targets are reset, and their
/// documents read again once the client takes what it has.
package final class ListenSession: Sendable {
  /// The bounds of a session.
  package struct Configuration: Sendable {
    /// Targets of one session.
    package var targetsMax: Int
    /// Stored bytes of commits that wait for the client.
    package var waitingBytesMax: Int
    /// Commits that wait for the client.
    package var waitingCommitsMax: Int
    /// Bytes of results that are gathered before the client gets the first ones.
    package var resultBytesMax: Int
    /// Targets whose documents are read at a time.
    package var readsMax: Int

    /// Bounds; the defaults suit phones.
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
    /// Whether some of its documents are told, or queued.
    var isTold = false
    /// Whether all its documents were told.
    var isCurrent = false
    /// Whether the client must forget what it has before it is told more.
    var needsReset = false
  }

  fileprivate enum Item {
    case event(ListenEvent)
    case results(SubscriptionID, Results)
    case current(SubscriptionID, Timestamp)
    case failure(SubscriptionID, StatusError)
    case reset(SubscriptionID)
    /// Whether the client may still listen is to be asked before more is told.
    case recheck(SubscriptionID, AccessMoment)
    case commit(ListenedCommit)
    case time(Timestamp)
  }

  /// A part of what a target has when it is taken on.
  struct Results {
    var changes: [ListenedChange]
    var count: ResultCount?
    var time: Timestamp
    /// What they take while they wait, if that is bounded here.
    var bytes = 0
  }

  fileprivate struct State {
    var subscriptions: [Int32: SubscriptionID] = [:]
    var targets: [SubscriptionID: Target] = [:]
    var items: Deque<Item> = []
    /// What the commits among `items` take, and how many there are.
    var commitBytes = 0
    var commitCount = 0
    /// What the results among `items` take.
    var resultBytes = 0
    /// Subscriptions of which the client does not know all documents yet.
    var incomplete: Set<SubscriptionID> = []
    /// Those of them of which it knows some.
    var partly: Set<SubscriptionID> = []
    /// Targets that are to begin anew, of which the client knows what is no longer so.
    var outdatedCount = 0
    /// The latest time that was not told because of these.
    var held: Timestamp?
    var isClosed = false
    var isInterrupted = false
    var waiter: CheckedContinuation<Void, Never>?
    var roomWaiters: [CheckedContinuation<Bool, Never>] = []
    var nextTargetID: Int32 = 1
    /// Targets whose documents are to be read.
    var jobCount = 0
    /// Those of them that are being read.
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
  private let state = Mutex(State())

  init(
    store: DocumentDatabase,
    database: DatabaseName,
    auth: AuthContext,
    configuration: Configuration
  ) {
    self.store = store
    self.database = database
    self.auth = auth
    self.configuration = configuration
  }

  // MARK: Targets

  /// Takes on a target, which replaces one of the same id; 0 lets the session choose the id.
  ///
  /// What is wrong with the target is told by a `removed` event with its cause. Waits while the
  /// client leaves too many answers untaken.
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
      return tell(.removed(id, cause: store.told(error)))
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
          // The client has removed it meanwhile.
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

  /// Refuses a target that cannot even be read; one of the same id ends.
  package func refuse(_ id: Int32, _ cause: StatusError) async {
    await waitForRoom { $0.items.count < Self.answersMax }
    drop(id)
    tell(.removed(id, cause: cause))
  }

  /// Ends a target; the answer is a `removed` event, also for an id that is not in use.
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

  /// Forgets a target; what is queued for it will not be told.
  private func drop(_ id: Int32) {
    let subscription = state.withLock { state -> SubscriptionID? in
      guard let subscription = state.subscriptions.removeValue(forKey: id) else { return nil }
      state.forget(subscription)
      return subscription
    }
    if let subscription { store.hub.withTable { $0.unsubscribe(subscription) } }
  }

  /// Ends all targets; nobody is told.
  package func close() {
    let (subscriptions, waiter, waiters) = state.withLock { state in
      let old = state
      state = State(isClosed: true)
      return (Array(old.targets.keys), old.waiter, old.roomWaiters)
    }
    waiter?.resume()
    store.hub.withTable { table in for id in subscriptions { table.unsubscribe(id) } }
    store.hub.remove(self)
    for waiter in waiters { waiter.resume(returning: true) }
  }

  // MARK: Reading

  /// Reads what a target is told first; the hub calls it.
  func read(_ job: Job) async {
    defer { finish(job) }
    // A few at a time, so that one client neither fills the memory nor takes all turns.
    while !beginRead() {
      await waitForRoom { [configuration] in
        $0.resultBytes <= configuration.resultBytesMax && $0.readCount < configuration.readsMax
      }
    }
    await store.hub.gate.enter()
    defer { store.hub.gate.leave() }
    do {
      guard wants(job.subscription) else { return }
      try await store.listen(
        self,
        job.subscription,
        to: job.target,
        from: job.resumePoint,
        expecting: job.expectedCount,
        auth: auth
      )
    } catch is CancellationError {
      return
    } catch {
      deliver(failure: store.told(error), of: job.subscription)
      wake()
      store.hub.withTable { $0.unsubscribe(job.subscription) }
    }
  }

  /// Whether the client still wants a subscription's documents.
  func wants(_ id: SubscriptionID) -> Bool { state.withLock { $0.targets[id] != nil } }

  /// Takes one of the session's reads; false when there is none to take.
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

  /// Lets the client forget what it has of a target before it is told more.
  func reset(_ id: SubscriptionID) { state.withLock { $0.targets[id]?.needsReset = true } }

  /// Queues the first results of a large target and returns when the client has taken most of them.
  func deliverEarly(_ results: Results, of id: SubscriptionID) async {
    deliver(results, of: id)
    wake()
    // Others take the turn of one whose client is slow.
    store.hub.gate.leave()
    await waitForRoom { [configuration] in $0.resultBytes <= configuration.resultBytesMax }
    await store.hub.gate.enter()
  }

  /// How many bytes of results are gathered before the first ones are told.
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

  /// Answers that a client may leave untaken before no more of its requests are read.
  private static let answersMax = 1000

  // MARK: What the hub tells

  // The hub's lock is held meanwhile, so none of these wakes the task that takes events: the hub does
  // so later.

  func deliver(_ results: Results, of id: SubscriptionID) {
    guard !results.changes.isEmpty || results.count != nil else { return }
    state.withLock { state in
      guard state.targets[id] != nil else { return }
      state.targets[id]?.isTold = true
      state.resultBytes += results.bytes
      state.items.append(.results(id, results))
    }
  }

  func deliver(current id: SubscriptionID, at time: Timestamp) {
    state.withLock { $0.targets[id]?.isTold = true }
    enqueue(.current(id, time))
  }

  func deliver(failure error: StatusError, of id: SubscriptionID) { enqueue(.failure(id, error)) }

  func deliver(resetOf id: SubscriptionID) { enqueue(.reset(id)) }

  func deliver(recheckOf id: SubscriptionID, since moment: AccessMoment) {
    enqueue(.recheck(id, moment))
  }

  /// Tells that nothing has changed up to a time, unless something else will tell it.
  func deliver(_ time: Timestamp) {
    state.withLock { state in
      guard state.items.isEmpty, state.targets.values.contains(where: \.isCurrent) else { return }
      state.items.append(.time(time))
    }
  }

  func deliver(_ commit: ListenedCommit) {
    let isOverfull = state.withLock { state in
      guard !state.isClosed else { return false }
      state.commitBytes += commit.bytes
      state.commitCount += 1
      state.items.append(.commit(commit))
      return state.commitBytes > configuration.waitingBytesMax
        || state.commitCount > configuration.waitingCommitsMax
    }
    if isOverfull { startAnew() }
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

  /// Forgets what a slow client was to be told; its targets are reset when it takes more.
  private func startAnew() {
    state.withLock { state in
      var kept: Deque<Item> = []
      // Those whose documents are still being read have missed nothing.
      var resets = Set(state.targets.filter(\.value.isTold).keys)
      for item in state.items {
        switch item {
        case .event, .failure, .recheck: kept.append(item)
        case .reset(let id): resets.insert(id)
        case .results, .current, .commit, .time: continue
        }
      }
      state.items = kept
      for id in resets.sorted() { state.items.append(.reset(id)) }
      state.commitBytes = 0
      state.commitCount = 0
      state.resultBytes = 0
    }
  }

  /// Wakes the task that takes events.
  func wake() {
    let waiter = state.withLock { state in
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  // MARK: What the client takes

  /// The next events, at least one; nil when the session is closed or the task cancelled.
  ///
  /// One task at a time may ask.
  package func next() async -> [ListenEvent]? {
    while true {
      let taken = take()
      for waiter in taken.roomWaiters { waiter.resume(returning: true) }
      for (target, old) in taken.anew { begin(target, after: old) }
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

  /// Lets the task that takes events go on, to its end.
  ///
  /// Called while the task's own lock is held, so it takes no other than the session's.
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

  /// What was taken from the queue.
  private struct Taken {
    var events: [ListenEvent] = []
    /// Targets whose documents are to be read again.
    var anew: [(target: Target, old: SubscriptionID)] = []
    /// Subscriptions that have served.
    var ended: [SubscriptionID] = []
    /// A subscription that is to be asked about before anything else is taken.
    var recheck: (SubscriptionID, AccessMoment)?
    var roomWaiters: [CheckedContinuation<Bool, Never>] = []
    var isClosed = false
  }

  /// Ends a target that the client may no longer listen to.
  ///
  /// One of which it might have had no right to some of what is queued begins anew.
  private func recheck(_ id: SubscriptionID, since moment: AccessMoment) async {
    guard let target = state.withLock({ $0.targets[id]?.prepared }) else { return }
    do {
      if try await store.isStillAuthorized(target, id, since: moment, auth) { return }
      state.withLock { $0.items.prepend(.reset(id)) }
    } catch {
      let told = store.told(error)
      state.withLock { $0.items.prepend(.failure(id, told)) }
      store.hub.withTable { $0.unsubscribe(id) }
    }
  }

  private func take() -> Taken {
    state.withLock { state in
      var taken = Taken()
      while taken.events.count < Self.eventsMax, let item = state.items.first {
        if case .recheck(let id, let moment) = item {
          // What was taken before is told first.
          guard taken.events.isEmpty else { break }
          taken.recheck = (id, moment)
          state.items.removeFirst()
          break
        }
        if case .commit(let commit) = item {
          guard let (changes, lost) = changes(of: commit, state) else { break }
          state.commitBytes -= commit.bytes
          state.commitCount -= 1
          for id in lost { take(.reset(id), &state, &taken) }
          append(changes, at: commit.time, to: &taken)
          tell(commit.time, &state, &taken)
        } else {
          take(item, &state, &taken)
        }
        state.items.removeFirst()
      }
      taken.roomWaiters = state.takeRoomWaiters()
      taken.isClosed = state.isClosed || state.isInterrupted
      return taken
    }
  }

  private func take(_ item: Item, _ state: inout State, _ taken: inout Taken) {
    switch item {
    case .event(let event): taken.events.append(event)
    case .time(let time): tell(time, &state, &taken)
    case .commit, .recheck: break
    case .results(let id, let results):
      state.resultBytes -= results.bytes
      guard let target = state.reset(id, &taken.events) else { return }
      state.partly.insert(id)
      append([(target.id, results.changes)], at: results.time, to: &taken)
      // The client compares the count with what it has by then: before the departures, one of them
      // could stand in for a document that the client has lost.
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
      target.isTold = false
      target.isCurrent = false
      target.needsReset = true
      state.outdatedCount += 1
      taken.anew.append((target, id))
      taken.ended.append(id)
    }
  }

  /// The changes of a commit by target, and those for which they will never be known; nil when some
  /// are not known yet.
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
    // A client takes the token for all its targets, also for one that it knows nothing of yet.
    let token = state.incomplete.isEmpty ? token(time) : []
    taken.events.append(.snapshot(readTime: time, token: token))
  }

  /// Adds what has become of documents, each once, whatever the number of its targets.
  private func append(
    _ changes: [(target: Int32, changes: [ListenedChange])],
    at time: Timestamp,
    to taken: inout Taken
  ) {
    if changes.count == 1, let (target, only) = changes.first {
      for change in only {
        var fate = DocumentFate()
        fate.add(change, target)
        taken.events.append(fate.event(change.name, at: time, hidesFormer: hidesFormer))
      }
      return
    }
    var names: [DocumentName] = []
    var fates: [DocumentName: DocumentFate] = [:]
    for (target, changes) in changes {
      for change in changes {
        if fates[change.name] == nil { names.append(change.name) }
        fates[change.name, default: DocumentFate()].add(change, target)
      }
    }
    for name in names {
      guard let fate = fates[name] else { continue }
      taken.events.append(fate.event(name, at: time, hidesFormer: hidesFormer))
    }
  }

  /// Whether what no longer belongs to a target may be what the client must not see.
  private var hidesFormer: Bool { auth != .admin && !store.accessPolicy.isOpen(database) }

  private func token(_ time: Timestamp) -> [UInt8] { store.hub.token(time, of: database) }

  /// Events taken at a time.
  private static let eventsMax = 256
}

/// What one commit makes of a document in all targets of a listener.
private struct DocumentFate {
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

extension ListenSession.State {
  /// Forgets a subscription.
  fileprivate mutating func forget(_ id: ListenSession.SubscriptionID) {
    targets[id] = nil
    incomplete.remove(id)
    if partly.remove(id) != nil { release() }
  }

  /// Takes note that a target that was to begin anew does so, or is gone.
  fileprivate mutating func forgetOutdated() {
    outdatedCount -= 1
    release()
  }

  /// Queues what was held back, when nothing holds it back any longer.
  private mutating func release() {
    guard partly.isEmpty, outdatedCount == 0, let time = held else { return }
    held = nil
    items.append(.time(time))
  }

  /// The target of a subscription, which is reset first if that is due.
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
