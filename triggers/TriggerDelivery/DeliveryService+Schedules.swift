import DocumentModel
import EventLog
package import Events
import Identity
import Invocation
import Logging
import RuntimeSupport
import StorageEngine

extension DeliveryService {
  /// Rebuilds the book of schedules for the deployed functions.
  func renewBook() async throws {
    isBookOld = false
    let stored = try await storage.read { snapshot in
      var stored: [String: [UInt8]] = [:]
      try snapshot.scan(ScheduleBook.keyspace, prefix: []) { key, value in
        stored[String(decoding: key, as: UTF8.self)] = value.bytes
        return true
      }
      return stored
    }
    let now = now()
    book = try ScheduleBook(functions: functions ?? [:], stored: stored, now: now)
    var batch = StorageBatch()
    book.remember(at: now, unless: stored, in: &batch)
    if !batch.operations.isEmpty { try await storage.commit(batch, durability: .relaxed) }
  }

  /// Records the runs that are due.
  ///
  /// A run is left out while the previous run of its function has not ended, as by Cloud Scheduler.
  func recordTicks(_ now: Timestamp) async throws {
    var batch = StorageBatch()
    var book = book
    let due = book.takeDue(now: now, in: &batch).filter { function, time in
      guard schedule.isOccupied(.schedule(of: function)) else { return true }
      logger.notice(
        "A scheduled run is left out: the one before has not ended",
        metadata: ["function.name": "\(function)", "schedule.time": "\(time)"]
      )
      return false
    }
    let occurrences = due.map { Occurrence.schedule(function: $0, time: $1) }
    try await untilThereIsRoom("Scheduled runs wait") { [batch] in
      var batch = batch
      try await record(occurrences, in: &batch)
    }
    self.book = book
  }

  /// Writes occurrences to the event log along with the batch; returns their sequence.
  @discardableResult
  func record(
    _ occurrences: [Occurrence],
    in batch: inout StorageBatch,
    expecting: [VersionExpectation] = []
  ) async throws -> UInt64 {
    CommitLog.append(
      [],
      occurrences,
      commitTime: now(),
      database: DatabaseName(project: configuration.project),
      auth: .admin,
      to: &batch
    )
    let sequence = try await storage.commit(batch, expecting: expecting)
    tailer.wake()
    return sequence
  }

  /// Runs a scheduled function now, whatever its schedule says; returns the id of its delivery.
  ///
  /// Throws `NOT_FOUND` for a function that is not deployed and `FAILED_PRECONDITION` for one
  /// without a schedule.
  package func runSchedule(_ function: String) async throws -> DeliveryID {
    guard let endpoint = functions?[function] else {
      throw StatusError(.notFound, "No function \(function) is deployed.")
    }
    guard endpoint.scheduleTrigger != nil else {
      throw StatusError(
        .failedPrecondition,
        "\(function) has no schedule; only scheduled functions are run like this."
      )
    }
    var batch = StorageBatch()
    let sequence = try await record([.schedule(function: function, time: now())], in: &batch)
    return DeliveryID(sequence: sequence, changeIndex: 0, function: function)
  }

  /// Hands an event of another service to the functions that want it; it is durable on return.
  ///
  /// This is where services with events other than documents' plug in. A service that has a commit
  /// of its own appends to the `CommitLog` in that commit instead and wakes the tailer.
  package func publish(_ events: [CloudEvent]) async throws {
    var batch = StorageBatch()
    try await record(events.map { .event($0) }, in: &batch)
  }
}
