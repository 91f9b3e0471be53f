package import DatabaseModel
package import DatabaseRules
import DequeModule
import EventLog
import InvocationContext
import Logging
import StorageEngine
import Synchronization

/// One instance of the Realtime Database.
///
/// Writes and the requests of sessions are processed in rounds, in the order in which they came.
/// When all commits of a round are durable, the listeners are notified and the responses are sent,
/// in the order of the requests.
package final class DatabaseInstance: Sendable {
  /// The maximum number of requests that are planned at once, which bounds the memory of a round.
  private static let roundMax = 256

  package let name: String
  let storage: any OrderedStorage
  private let tailer: EventTailer
  private let settings: RealtimeDatabase.Settings
  private let lock = Mutex(())
  // `nonisolated(unsafe)`: `lock` protects it.
  nonisolated(unsafe) private var state: InstanceState
  private let inbox = Mutex(Inbox())
  private let wakeups: AsyncStream<Void>
  private let wakeup: AsyncStream<Void>.Continuation
  /// The long reads, of which each session has at most one.
  private let longReads = AsyncStream.makeStream(of: LongRead.self, bufferingPolicy: .unbounded)

  private struct Inbox {
    var requests: Deque<InstanceRequest> = []
    var nextSession: UInt64 = UInt64.random(in: 0..<1 << 62)
    var isStopped = false
  }

  init(
    name: String,
    storage: any OrderedStorage,
    tailer: EventTailer,
    settings: RealtimeDatabase.Settings
  ) {
    self.name = name
    self.storage = storage
    self.tailer = tailer
    self.settings = settings
    state = InstanceState(name: name, settings: settings)
    // One pending wakeup is enough, because handling it takes everything that is there.
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Runs `body` on the state under the lock.
  ///
  /// A mutex that held the state itself would not let `body` use a snapshot of the storage.
  private func withState<Result: Sendable>(
    _ body: (inout InstanceState) throws -> Result
  ) rethrows -> Result {
    try lock.withLock { _ in try body(&state) }
  }

  // MARK: Rules

  /// The rules; nil if none were given, and then everything is allowed.
  package var rules: DatabaseRuleset? { withState { $0.rules } }

  /// Puts rules into force and checks all listeners again.
  package func setRules(_ rules: DatabaseRuleset?) async {
    let hasListeners = withState { state in
      state.rules = rules
      return state.counts.listeners > 0
    }
    // A listener that is added later is checked by these rules, and before `run` there is none.
    if hasListeners { await withCheckedContinuation { add(.recheck($0)) } }
  }

  // MARK: Single requests

  /// Returns the node at a path, or the children that a query selects.
  ///
  /// Throws a `DatabaseError`, of kind `.missingIndex` if the query needs an index.
  package func read(
    _ path: DatabasePath,
    query: DatabaseQuery? = nil,
    as caller: DatabaseCaller
  ) async throws -> DatabaseNode {
    let reader = reader
    return try await storage.read { snapshot in
      let view = TreeView(StoredTree(instance: reader.name, snapshot: snapshot))
      return try reader.read(path, query, as: caller, view)
    }
  }

  /// Returns the keys of the children, or the leaf at the path.
  ///
  /// `startAfter` and `limit` select a page of the keys in their order.
  package func readShallow(
    _ path: DatabasePath,
    startAfter: String? = nil,
    limit: Int? = nil,
    as caller: DatabaseCaller
  ) async throws -> ShallowNode {
    let reader = reader
    return try await storage.read { snapshot in
      let view = TreeView(StoredTree(instance: reader.name, snapshot: snapshot))
      try reader.checkRead(path, nil, as: caller, view)
      if let leaf = try view.leaf(at: path) { return .leaf(leaf) }
      var keys: [String] = []
      let start = startAfter.map { DatabaseKey($0) }
      try view.forEachChild(at: path, after: start, descending: false) { key in
        if let limit, keys.count >= limit { return false }
        keys.append(key.text)
        return true
      }
      return keys.isEmpty && start == nil ? .leaf(nil) : .keys(keys)
    }
  }

  package enum ShallowNode: Sendable, Equatable {
    /// A leaf; nil for no node.
    case leaf(DatabaseLeaf?)
    case keys([String])
  }

  /// A copy of the rules that reads without the instance's lock.
  private var reader: InstanceReader {
    InstanceReader(name: name, settings: settings, rules: rules)
  }

  /// Applies a write and returns once it is durable and all listeners have been notified.
  ///
  /// `check` gets the node at the write's path before the write, at the write's own moment, and may
  /// throw to refuse it. The rules are asked first. Returns the node at the path afterwards if
  /// `returnsNode`. Throws a `DatabaseError`, or what `check` throws.
  @discardableResult
  package func write(
    _ write: DatabaseWrite,
    as caller: DatabaseCaller,
    returnsNode: Bool = false,
    check: (@Sendable (DatabaseNode) throws -> Void)? = nil
  ) async throws -> DatabaseNode {
    let cause = EventCause.current
    return try await withCheckedThrowingContinuation { continuation in
      add(
        .write(
          SingleWrite(
            write: write,
            caller: caller,
            cause: cause,
            returnsNode: returnsNode,
            check: check,
            continuation: continuation
          )
        )
      )
    }
  }

  /// Applies a write without rules, listeners and events for functions, before `run`.
  ///
  /// Nothing else may write to the instance at that time. The write is durable after the next
  /// synced commit of the storage. Throws a `DatabaseError`.
  package func load(_ operation: DatabaseWrite.Operation) async throws {
    let batch = try await storage.read { snapshot in
      var view = TreeView(StoredTree(instance: name, snapshot: snapshot))
      let write = try ResolvedWrite(
        DatabaseWrite(operation),
        in: view,
        nowMilliseconds: settings.now().milliseconds
      )
      var batch = StorageBatch()
      for effect in try write.apply(to: &view) { effect.append(to: &batch, instance: name) }
      return batch
    }
    try await storage.commit(batch, durability: .relaxed)
  }

  // MARK: Sessions

  /// Opens a session, whose events go to `send`, in order and one after the other.
  ///
  /// `send` must not block. It is not called again once the session's end has been processed.
  package func open(
    as caller: DatabaseCaller,
    send: @escaping @Sendable (DatabaseSessionEvent) -> Void
  ) -> DatabaseSession {
    let id = inbox.withLock { inbox in
      inbox.nextSession += 1
      return inbox.nextSession
    }
    add(.open(session: id, caller: caller, EventSink(send: send)))
    return DatabaseSession(id: id, instance: self)
  }

  var counts: (sessions: Int, listeners: Int) { withState { $0.counts } }

  /// Applies the stored writes of sessions that ended with an earlier process, before all else.
  ///
  /// It must be called before `run`: requests may have come already.
  func endEarlierSessions(_ rows: [DisconnectRows.Row]) {
    inbox.withLock { $0.requests.prepend(.endEarlierSessions(rows)) }
    wakeup.yield()
  }

  // MARK: Processing

  func add(_ request: InstanceRequest) {
    let isStopped = inbox.withLock { inbox in
      if !inbox.isStopped { inbox.requests.append(request) }
      return inbox.isStopped
    }
    if isStopped { Self.refuse(request) } else { wakeup.yield() }
  }

  /// Ends `run` once the requests that were added before are processed.
  func stop() {
    wakeup.finish()
  }

  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { for await read in self.longReads.stream { await self.perform(read) } }
      for await _ in wakeups {
        while await processRound() {}
      }
      while await processRound() {}
      longReads.continuation.finish()
      group.cancelAll()
    }
    refuseAll()
  }

  private func perform(_ read: LongRead) async {
    let reader = reader
    do {
      let value = try await storage.read { snapshot in
        let view = TreeView(StoredTree(instance: name, snapshot: snapshot))
        // The tree and the rules may have changed since the request's turn.
        try reader.checkRead(read.path, read.ruledQuery, as: read.caller, view)
        return try read.value(in: view, sequence: snapshot.sequence)
      }
      add(.loaded(read, .success(value)))
    } catch {
      add(.loaded(read, .failure(error as? DatabaseError ?? .unreadable)))
    }
  }

  /// Refuses all requests that are not processed yet, and later ones.
  func refuseAll() {
    let left = inbox.withLock { inbox in
      inbox.isStopped = true
      defer { inbox.requests = [] }
      return inbox.requests
    }
    for request in left { Self.refuse(request) }
  }

  private static func refuse(_ request: InstanceRequest) {
    switch request {
    case .write(let write):
      write.continuation.resume(throwing: DatabaseError.stopping)
    case .recheck(let continuation): continuation.resume()
    case .open, .session, .close, .loaded, .endEarlierSessions: break
    }
  }

  /// Processes the next requests; false if there are none.
  private func processRound() async -> Bool {
    let requests = inbox.withLock { inbox in
      let requests = Array(inbox.requests.prefix(Self.roundMax))
      inbox.requests.removeFirst(requests.count)
      return requests
    }
    guard !requests.isEmpty else { return false }
    let planned: [InstanceState.Planned]
    do {
      planned = try await storage.read { snapshot in
        withState { $0.plan(requests, in: snapshot) }
      }
    } catch {
      settings.logger.error("The Realtime Database cannot be read", metadata: ["error": "\(error)"])
      for request in requests { Self.refuse(request) }
      return true
    }
    let results = await commit(planned.map(\.batch))
    withState { $0.endRound(through: storage.sequence, hasFailed: results.contains(false)) }
    for (planned, isDone) in zip(planned, results) {
      guard isDone else {
        if let failure = planned.failure { deliver(failure) }
        continue
      }
      for delivery in planned.deliveries { deliver(delivery) }
    }
    if results.contains(false) { await reload() }
    return true
  }

  /// Commits the batches in order and returns whether each was stored; true without a batch.
  ///
  /// Each was planned on the earlier ones, so after one that fails no later one is stored. Batches
  /// share a commit as long as only one of them has a record for functions.
  private func commit(_ batches: [StorageBatch?]) async -> [Bool] {
    var results = batches.map { _ in true }
    var start = 0
    while start < batches.count {
      var commit = StorageBatch()
      var end = start
      while end < batches.count {
        if let batch = batches[end] {
          guard !commit.hasRecord || !batch.hasRecord else { break }
          commit.append(batch)
        }
        end += 1
      }
      do {
        if !commit.operations.isEmpty { try await storage.commit(commit) }
      } catch {
        settings.logger.error(
          "A write to the Realtime Database could not be stored",
          metadata: ["instance": "\(name)", "error": "\(error)"]
        )
        for index in start..<batches.count where batches[index] != nil { results[index] = false }
        break
      }
      start = end
    }
    tailer.wake()
    return results
  }

  /// Sends all listeners what is stored, because they may have been told of writes that are not.
  private func reload() async {
    do {
      let deliveries = try await storage.read { snapshot in
        withState { $0.reload(in: snapshot) }
      }
      for delivery in deliveries { deliver(delivery) }
    } catch {
      settings.logger.error("The Realtime Database cannot be read", metadata: ["error": "\(error)"])
    }
  }

  private func deliver(_ delivery: InstanceState.Delivery) {
    switch delivery {
    case .event(let sink, let event): sink.send(event)
    case .read(let read): longReads.continuation.yield(read)
    case .written(let continuation, let result): continuation.resume(with: result)
    case .done(let continuation): continuation.resume()
    }
  }
}

extension StorageBatch {
  /// True if the batch has a record in the log, of which a commit can have only one.
  fileprivate var hasRecord: Bool {
    operations.contains { if case .putAtSequence = $0 { true } else { false } }
  }
}
