import DocumentModel
import Logging
import StorageEngine
import Synchronization

/// Bounds what is kept of settled deliveries, of the events they needed, and of tasks' names.
///
/// What is trimmed costs its own rows and no others: settled deliveries have keyspaces of their own,
/// and the oldest come first in them.
final class SettledRows: Sendable {
  private struct State {
    /// The rows of each keyspace; nil before they were counted.
    var counts: [Keyspace: Int]?
    var sinceTrim = 0
    /// Where the next look at kept events begins.
    var sweepKey: [UInt8]?
  }

  private let store: DeliveryStore
  private let tasks: TaskStore
  private let kept: Int
  private let taskNameKept: Duration
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let state = Mutex(State())
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
    (kicks, kick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Notes deliveries whose rows were written: settled ones, and postponed ones, which do not count.
  func note(_ deliveries: [Delivery]) {
    let isDue = state.withLock { state in
      for delivery in deliveries where delivery.state.isSettled {
        state.counts?[DeliveryStore.keyspace(of: delivery.state), default: 0] += 1
        state.sinceTrim += 1
      }
      return state.sinceTrim >= Self.trimEvery
    }
    if isDue { kick.yield() }
  }

  /// Notes a settled delivery whose row was deleted.
  func forget(_ state: Delivery.State) {
    self.state.withLock { $0.counts?[DeliveryStore.keyspace(of: state), default: 0] -= 1 }
  }

  /// Trims whenever enough has settled, until cancelled.
  func run() async {
    for await _ in kicks {
      state.withLock { $0.sinceTrim = 0 }
      do {
        try await trim()
      } catch {
        logger.warning("Settled deliveries could not be trimmed", metadata: ["error": "\(error)"])
      }
    }
  }

  private func trim() async throws {
    for keyspace in [DeliveryStore.succeeded, DeliveryStore.failed] {
      if state.withLock({ $0.counts?[keyspace] }) == nil {
        let count = try await store.count(keyspace)
        state.withLock { $0.counts = ($0.counts ?? [:]).merging([keyspace: count]) { $1 } }
      }
      let surplus = state.withLock { ($0.counts?[keyspace] ?? 0) - kept }
      guard surplus > 0 else { continue }
      let trimmed = try await store.trim(keyspace, surplus)
      // Fewer rows were there than counted: they are counted anew.
      state.withLock { state in
        let count = state.counts?[keyspace] ?? 0
        state.counts?[keyspace] = trimmed < surplus ? nil : count - trimmed
      }
    }
    try await tasks.free(before: now().advanced(by: .zero - taskNameKept))
    let key = state.withLock { $0.sweepKey }
    let next = try await store.sweepEvents(after: key, limit: Self.trimEvery)
    state.withLock { $0.sweepKey = next }
  }

  private static let trimEvery = 1000
}
