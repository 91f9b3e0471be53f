import DocumentModel
import EventLog
import Logging
import StorageEngine
import Synchronization

/// The claims of this dispatcher on shards, which let several dispatchers share one store.
///
/// A claim is a row that names its owner. Every write of an outcome requires that the row is
/// unchanged, so a dispatcher that has lost a shard cannot settle its deliveries. One claim covers
/// all deliveries of a shard, so a single delivery needs no extra write. A dispatcher that is alone
/// claims all shards at its start and writes nothing more.
final class ClaimKeeper: Sendable {
  /// The rows of shards; the value is the owner's id.
  static let shards = Keyspace("dispatch_shards")
  /// The rows of dispatchers, by id.
  ///
  /// Each dispatcher rewrites its own row at every heartbeat.
  static let dispatchers = Keyspace("dispatchers")

  private struct State {
    var plan: ClaimPlan
    var claims: [Shard: VersionExpectation] = [:]
    var isReleasing: Set<Shard> = []
  }

  private let id: String
  private let storage: any OrderedStorage
  private let store: DeliveryStore
  private let writer: DeliveryWriter
  private let dispatcher: Dispatcher
  private let tailer: EventTailer
  private let expander: EventExpander
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let state: Mutex<State>
  private let expansions: AsyncStream<Void>
  private let expansion: AsyncStream<Void>.Continuation

  init(
    store: DeliveryStore,
    writer: DeliveryWriter,
    dispatcher: Dispatcher,
    expander: EventExpander,
    tailer: EventTailer,
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    id = dispatcher.id
    storage = store.storage
    self.store = store
    self.writer = writer
    self.dispatcher = dispatcher
    self.expander = expander
    self.tailer = tailer
    self.clock = clock
    self.now = now
    self.logger = logger
    state = Mutex(State(plan: ClaimPlan(id: id)))
    (expansions, expansion) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Claims all shards regardless of their current owner.
  ///
  /// Only for a dispatcher whose store no other dispatcher can open.
  func takeAll() async throws {
    var batch = StorageBatch()
    batch.deleteRange(Self.dispatchers, from: nil, to: nil)
    batch.deleteRange(ShardNotices.keyspace, from: nil, to: nil)
    for shard in Shard.all + [.expansion] {
      batch.put(Self.shards, [shard.number], Array(id.utf8))
    }
    let version = try await FullDisk.waitOut("Events wait", on: clock, logger: logger) { [batch] in
      try await storage.commit(batch, durability: .relaxed)
    }
    gain(Shard.all + [.expansion], version)
    try await resume()
  }

  /// Shares the shards with the other dispatchers of the store, until cancelled.
  ///
  /// `interval` is the time between two heartbeats. Each heartbeat reads and writes storage.
  func share(heartbeat interval: Duration) async throws {
    while !Task.isCancelled {
      do {
        try await heartbeat()
        try await listen(for: interval)
      } catch let error as StorageError where error.kind == .full || error.kind == .conflict {
        // Another dispatcher was faster, or the disk is full. A full disk affects all dispatchers.
        try await clock.sleep(for: interval)
      }
    }
  }

  /// Runs the expander whenever this dispatcher holds the expansion claim, until cancelled.
  func expand() async throws {
    for await _ in expansions {
      do {
        try await expander.run()
        return
      } catch let error as StorageError where error.kind == .conflict {
        logger.notice("Another dispatcher expands the events from now on")
      }
    }
  }

  /// True if this dispatcher holds the expansion claim.
  private var isExpanding: Bool { state.withLock { $0.claims[.expansion] != nil } }

  private func heartbeat() async throws {
    var sign = StorageBatch()
    sign.put(Self.dispatchers, Array(id.utf8), [])
    try await storage.commit(sign, durability: .relaxed)
    let board = try await readBoard()
    let (moves, lost) = state.withLock { state in
      let lost = state.claims.keys.filter { board.shards[$0]?.owner != id }
      for shard in lost { state.claims[shard] = nil }
      return (state.plan.heartbeat(board), lost)
    }
    if !lost.isEmpty { claimsChanged() }
    try await release(moves.releases)
    var gained = false
    for (shard, version) in moves.claims {
      if try await claim(shard, version) { gained = true }
    }
    if gained { try await resume() }
    guard !moves.gone.isEmpty else { return }
    var batch = StorageBatch()
    for other in moves.gone { batch.delete(Self.dispatchers, Array(other.utf8)) }
    try await storage.commit(batch, durability: .relaxed)
  }

  private func readBoard() async throws -> ClaimPlan.Board {
    try await storage.read { snapshot in
      var board = ClaimPlan.Board()
      try snapshot.scan(Self.dispatchers, prefix: []) { key, value in
        board.dispatchers[String(decoding: key, as: UTF8.self)] = value.version
        return true
      }
      try snapshot.scan(Self.shards, prefix: []) { key, value in
        guard key.count == 1 else { throw CorruptDataError("the key of a shard") }
        let owner = String(decoding: value.bytes, as: UTF8.self)
        board.shards[Shard(key[0])] = (owner, value.version)
        return true
      }
      return board
    }
  }

  private func claim(_ shard: Shard, _ version: UInt64?) async throws -> Bool {
    var batch = StorageBatch()
    batch.put(Self.shards, [shard.number], Array(id.utf8))
    // The new owner reads all pending deliveries next, so it needs no notices about them.
    batch.deleteRange(ShardNotices.keyspace, from: [shard.number], to: [shard.number + 1])
    do {
      let sequence = try await storage.commit(
        batch,
        expecting: [VersionExpectation(Self.shards, [shard.number], version: version)],
        durability: .relaxed
      )
      gain([shard], sequence)
      return true
    } catch let error as StorageError where error.kind == .conflict {
      return false
    }
  }

  /// Releases those shards that have no running delivery and no outcome being stored.
  ///
  /// The other shards are released at a later heartbeat.
  private func release(_ shards: Set<Shard>) async throws {
    let before = state.withLock { state in
      defer { state.isReleasing = shards }
      return state.isReleasing
    }
    if before != shards { claimsChanged() }
    let quiet = dispatcher.read { dispatch in
      shards.filter { shard in dispatch.allSatisfy { $0.isQuiet(in: { $0 == shard }) } }
    }
    for shard in quiet {
      guard let claim = state.withLock({ $0.claims[shard] }) else { continue }
      var batch = StorageBatch()
      batch.delete(Self.shards, [shard.number])
      try await storage.commit(batch, expecting: [claim], durability: .relaxed)
      state.withLock { $0.claims[shard] = nil }
    }
    if !quiet.isEmpty { claimsChanged() }
  }

  private func gain(_ shards: [Shard], _ version: UInt64) {
    state.withLock { state in
      for shard in shards {
        state.claims[shard] = VersionExpectation(Self.shards, [shard.number], version: version)
      }
    }
    claimsChanged()
    if shards.contains(.expansion) { expansion.yield() }
  }

  private func claimsChanged() {
    let (claims, releasing) = state.withLock { ($0.claims, $0.isReleasing) }
    writer.update(claims: claims)
    dispatcher.change { dispatch in
      dispatch.update(
        shards: ShardSet(claims.keys.filter { !releasing.contains($0) }),
        leaving: ShardSet(releasing)
      )
    }
  }

  /// Loads the deliveries that storage holds in the shards that are claimed now.
  private func resume() async throws {
    let shards = dispatcher.read { $0.shards }
    let summaries = try await store.summaries(of: shards)
    let now = now()
    dispatcher.change { dispatch in
      for (function, summary) in summaries {
        dispatch.change(function) { $0.resume(summary, now: now) }
      }
    }
    let count = summaries.values.reduce(0) { $0 + $1.count }
    guard count > 0 else { return }
    logger.notice(
      "Resuming deliveries of an earlier run",
      metadata: ["delivery.count": "\(count)"]
    )
  }

  /// Polls for changes by other dispatchers until the next heartbeat.
  private func listen(for interval: Duration) async throws {
    var sequence: UInt64 = 0
    for _ in 0..<Self.looksPerHeartbeat {
      if storage.sequence != sequence {
        sequence = storage.sequence
        tailer.wake()
        if !isExpanding { try await expander.readCursor() }
        let news = try await ShardNotices.take(
          for: state.withLock { $0.claims },
          by: id,
          from: storage
        )
        let now = now()
        dispatcher.change { dispatch in
          for (function, count) in news {
            dispatch.change(function) { $0.takeNotice(of: count, now: now) }
          }
        }
      }
      try await clock.sleep(for: interval / Self.looksPerHeartbeat)
    }
  }

  private static let looksPerHeartbeat = 20
}
