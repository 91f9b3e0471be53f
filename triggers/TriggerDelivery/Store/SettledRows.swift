import DocumentModel
import Logging
import StorageEngine
import Synchronization

/// The limits on stored settled deliveries, their events and the names of ended tasks.
///
/// Of the succeeded deliveries the newest are kept. Of the failed deliveries each function keeps a
/// share (`FailedShares`). A drop of failed deliveries is logged and frees their events.
final class SettledRows: Sendable {
  private struct State {
    /// The number of rows of succeeded deliveries; nil before they were counted.
    var succeeded: Int?
    var failed: FailedShares
    /// True if `failed` contains the rows that an earlier run left.
    var isLoaded = false
    /// The deliveries that have stopped being failed since the load began.
    var gone: Set<DeliveryID> = []
    var sinceTrim = 0
    var bytesSinceTrim = 0
    /// The key at which the next sweep of kept events begins.
    var sweepKey: [UInt8]?
    /// The number of dropped failed deliveries of each function, and the number last logged.
    var dropped: [String: (count: Int, logged: Int)] = [:]
  }

  private let store: DeliveryStore
  private let tasks: TaskStore
  private let kept: Int
  private let taskNameKept: Duration
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let state: Mutex<State>
  private let kicks: AsyncStream<Void>
  private let kick: AsyncStream<Void>.Continuation

  init(
    store: DeliveryStore,
    configuration: DeliveryService.Configuration,
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.store = store
    tasks = TaskStore(storage: store.storage)
    kept = configuration.settledKept
    taskNameKept = configuration.taskNameKept
    self.now = now
    self.logger = logger
    let each = FailedShares.Bound(count: kept, bytes: configuration.failedBytesMax)
    state = Mutex(State(failed: FailedShares(each: each, all: each * Self.sharesInAll)))
    (kicks, kick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Records deliveries whose rows were written; only settled deliveries count.
  func note(_ deliveries: [Delivery]) {
    let isDue = state.withLock { state in
      for delivery in deliveries where delivery.state.isSettled {
        if delivery.state == .succeeded {
          state.succeeded? += 1
        } else {
          state.failed.add(delivery.id, bytes: delivery.eventBytes + DeliveryStore.rowBytes)
          state.gone.remove(delivery.id)
        }
        state.sinceTrim += 1
        state.bytesSinceTrim += delivery.eventBytes
      }
      return state.sinceTrim >= Self.trimEvery || state.bytesSinceTrim >= Self.trimEveryBytes
    }
    if isDue { kick.yield() }
  }

  /// Records a settled delivery whose row was deleted.
  func forget(_ delivery: Delivery) {
    state.withLock { state in
      guard delivery.state != .succeeded else {
        state.succeeded? -= 1
        return
      }
      state.failed.remove(delivery.id)
      if !state.isLoaded { state.gone.insert(delivery.id) }
    }
  }

  /// Trims at the start, and whenever enough deliveries have settled, until cancelled.
  func run() async {
    kick.yield()
    for await _ in kicks {
      state.withLock { state in
        state.sinceTrim = 0
        state.bytesSinceTrim = 0
      }
      do {
        try await trim()
      } catch {
        logger.warning("Settled deliveries could not be trimmed", metadata: ["error": "\(error)"])
      }
    }
  }

  private func trim() async throws {
    try await load()
    try await trimSucceeded()
    while try await trimFailed() {}
    try await tasks.free(before: now().advanced(by: .zero - taskNameKept))
    let key = state.withLock { $0.sweepKey }
    let next = try await store.sweepEvents(after: key, limit: Self.trimEvery)
    state.withLock { $0.sweepKey = next }
  }

  // MARK: Succeeded deliveries

  private func trimSucceeded() async throws {
    if state.withLock({ $0.succeeded }) == nil {
      let count = try await store.count(DeliveryStore.succeeded)
      state.withLock { $0.succeeded = count }
    }
    let surplus = state.withLock { ($0.succeeded ?? 0) - kept }
    guard surplus > 0 else { return }
    let trimmed = try await store.trim(DeliveryStore.succeeded, surplus)
    // If there were fewer rows than expected, they are counted again.
    state.withLock { state in
      let count = state.succeeded ?? 0
      state.succeeded = trimmed < surplus ? nil : count - trimmed
    }
  }

  // MARK: Failed deliveries

  /// Loads the rows that an earlier run left; its bounds may have been larger.
  private func load() async throws {
    guard !state.withLock({ $0.isLoaded }) else { return }
    let rows = try await store.failedRows()
    state.withLock { state in
      // Deliveries that have failed since are newer than all loaded rows.
      var failed = state.failed
      for row in rows.reversed() where !state.gone.contains(row.id) && !failed.contains(row.id) {
        failed.add(row.id, bytes: row.keptBytes, isOldest: true)
      }
      state.failed = failed
      state.isLoaded = true
      state.gone = []
    }
  }

  /// Drops some of the failed deliveries beyond the bounds; false if there are none.
  private func trimFailed() async throws -> Bool {
    let surplus = state.withLock { $0.failed.takeSurplus(limit: Self.dropMax) }
    guard !surplus.isEmpty else { return false }
    let ids = surplus.flatMap { function, places in places.map { DeliveryID($0, function) } }
    let batch = try await store.dropping(ids)
    try await store.storage.commit(batch, durability: .relaxed)
    for (function, places) in surplus { logDrop(of: function, places.count) }
    return true
  }

  /// Logs the first drop of a function, and then each time the total number has doubled.
  private func logDrop(of function: String, _ count: Int) {
    let (total, kept) = state.withLock { state -> (Int?, Int) in
      var dropped = state.dropped[function] ?? (0, 0)
      dropped.count += count
      let isDue = dropped.count >= 2 * dropped.logged
      if isDue { dropped.logged = dropped.count }
      state.dropped[function] = dropped
      return (isDue ? dropped.count : nil, state.failed.kept(of: function).count)
    }
    guard let total else { return }
    logger.warning(
      "The oldest failed events of a function are dropped: more have failed than are kept",
      metadata: [
        "function.name": "\(function)", "dropped.count": "\(total)", "kept.count": "\(kept)",
      ]
    )
  }

  private static let trimEvery = 1000
  /// The number of bytes of settled deliveries' events after which rows and events are trimmed.
  private static let trimEveryBytes = 16 << 20
  /// The bound of all functions together, as a multiple of one function's bound.
  ///
  /// Beyond it the largest shares are cut.
  private static let sharesInAll = 8
  /// The number of deliveries dropped in one batch; a commit may have to wait for the batch.
  private static let dropMax = 250
}
