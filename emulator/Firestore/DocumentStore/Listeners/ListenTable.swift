import DequeModule
import DocumentModel
import EventLog
import Events
import QueryEngine
import StatusCodes

/// The moment from which a subscriber's access has to be rechecked.
struct AccessMoment: Sendable {
  /// The commit that changed a document the permission depends on.
  ///
  /// After a change of the policy, the last commit processed before it.
  var sequence: UInt64
  var time: Timestamp
  var policyVersion: UInt64
}

/// The subscriptions and the effect of each commit on them: a state machine without a clock.
///
/// Subscribers of the same target share a view. A view of a query without limit keeps no documents:
/// a commit's own record shows which documents enter, change and leave. A view of a query with a
/// limit or an offset keeps a window of results.
///
/// A subscriber joins in three steps, so that it misses nothing and gets nothing twice. It is
/// registered before its documents are read. Changes made during the read are kept for it. Once
/// every commit that the read shows has been processed, it becomes live.
struct ListenTable: Sendable {
  typealias ViewID = ViewIndex.ViewID
  typealias SubscriptionID = UInt64

  /// The maximum stored size of changes kept for one joining subscriber.
  static let backlogBytesMax = 32 << 20

  /// The maximum number of commits that one window keeps while documents are read for it.
  static let waitingMax = 10_000

  /// A view's subject.
  enum Subject: Hashable {
    case query(Query)
    case documents([DocumentName])
  }

  private enum Shape {
    /// All matching documents, none of which is kept.
    case results(PreparedQuery)
    case documents([DocumentName])
    /// A window, which is stored in `windows`.
    case window(PreparedQuery)
  }

  private struct View {
    var subject: Subject
    var database: DatabaseName
    var shape: Shape
    var subscribers: Set<SubscriptionID> = []
    /// The number of matching documents after the last processed record, if known.
    var count: Int?
    /// The change in the number of matching documents by the last commit that affected the view.
    var growth = 0
  }

  /// A window with the commits that are still to be applied to it.
  fileprivate struct Window {
    var results: ResultWindow
    /// True if documents are being read for the window.
    var isReading: Bool
    /// The effect of the commit after which documents were missing.
    var shift: ResultWindow.Shift?
    /// The commits since documents went missing, starting with the commit that caused it.
    ///
    /// For a new view, all commits since its creation.
    var waiting: Deque<(record: RelevantChanges, delta: LaterChanges)> = []
    var isNew: Bool
    /// The subscribers that wait for results.
    var joiners: [Join] = []
  }

  fileprivate struct RelevantChanges {
    var sequence: UInt64
    var time: Timestamp
    var changes: [DocumentChange]
  }

  /// A window's subscriber that waits for the results.
  struct Join: Sendable {
    var subscription: SubscriptionID
    /// The last commit that the results must show.
    ///
    /// The permission was decided after it, and clients know that it was made.
    var sequence: UInt64
    /// The documents the subscriber has from an earlier stream, with their update times.
    var known: [DocumentName: Timestamp] = [:]
    /// The documents in `known` that no longer exist.
    var deleted: Set<DocumentName> = []
    /// The number of documents the subscriber says it has.
    var expectedCount: Int?
  }

  private struct Subscription {
    var session: ListenSession
    var view: ViewID
    /// The changes since the subscriber was registered; nil once it is live.
    var backlog: Backlog?
  }

  private struct Backlog {
    var changes: [(sequence: UInt64, growth: Int, changes: [ListenedChange])] = []
    var bytes = 0
    var isOverfull = false

    mutating func append(
      _ sent: [ListenedChange],
      _ sequence: UInt64,
      growth: Int,
      bytes more: Int
    ) {
      bytes += more
      if bytes > ListenTable.backlogBytesMax {
        changes = []
        isOverfull = true
      } else if !isOverfull {
        changes.append((sequence, growth, sent))
      }
    }
  }

  /// A read that a window requires.
  struct Reading: Sendable {
    var view: ViewID
    var query: Query
    /// The time to read at; nil reads the latest state.
    var time: Timestamp?
  }

  /// The sequence number of the last processed record.
  private(set) var sequence: UInt64 = 0
  /// The time up to which every change has been sent.
  private(set) var time = Timestamp(microseconds: 0)
  private var views: [ViewID: View] = [:]
  private var windows: [ViewID: Window] = [:]
  private var viewIDs: [Subject: ViewID] = [:]
  /// The counts of queries that no client listens to now, as of a record.
  private var formerCounts: [Query: KnownCount] = [:]
  private var index = ViewIndex()
  private var subscriptions: [SubscriptionID: Subscription] = [:]
  /// The documents that a subscriber's permission depends on, except for the administrator's.
  private var dependencies: [SubscriptionID: Set<DocumentName>] = [:]
  /// The inverse of `dependencies`: subscribers by document.
  private var dependents: [DocumentName: Set<SubscriptionID>] = [:]
  /// The number of changes of the policy.
  private(set) var policyVersion: UInt64 = 0
  private var nextID: UInt64 = 1
  /// True if no more records will be processed.
  private var isEnded = false
  /// The actions that wait until a record has been processed.
  private var deferred: [(sequence: UInt64, action: @Sendable (inout ListenTable) -> Void)] = []
  /// The reads that are due; the hub takes them.
  private var readings: [Reading] = []
  /// The actions to perform once the table is no longer locked.
  private var deferredWork = DeferredWork()

  /// Work for after the table's lock is released.
  struct DeferredWork: Sendable {
    /// The listeners with queued changes.
    var sessions: [ObjectIdentifier: ListenSession] = [:]
    var others: [@Sendable () -> Void] = []
  }

  /// The number of documents that matched a query as of a processed record.
  struct KnownCount: Sendable, Equatable {
    var count: Int
    var sequence: UInt64
  }

  /// The maximum number of queries without listeners whose counts are kept.
  ///
  /// It is many times the number of queries on the screens of a phone app.
  private static let formerCountsMax = 1000

  /// True if an action waits for a record.
  var isWaiting: Bool { !deferred.isEmpty }
  var isEmpty: Bool { views.isEmpty && subscriptions.isEmpty && viewIDs.isEmpty }
  var viewCount: Int { views.count }

  /// Returns the results in a subscriber's window.
  func windowResults(of id: SubscriptionID) -> [FirestoreDocument] {
    subscriptions[id].flatMap { windows[$0.view] }.map { Array($0.results.results) } ?? []
  }

  /// Returns true if a subscriber receives changes as they happen.
  func isLive(_ id: SubscriptionID) -> Bool {
    subscriptions[id].map { $0.backlog == nil } ?? false
  }

  mutating func takeReadings() -> [Reading] {
    defer { readings = [] }
    return readings
  }

  mutating func takeDeferredWork() -> DeferredWork {
    defer { deferredWork = DeferredWork() }
    return deferredWork
  }

  /// Performs an action once the table is no longer locked.
  mutating func afterwards(_ action: @escaping @Sendable () -> Void) {
    deferredWork.others.append(action)
  }

  mutating func wake(_ session: ListenSession) {
    deferredWork.sessions[ObjectIdentifier(session)] = session
  }

  // MARK: Time

  /// Begins, or begins again, after a commit.
  mutating func begin(after sequence: UInt64) {
    // Records may have been skipped.
    if sequence > self.sequence { forgetCounts { _ in true } }
    self.sequence = max(sequence, self.sequence)
    runDeferred()
  }

  /// Records that no more records will be processed; actions that wait for one run now.
  mutating func end() {
    isEnded = true
    runDeferred()
  }

  /// Runs `action` once the record of a commit and all earlier ones have been processed.
  mutating func after(
    _ sequence: UInt64,
    _ action: @escaping @Sendable (inout ListenTable) -> Void
  ) {
    if self.sequence >= sequence || isEnded { return action(&self) }
    deferred.append((sequence, action))
  }

  private mutating func runDeferred() {
    guard !deferred.isEmpty else { return }
    let due = deferred.filter { $0.sequence <= sequence || isEnded }
    deferred.removeAll { $0.sequence <= sequence || isEnded }
    for item in due { item.action(&self) }
  }

  /// Records that every change up to a time was sent, and returns the latest of these times.
  @discardableResult
  mutating func advance(to time: Timestamp) -> Timestamp {
    self.time = max(self.time, time)
    return self.time
  }

  // MARK: Subscribers

  /// Registers a subscriber; from now on it misses no change that concerns it.
  mutating func subscribe(
    _ session: ListenSession,
    to target: PreparedTarget
  ) -> SubscriptionID {
    let viewID = view(of: target)
    let id = makeID()
    subscriptions[id] = Subscription(session: session, view: viewID, backlog: Backlog())
    views[viewID]?.subscribers.insert(id)
    return id
  }

  /// Records the documents that a subscriber's permission depends on.
  mutating func depend(_ id: SubscriptionID, on names: Set<DocumentName>) {
    guard subscriptions[id] != nil else { return }
    forgetDependencies(of: id)
    dependencies[id] = names
    for name in names { dependents[name, default: []].insert(id) }
  }

  private mutating func forgetDependencies(of id: SubscriptionID) {
    for name in dependencies.removeValue(forKey: id) ?? [] {
      dependents[name]?.remove(id)
      if dependents[name]?.isEmpty == true { dependents[name] = nil }
    }
  }

  /// Requests a recheck of the access of every subscriber except the administrator's.
  mutating func recheckAll() {
    policyVersion += 1
    recheck(Set(dependencies.keys), sequence, time)
  }

  private mutating func recheck(_ ids: Set<SubscriptionID>, _ sequence: UInt64, _ time: Timestamp) {
    let moment = AccessMoment(sequence: sequence, time: time, policyVersion: policyVersion)
    for id in ids.sorted() {
      guard let session = subscriptions[id]?.session else { continue }
      session.deliver(recheckOf: id, since: moment)
      wake(session)
    }
  }

  mutating func unsubscribe(_ id: SubscriptionID) {
    forgetDependencies(of: id)
    guard let subscription = subscriptions.removeValue(forKey: id) else { return }
    views[subscription.view]?.subscribers.remove(id)
    windows[subscription.view]?.joiners.removeAll { $0.subscription == id }
    if views[subscription.view]?.subscribers.isEmpty == true { remove(subscription.view) }
  }

  private mutating func view(of target: PreparedTarget) -> ViewID {
    if let id = viewIDs[target.subject] { return id }
    let id = makeID()
    let shape: Shape
    switch target {
    case .documents(let names, _):
      shape = .documents(names)
      index.insert(id, names)
    case .results(let query):
      shape = .results(query)
      index.insert(id, query)
    case .window(let query):
      shape = .window(query)
      index.insert(id, query)
      let results = ResultWindow(query)
      // A window without places needs no read.
      let isReading = results.missing != nil
      let window = Window(results: results, isReading: isReading, isNew: isReading)
      windows[id] = window
      read(for: window, id, at: nil)
    }
    views[id] = View(subject: target.subject, database: target.database, shape: shape)
    viewIDs[target.subject] = id
    return id
  }

  private mutating func remove(_ id: ViewID) {
    guard let view = views.removeValue(forKey: id) else { return }
    viewIDs[view.subject] = nil
    if case .query(let query) = view.subject, let count = view.count { keep(count, of: query) }
    switch view.shape {
    case .documents(let names): index.remove(id, names)
    case .results(let query): index.remove(id, query)
    case .window(let query):
      index.remove(id, query)
      for waiting in windows.removeValue(forKey: id)?.waiting ?? [] {
        resolve(waiting.delta, .lost)
      }
    }
  }

  // MARK: Counts

  /// Returns the number of results of a query without limit, if a listener's view has counted it.
  func count(of query: Query) -> KnownCount? {
    if let id = viewIDs[.query(query)], let count = views[id]?.count {
      return KnownCount(count: count, sequence: sequence)
    }
    return formerCounts[query]
  }

  private mutating func keep(_ count: Int, of query: Query) {
    formerCounts[query] = KnownCount(count: count, sequence: sequence)
    guard formerCounts.count > Self.formerCountsMax,
      let oldest = formerCounts.min(by: { $0.value.sequence < $1.value.sequence })
    else { return }
    formerCounts[oldest.key] = nil
  }

  private mutating func forgetCounts(where isLost: (DatabaseName) -> Bool) {
    formerCounts = formerCounts.filter { !isLost($0.key.database) }
    for (id, view) in views where view.count != nil && isLost(view.database) {
      views[id]?.count = nil
    }
  }

  private mutating func makeID() -> UInt64 {
    defer { nextID += 1 }
    return nextID
  }

  /// Makes a subscriber of results or documents live with the documents read for it.
  ///
  /// `total` is the number of documents that match the view's query as of `sequence`, if known.
  /// Returns false if too much has changed since; the documents must then be read again.
  mutating func join(
    _ id: SubscriptionID,
    with results: [ListenedChange],
    bytes: Int,
    readAt sequence: UInt64,
    _ readTime: Timestamp,
    count: ResultCount?,
    total: Int? = nil
  ) -> Bool {
    guard let subscription = subscriptions[id], let backlog = subscription.backlog else {
      return true
    }
    guard !backlog.isOverfull else {
      subscriptions[id]?.backlog = Backlog()
      return false
    }
    let later = backlog.changes.filter { $0.sequence > sequence }
    let since = later.flatMap(\.changes)
    if let total { views[subscription.view]?.count = later.reduce(total) { $0 + $1.growth } }
    subscriptions[id]?.backlog = nil
    let time = advance(to: readTime)
    // The count refers to the documents read, so it comes before the changes since.
    if since.isEmpty || count != nil {
      subscription.session.deliver(
        .init(changes: results, count: count, time: time, bytes: bytes),
        of: id
      )
      subscription.session.deliver(.init(changes: since, time: time), of: id)
    } else {
      subscription.session.deliver(
        .init(changes: Self.folded(results, since), time: time, bytes: bytes),
        of: id
      )
    }
    subscription.session.deliver(current: id, at: time)
    wake(subscription.session)
    return true
  }

  private static func folded(
    _ results: [ListenedChange],
    _ since: [ListenedChange]
  ) -> [ListenedChange] {
    var last: [DocumentName: ListenedChange] = [:]
    for change in since { last[change.name] = change }
    return results.filter { last[$0.name] == nil } + last.values
  }

  /// Makes a subscriber of a window live as soon as the window has results as of the join's commit.
  mutating func join(_ join: Join) {
    after(join.sequence) { $0.joinWindow(join) }
  }

  private mutating func joinWindow(_ join: Join) {
    guard let id = subscriptions[join.subscription]?.view, let window = windows[id] else { return }
    if window.isReading {
      windows[id]?.joiners.append(join)
    } else {
      admit(join, to: window.results)
    }
  }

  private mutating func admit(_ join: Join, to window: ResultWindow) {
    guard let subscription = subscriptions[join.subscription] else { return }
    subscriptions[join.subscription]?.backlog = nil
    var changes: [ListenedChange] = []
    var names: Set<DocumentName> = []
    for document in window.results {
      names.insert(document.name)
      if join.known[document.name] != document.updateTime {
        changes.append(.member(ListenedDocument(document)))
      }
    }
    for name in join.known.keys where !names.contains(name) {
      changes.append(join.deleted.contains(name) ? .deleted(name) : .departed(name))
    }
    var count: ResultCount?
    if let expected = join.expectedCount,
      expected != join.known.count || !names.isEmpty && changes.contains(where: { !$0.isMember })
    {
      count = ResultCount(names)
    }
    subscription.session.deliver(
      .init(changes: changes, count: count, time: time),
      of: join.subscription
    )
    subscription.session.deliver(current: join.subscription, at: time)
    wake(subscription.session)
  }

  // MARK: Commits

  /// Processes the next record and notifies every live subscriber that it concerns.
  mutating func take(_ entry: EventEntry) {
    let record = entry.record
    guard record.sequence > sequence else { return }
    advance(to: record.commitTime)
    if record.purpose == .discontinuity {
      reset(record.database)
    } else if !views.isEmpty {
      tell(record, bytes: entry.bytes)
    }
    sequence = record.sequence
    runDeferred()
  }

  private mutating func tell(_ record: CommitRecord, bytes: Int) {
    if !dependents.isEmpty {
      // Rechecks come before anything of this commit is sent.
      let ids = record.changes.reduce(into: Set()) { $0.formUnion(dependents[$1.name] ?? []) }
      recheck(ids, record.sequence, record.commitTime)
    }
    var affected: [ViewID: [DocumentChange]] = [:]
    var documents: [DocumentName: ListenedDocument] = [:]
    for change in record.changes {
      let ids = index.views(for: change)
      guard !ids.isEmpty else { continue }
      if let after = change.after { documents[change.name] = ListenedDocument(after) }
      for id in ids { affected[id, default: []].append(change) }
    }
    var parts: [ObjectIdentifier: (session: ListenSession, parts: [ListenedCommit.Part])] = [:]
    for (id, changes) in affected {
      guard let delta = delta(of: changes, in: id, record, documents), let view = views[id] else {
        continue
      }
      for subscriber in view.subscribers {
        guard let subscription = subscriptions[subscriber] else { continue }
        if subscription.backlog != nil {
          // Subscribers of windows get the window's results when they join, so they need no
          // backlog.
          if case .now(let sent) = delta, windows[id] == nil {
            subscriptions[subscriber]?.backlog?
              .append(sent, record.sequence, growth: view.growth, bytes: bytes)
          }
        } else {
          let key = ObjectIdentifier(subscription.session)
          let part = ListenedCommit.Part(subscription: subscriber, delta: delta)
          parts[key, default: (subscription.session, [])].parts.append(part)
        }
      }
    }
    for (session, parts) in parts.values {
      session.deliver(ListenedCommit(time: time, parts: parts, bytes: bytes))
      wake(session)
    }
    for id in affected.keys { resetIfOverfull(id) }
  }

  /// Returns the changes for a view's subscribers; nil if there are none.
  private mutating func delta(
    of changes: [DocumentChange],
    in id: ViewID,
    _ record: CommitRecord,
    _ documents: [DocumentName: ListenedDocument]
  ) -> ListenedCommit.Delta? {
    switch views[id]?.shape {
    case .documents:
      return .now(
        changes.map { change in
          documents[change.name].map(ListenedChange.member) ?? .deleted(change.name)
        }
      )
    case .results(let query):
      var growth = 0
      let sent = changes.compactMap { change -> ListenedChange? in
        let matched = change.before.map(query.matches) ?? false
        if matched { growth -= 1 }
        guard let after = change.after, let document = documents[change.name] else {
          return matched ? .deleted(change.name) : nil
        }
        if query.matches(after) {
          growth += 1
          return .member(document)
        }
        return matched ? .former(document) : nil
      }
      views[id]?.growth = growth
      if let count = views[id]?.count { views[id]?.count = count + growth }
      return sent.isEmpty ? nil : .now(sent)
    case .window: return take(changes, of: record, inWindow: id)
    case nil: return nil
    }
  }

  private mutating func take(
    _ changes: [DocumentChange],
    of record: CommitRecord,
    inWindow id: ViewID
  ) -> ListenedCommit.Delta? {
    guard var window = windows.removeValue(forKey: id) else { return nil }
    defer { windows[id] = window }
    let relevant = RelevantChanges(
      sequence: record.sequence,
      time: record.commitTime,
      changes: changes.filter(window.results.concerns)
    )
    guard !relevant.changes.isEmpty else { return nil }
    if !window.isReading {
      if let sent = window.take(relevant.changes) { return sent.isEmpty ? nil : .now(sent) }
      read(for: window, id, at: record.commitTime)
    }
    let delta = LaterChanges()
    window.waiting.append((relevant, delta))
    return .later(delta)
  }

  private mutating func read(for window: Window, _ id: ViewID, at time: Timestamp?) {
    guard let query = window.results.missing else { return }
    readings.append(Reading(view: id, query: query, time: time))
  }

  // MARK: Windows

  private mutating func resolve(_ delta: LaterChanges, _ outcome: LaterChanges.Outcome) {
    for session in delta.resolve(outcome) { wake(session) }
  }

  /// Returns true if a window still needs the documents of a read.
  func wants(_ reading: Reading) -> Bool { windows[reading.view]?.isReading == true }

  /// Adds the documents read for a window; `sequence` is the commit whose state they show.
  mutating func filled(
    _ reading: Reading,
    with found: [FirestoreDocument],
    readAt sequence: UInt64,
    _ readTime: Timestamp
  ) {
    guard var window = windows.removeValue(forKey: reading.view) else { return }
    defer { windows[reading.view] = window }
    window.results.fill(found, asked: reading.query.limit)
    window.isReading = false
    if window.isNew {
      window.isNew = false
      advance(to: readTime)
      // The read already shows these commits, and every joining subscriber gets the results.
      while let first = window.waiting.first, first.record.sequence <= sequence {
        window.waiting.removeFirst()
      }
    } else if let first = window.waiting.popFirst(), let shift = window.shift.take() {
      resolve(first.delta, .known(window.results.difference(by: shift)))
      window.results.trim()
    }
    while let next = window.waiting.first {
      guard let sent = window.take(next.record.changes) else {
        return read(for: window, reading.view, at: next.record.time)
      }
      window.waiting.removeFirst()
      resolve(next.delta, .known(sent))
    }
    for join in window.joiners { admit(join, to: window.results) }
    window.joiners = []
  }

  /// Handles a failed read for a window.
  ///
  /// If the window was never filled, its subscribers receive the error, unless the read was only
  /// too slow. Otherwise they start over.
  mutating func failed(_ reading: Reading, _ error: StatusError) {
    guard let view = views[reading.view], let window = windows[reading.view] else { return }
    guard window.isNew, error != DocumentDatabase.tooOld else { return reset(reading.view) }
    for id in view.subscribers.sorted() {
      guard let session = subscriptions.removeValue(forKey: id)?.session else { continue }
      session.deliver(failure: error, of: id)
      wake(session)
    }
    remove(reading.view)
  }

  /// Restarts the subscribers of a window that waits for too many commits.
  private mutating func resetIfOverfull(_ id: ViewID) {
    if windows[id]?.waiting.count ?? 0 > Self.waitingMax { reset(id) }
  }

  // MARK: Starting over

  /// Restarts all subscribers of a database.
  mutating func reset(_ database: DatabaseName) {
    forgetCounts { $0 == database }
    for (id, view) in views where view.database == database { reset(id) }
  }

  /// Restarts all subscribers, after records were lost.
  mutating func resetAll() {
    forgetCounts { _ in true }
    for id in Array(views.keys) { reset(id) }
  }

  private mutating func reset(_ id: ViewID) {
    guard let view = views[id] else { return }
    for subscriber in view.subscribers.sorted() {
      forgetDependencies(of: subscriber)
      guard let session = subscriptions.removeValue(forKey: subscriber)?.session else { continue }
      session.deliver(resetOf: subscriber)
      wake(session)
    }
    remove(id)
  }
}

extension ListenTable.Window {
  /// Applies a commit; returns nil if documents are missing afterwards and must be read.
  fileprivate mutating func take(_ changes: [DocumentChange]) -> [ListenedChange]? {
    let shift = results.apply(changes)
    guard results.missing == nil else {
      isReading = true
      self.shift = shift
      return nil
    }
    defer { results.trim() }
    return results.difference(by: shift)
  }
}

/// A target that has been checked.
enum PreparedTarget: Sendable {
  case results(PreparedQuery)
  case window(PreparedQuery)
  case documents([DocumentName], DatabaseName)

  var subject: ListenTable.Subject {
    switch self {
    case .results(let query), .window(let query): .query(query.query)
    case .documents(let names, _): .documents(names)
    }
  }

  var database: DatabaseName {
    switch self {
    case .results(let query), .window(let query): query.query.database
    case .documents(_, let database): database
    }
  }
}

/// The number and names of a target's documents, for a client whose documents may differ.
///
/// As in production, a resuming client is notified if it has documents that are no longer results.
/// Production's clients find those documents with this filter; here, the client also receives their
/// departures.
struct ResultCount: Sendable {
  var count: Int
  var names: BloomFilter

  /// Creates the count of a set of names.
  init(_ names: some Collection<DocumentName>) {
    count = names.count
    self.names = BloomFilter(count: count)
    for name in names { self.names.insert(name) }
  }
}
