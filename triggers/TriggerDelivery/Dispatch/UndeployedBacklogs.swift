import DocumentModel
import EventLog
import FlowControl
import Logging
import StorageEngine
import Synchronization

/// The service that keeps deliveries of undeployed functions for a bounded time.
///
/// Afterwards it gives them up. A row stores the time since which a function is undeployed, so that
/// a restart does not prolong the wait.
final class UndeployedBacklogs: Sendable {
  /// The time since which a function is undeployed, by its name.
  ///
  /// Only functions with waiting deliveries have a row.
  static let keyspace = Keyspace("functions_undeployed")

  private let storage: any OrderedStorage
  private let dispatcher: Dispatcher
  private let administration: DeliveryAdministration
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  /// The rows as this run has read or written them.
  private let rows = Mutex<[String: Timestamp]>([:])
  private let reported = Mutex<Set<String>>([])
  private let wakeups: AsyncStream<Void>
  private let wakeup: AsyncStream<Void>.Continuation
  private let alarm: Alarm<Timestamp>

  init(
    storage: any OrderedStorage,
    dispatcher: Dispatcher,
    administration: DeliveryAdministration,
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.storage = storage
    self.dispatcher = dispatcher
    self.administration = administration
    self.clock = clock
    self.now = now
    self.logger = logger
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    alarm = Alarm(clock: clock, now: now)
  }

  /// Requests another check of the undeployed functions.
  func wake() { wakeup.yield() }

  /// Loads the rows of an earlier run; must be called before any deliveries are loaded.
  func load() async throws {
    let found = try await storage.read { snapshot in
      var found: [String: Timestamp] = [:]
      try snapshot.scan(Self.keyspace, prefix: []) { key, value in
        var decoder = BinaryDecoder(value.bytes)
        let name = String(decoding: key, as: UTF8.self)
        found[name] = Timestamp(microseconds: try decoder.signed())
        return true
      }
      return found
    }
    rows.withLock { $0 = found }
    dispatcher.quietly { $0.undeployedSince = found }
  }

  /// Gives up deliveries whose time is over, until cancelled.
  func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.alarm.run { self.wake() } }
      for await _ in wakeups {
        do {
          if let next = try await turn() { alarm.set(next) }
        } catch {
          guard !Task.isCancelled else { break }
          logger.error(
            "Events of functions that are not deployed cannot be looked at",
            metadata: ["error": "\(error)"]
          )
          // A cancelled sleep ends the wait, and the run loop ends as well.
          try? await clock.sleep(for: FullDisk.wait)
          wake()
        }
      }
      group.cancelAll()
    }
  }

  /// Checks all undeployed functions and returns the time of the next check.
  ///
  /// Returns nil if no deliveries wait.
  private func turn() async throws -> Timestamp? {
    let undeployed = dispatcher.read { $0.undeployed }
    try await note(undeployed.mapValues(\.since))
    report(undeployed)
    for (function, state) in undeployed where !state.isGivenUp && state.until <= now() {
      try await giveUp(function)
    }
    return dispatcher.read { $0.undeployed }.values.filter { !$0.isGivenUp }.map(\.until).min()
  }

  private func note(_ wanted: [String: Timestamp]) async throws {
    let known = rows.withLock { $0 }
    guard known != wanted else { return }
    var batch = StorageBatch()
    for (function, since) in wanted where known[function] != since {
      var encoder = BinaryEncoder()
      encoder.append(signed: since.microseconds)
      batch.put(Self.keyspace, Array(function.utf8), encoder.bytes)
    }
    for function in known.keys where wanted[function] == nil {
      batch.delete(Self.keyspace, Array(function.utf8))
    }
    try await storage.commit(batch, durability: .relaxed)
    rows.withLock { $0 = wanted }
  }

  /// Logs each function once for each period in which it is undeployed.
  private func report(_ undeployed: [String: FunctionBacklog.Undeployed]) {
    let new = reported.withLock { reported in
      defer { reported = Set(undeployed.keys) }
      return undeployed.filter { !reported.contains($0.key) }
    }
    for (function, state) in new where !state.isGivenUp {
      let count = dispatcher.read { $0.backlogs[function]?.count ?? 0 }
      logger.warning(
        "The events of a function wait, because it is no longer deployed",
        metadata: [
          "function.name": "\(function)", "delivery.count": "\(count)",
          "kept.until": "\(state.until)",
        ]
      )
    }
  }

  private func giveUp(_ function: String) async throws {
    let count = try await administration.endAll(
      of: function,
      "The function was not deployed for \(dispatcher.keptFor)."
    )
    dispatcher.change { dispatch in dispatch.change(function) { $0.noteGivenUp() } }
    guard count > 0 else { return }
    logger.error(
      "The events of a function are dead, because it was not deployed again in time",
      metadata: ["function.name": "\(function)", "delivery.count": "\(count)"]
    )
  }
}
