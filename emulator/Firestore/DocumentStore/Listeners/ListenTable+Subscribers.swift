import DequeModule
import DocumentModel
import QueryEngine

extension ListenTable {
  /// The maximum stored size of changes kept for one joining subscriber.
  static let backlogBytesMax = 32 << 20

  struct Subscription {
    var session: ListenSession
    var view: ViewID
    /// The changes since the subscriber was registered; nil once it is live.
    var backlog: Backlog?
  }

  struct Backlog {
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

  /// Records the documents on which a subscriber's permission depends as of a commit.
  ///
  /// Returns those that later commits may have changed without a recheck of the subscriber.
  mutating func depend(
    _ id: SubscriptionID,
    on names: Set<DocumentName>,
    asOf decided: UInt64
  ) -> Set<DocumentName> {
    guard subscriptions[id] != nil else { return [] }
    let new = dependencies.set(names, of: id)
    return sequence > decided ? new : []
  }

  /// Requests a recheck of the access of every subscriber except the administrator's.
  mutating func recheckAll() {
    policyVersion += 1
    recheck(dependencies.all, sequence, time)
  }

  mutating func recheck(_ ids: Set<SubscriptionID>, _ sequence: UInt64, _ time: Timestamp) {
    let moment = AccessMoment(sequence: sequence, time: time, policyVersion: policyVersion)
    for id in ids.sorted() {
      guard let session = subscriptions[id]?.session else { continue }
      session.deliver(recheckOf: id, at: moment)
      wake(session)
    }
  }

  mutating func unsubscribe(_ id: SubscriptionID) {
    dependencies.remove(id)
    guard let subscription = subscriptions.removeValue(forKey: id) else { return }
    views[subscription.view]?.subscribers.remove(id)
    windows[subscription.view]?.joiners.removeAll { $0.subscription == id }
    if views[subscription.view]?.subscribers.isEmpty == true { remove(subscription.view) }
  }

  mutating func view(of target: PreparedTarget) -> ViewID {
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

  mutating func remove(_ id: ViewID) {
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
}
