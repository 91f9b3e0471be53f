import DequeModule
import DocumentModel
import EventLog
import Events
import QueryEngine
import StatusCodes

/// The windows of queries with a limit or an offset.
extension ListenTable {
  /// The maximum number of commits that one window keeps while documents are read for it.
  static let waitingMax = 10_000

  /// A window with the commits that are still to be applied to it.
  struct Window {
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

    /// Applies a commit; returns nil if documents are missing afterwards and must be read.
    mutating func take(_ changes: [DocumentChange]) -> [ListenedChange]? {
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

  struct RelevantChanges {
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

  /// A read that a window requires.
  struct Reading: Sendable {
    var view: ViewID
    var query: Query
    /// The time to read at; nil reads the latest state.
    var time: Timestamp?
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
      count = ResultCount(names, precedesDepartures: expected == join.known.count)
    }
    subscription.session.deliver(
      .init(changes: changes, count: count, time: time),
      of: join.subscription
    )
    subscription.session.deliver(current: join.subscription, at: time)
    wake(subscription.session)
  }

  mutating func take(
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

  mutating func read(for window: Window, _ id: ViewID, at time: Timestamp?) {
    guard let query = window.results.missing else { return }
    readings.append(Reading(view: id, query: query, time: time))
  }

  mutating func resolve(_ delta: LaterChanges, _ outcome: LaterChanges.Outcome) {
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
  mutating func resetIfOverfull(_ id: ViewID) {
    if windows[id]?.waiting.count ?? 0 > Self.waitingMax { reset(id) }
  }
}
