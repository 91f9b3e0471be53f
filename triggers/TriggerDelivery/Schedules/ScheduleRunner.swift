import Manifests
import DocumentModel
import EventLog
import Events
import FlowControl
import Identity
import Logging
import StatusCodes
import StorageEngine
import Synchronization

/// The runner that adds due runs of scheduled functions to the event log.
///
/// One commit adds a run and records that it was taken, so that a restart does not take it again.
package final class ScheduleRunner: Sendable {
  private struct State {
    var book = ScheduleBook()
    /// The number of changes to the functions.
    ///
    /// `knownChanges` is the number of changes that the book contains.
    var changes = 0
    var knownChanges = -1
    /// True while runs are being taken.
    ///
    /// The book then shows them as taken before the log contains them.
    var isTaking = false
  }

  private let registry: FunctionRegistry
  private let store: DeliveryStore
  private let dispatcher: Dispatcher
  private let tailer: EventTailer
  private let project: String
  private let clock: any Clock<Duration>
  private let now: @Sendable () -> Timestamp
  private let logger: Logger
  private let state = Mutex(State())
  private let wakeups: AsyncStream<Void>
  private let wakeup: AsyncStream<Void>.Continuation
  private let alarm: Alarm<Timestamp>

  init(
    registry: FunctionRegistry,
    store: DeliveryStore,
    dispatcher: Dispatcher,
    tailer: EventTailer,
    project: String,
    clock: any Clock<Duration>,
    now: @escaping @Sendable () -> Timestamp,
    logger: Logger
  ) {
    self.registry = registry
    self.store = store
    self.dispatcher = dispatcher
    self.tailer = tailer
    self.project = project
    self.clock = clock
    self.now = now
    self.logger = logger
    (wakeups, wakeup) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    alarm = Alarm(clock: clock, now: now)
  }

  /// The earliest due time of a scheduled function; nil if there is none.
  var next: Timestamp? { state.withLock { $0.book.next } }

  /// Indicates whether no run is due at `now` and all schedules are loaded.
  func isIdle(at now: Timestamp) -> Bool {
    state.withLock { state in
      !state.isTaking && state.knownChanges == state.changes
        && state.book.next.map { $0 > now } ?? true
    }
  }

  /// Throws a `StatusConvertible` if a function has an invalid schedule.
  static func check(_ deployment: FunctionRegistry.Deployment, now: Timestamp) throws {
    _ = try ScheduleBook(functions: deployment.endpoints, stored: [:], now: now)
  }

  /// Requests that the schedules of the deployed functions are read again.
  func functionsChanged() {
    state.withLock { $0.changes += 1 }
    wakeup.yield()
  }

  /// Checks for due runs again after `now` has moved differently from the clock.
  func timeJumped() {
    alarm.reset()
    wakeup.yield()
  }

  /// Computes the next due time of each function again after the clock was set back.
  func clockWasSetBack() {
    alarm.reset()
    functionsChanged()
  }

  /// Takes runs when they are due, until cancelled.
  func run() async throws {
    try await withThrowingDiscardingTaskGroup { group in
      group.addTask { await self.alarm.run { self.wakeup.yield() } }
      for await _ in wakeups {
        let now = now()
        if state.withLock({ $0.knownChanges != $0.changes }) { try await renewBook(now) }
        let due = state.withLock { state in
          state.isTaking = true
          return state.book.due(now: now)
        }
        for function in due { try await take(function, now) }
        state.withLock { $0.isTaking = false }
        dispatcher.wake()
        if let next { alarm.set(next) }
      }
      group.cancelAll()
    }
  }

  private func renewBook(_ now: Timestamp) async throws {
    let changes = state.withLock { $0.changes }
    let stored = try await storedRuns()
    let endpoints = registry.current?.endpoints ?? [:]
    let book = try ScheduleBook(functions: endpoints, stored: stored, now: now)
    var batch = StorageBatch()
    book.remember(at: now, unless: stored, in: &batch)
    if !batch.operations.isEmpty {
      try await FullDisk.waitOut("Schedules wait", on: clock, logger: logger) { [batch] in
        try await store.storage.commit(batch, durability: .relaxed)
      }
    }
    state.withLock { state in
      state.book = book
      state.knownChanges = changes
    }
  }

  private func storedRuns() async throws -> [String: [UInt8]] {
    try await store.storage.read { snapshot in
      var stored: [String: [UInt8]] = [:]
      try snapshot.scan(ScheduleBook.keyspace, prefix: []) { key, value in
        stored[String(decoding: key, as: UTF8.self)] = value.bytes
        return true
      }
      return stored
    }
  }

  /// Takes a due run, or skips it while the previous run of its function has not ended.
  ///
  /// Cloud Scheduler does the same.
  private func take(_ function: String, _ now: Timestamp) async throws {
    var batch = StorageBatch()
    guard let time = state.withLock({ $0.book.take(function, now: now, in: &batch) }) else {
      return
    }
    var occurrences: [Occurrence] = [.schedule(function: function, time: time)]
    if try await store.hasPending(function) {
      occurrences = []
      logger.notice(
        "A scheduled run is left out: the one before has not ended",
        metadata: ["function.name": "\(function)", "schedule.time": "\(time)"]
      )
    }
    try await FullDisk.waitOut("Scheduled runs wait", on: clock, logger: logger) {
      try await record(occurrences, in: batch)
    }
  }

  /// Writes occurrences and a batch to the event log in one commit; returns their sequence.
  @discardableResult
  func record(
    _ occurrences: [Occurrence],
    in batch: StorageBatch = StorageBatch(),
    expecting: [VersionExpectation] = []
  ) async throws -> UInt64 {
    var batch = batch
    CommitLog.append(
      [],
      occurrences,
      commitTime: now(),
      database: DatabaseName(project: project),
      auth: .admin,
      to: &batch
    )
    let sequence = try await store.storage.commit(batch, expecting: expecting)
    tailer.wake()
    return sequence
  }

  /// Runs a scheduled function now, regardless of its schedule; returns the id of its delivery.
  ///
  /// Throws `NOT_FOUND` for a function that is not deployed, and `FAILED_PRECONDITION` for a
  /// function without a schedule.
  package func runNow(_ function: String) async throws -> DeliveryID {
    guard let endpoint = registry.current?.endpoints[function] else {
      throw StatusError(.notFound, "No function \(function) is deployed.")
    }
    guard endpoint.scheduleTrigger != nil else {
      throw StatusError(
        .failedPrecondition,
        "\(function) has no schedule; only scheduled functions are run like this."
      )
    }
    let sequence = try await record([.schedule(function: function, time: now())])
    return DeliveryID(sequence: sequence, changeIndex: 0, function: function)
  }
}
