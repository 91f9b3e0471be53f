import DocumentModel
import EventLog
import Logging
import StorageEngine
import Synchronization

/// Keeps the deliveries of functions that are not deployed for a bounded time, then gives them up.
///
/// A row notes since when a function is not deployed, so that a restart does not prolong the time.
final class UndeployedBacklogs: Sendable {
  /// Since when functions are not deployed, by name; only of those that have waiting deliveries.
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
  private let alarm: DueAlarm

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
    alarm = DueAlarm(clock: clock, now: now) { [wakeup] in wakeup.yield() }
  }

  /// Sees to it that the functions are looked at again.
  func wake() { wakeup.yield() }

  /// Takes over what an earlier run has noted; to be called before any deliveries are taken up.
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

  /// Gives up what has waited for long enough, until cancelled.
  func run() async {
    await withDiscardingTaskGroup { group in
      for await _ in wakeups {
        do {
          let next = try await turn()
          if let sleep = next.flatMap({ alarm.set($0) }) { group.addTask { await sleep() } }
        } catch {
          guard !Task.isCancelled else { break }
          logger.error(
            "Events of functions that are not deployed cannot be looked at",
            metadata: ["error": "\(error)"]
          )
          // A cancelled sleep ends the wait, and the run ends with it.
          try? await clock.sleep(for: FullDisk.wait)
          wake()
        }
      }
      group.cancelAll()
    }
  }

  /// Returns when to look again; nil when nothing waits.
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

  /// Logs each function once for each time that a deployment lacks it.
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
    let count = try await administration.giveUp(
      function,
      because: "The function was not deployed for \(dispatcher.keptFor)."
    )
    dispatcher.change { dispatch in dispatch.change(function) { $0.noteGivenUp() } }
    guard count > 0 else { return }
    logger.error(
      "The events of a function are dead, because it was not deployed again in time",
      metadata: ["function.name": "\(function)", "delivery.count": "\(count)"]
    )
  }
}
