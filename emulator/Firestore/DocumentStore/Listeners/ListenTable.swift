import DocumentModel
import QueryEngine

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

  /// A view's subject.
  enum Subject: Hashable {
    case query(Query)
    case documents([DocumentName])
  }

  enum Shape {
    /// All matching documents, none of which is kept.
    case results(PreparedQuery)
    case documents([DocumentName])
    /// A window, which is stored in `windows`.
    case window(PreparedQuery)
  }

  struct View {
    var subject: Subject
    var database: DatabaseName
    var shape: Shape
    var subscribers: Set<SubscriptionID> = []
    /// The number of matching documents after the last processed record, if known.
    var count: Int?
    /// The change in the number of matching documents by the last commit that affected the view.
    var growth = 0
  }

  /// The sequence number of the last processed record.
  var sequence: UInt64 = 0
  /// The time up to which every change has been sent.
  private(set) var time = Timestamp(microseconds: 0)
  var views: [ViewID: View] = [:]
  var windows: [ViewID: Window] = [:]
  var viewIDs: [Subject: ViewID] = [:]
  /// The counts of queries that no client listens to now, as of a record.
  var formerCounts: [Query: KnownCount] = [:]
  var index = ViewIndex()
  var subscriptions: [SubscriptionID: Subscription] = [:]
  var dependencies = AccessDependencies()
  /// The number of changes of the policy.
  var policyVersion: UInt64 = 0
  var nextID: UInt64 = 1
  /// True if no more records will be processed.
  private var isEnded = false
  /// The actions that wait until a record has been processed.
  private var deferred: [(sequence: UInt64, action: @Sendable (inout ListenTable) -> Void)] = []
  /// The reads that are due; the hub takes them.
  var readings: [Reading] = []
  /// The actions to perform once the table is no longer locked.
  private var deferredWork = DeferredWork()

  /// Work for after the table's lock is released.
  struct DeferredWork: Sendable {
    /// The listeners with queued changes.
    var sessions: [ObjectIdentifier: ListenSession] = [:]
    var others: [@Sendable () -> Void] = []
  }

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

  /// Begins, or begins again, after a commit; `time` is a time at which it was the last one.
  mutating func begin(after sequence: UInt64, at time: Timestamp) {
    // Records may have been skipped.
    if sequence > self.sequence { forgetCounts { _ in true } }
    self.sequence = max(sequence, self.sequence)
    advance(to: time)
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

  mutating func runDeferred() {
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

  mutating func reset(_ id: ViewID) {
    guard let view = views[id] else { return }
    for subscriber in view.subscribers.sorted() {
      dependencies.remove(subscriber)
      guard let session = subscriptions.removeValue(forKey: subscriber)?.session else { continue }
      session.deliver(resetOf: subscriber)
      wake(session)
    }
    remove(id)
  }
}
