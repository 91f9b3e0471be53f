import DiskSimulation
import DocumentModel
import EventLog
import Events
import HTTPMessages
import HTTPTypes
import Identity
import Invocation
import Manifests
import NIOCore
import SQLiteStorage
import StorageEngine
import Synchronization
import TaskQueueModel
import TestSupport
import TriggerDelivery

/// Writers of events and tasks, over a delivery service.
///
/// Each write creates a document of its own, or a task, named by a number. The number tells the
/// invoker what is delivered; some numbers fail at first and are retried. The task queue is
/// sometimes paused.
final class DeliveryCrashes: CrashSubject, FunctionInvoker {
  private static let database = DatabaseName(
    project: DeliveryService.Configuration().project
  )
  private static let start = Timestamp(microseconds: 1_800_000_000_000_000)

  private struct Promises {
    var lastNumber = 0
    var acknowledged: Set<Int> = []
    var runs: [Int: Int] = [:]
    /// The numbers that succeeded since the last restart; `succeeded` has all of them.
    var succeededNow: Set<Int> = []
    var succeeded: Set<Int> = []
    /// Indicates whether the result of an invocation can still be stored.
    var canStore: @Sendable () -> Bool = { false }
    var finding: CrashTestError?
  }

  /// A service between two crashes, with its storage and its event tailer.
  struct Life: Sendable {
    var storage: SQLiteStore
    var tailer: EventTailer
    var service: DeliveryService
  }

  static let livesMax = 4
  static let tasks = 1...3
  // A check delivers everything, and leaves nothing for the next life.
  static let checksEachCrash = false

  private let clock = ManualClock()
  private let promises = Mutex(Promises())

  func open(_ storage: SQLiteStore) -> Life {
    let tailer = EventTailer(storage: storage, logger: .silent)
    let service = DeliveryService(
      storage: storage,
      tailer: tailer,
      invoker: self,
      // Few events fit in memory, so that the others are read from storage.
      configuration: .init(heldBytesMax: 1000),
      clock: clock,
      now: { self.now },
      logger: .silent
    )
    return Life(storage: storage, tailer: tailer, service: service)
  }

  private var now: Timestamp { Self.start.advanced(by: clock.now.offset) }

  /// Runs the service beside `body` and then stops it without an orderly shutdown.
  private func run(
    _ life: Life,
    beside body: @escaping @Sendable () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await life.tailer.run() }
      group.addTask { try await life.service.run() }
      group.addTask {
        try await body()
        throw BodyEndedError()
      }
      do {
        try await group.next()
      } catch is BodyEndedError {
        group.cancelAll()
        while let result = await group.nextResult() {
          // The results of cancelled tasks do not matter.
          _ = result
        }
        return
      }
      throw CrashTestError("the service ended by itself")
    }
  }

  private struct BodyEndedError: Error {}

  // MARK: Running until a crash

  /// Writes from several tasks.
  func work(_ life: Life, on site: CrashSite) async throws {
    begin { !site.hasCrashed }
    // Events written before a deployment wait in the log.
    let isDeployed = site.seeds[0] % 3 > 0
    if isDeployed { try life.service.updateFunctions(Self.functions) }
    do {
      try await run(life) {
        await site.untilCrash { _, generator in
          await self.write(to: life)
          if Int.random(in: 0..<6, using: &generator) == 0 { self.clock.advance(by: .seconds(2)) }
        }
      }
    } catch {
      // Without its disk the service ends by itself; this makes sure that the disk really failed.
      guard site.hasCrashed else { throw error }
    }
    if let finding = promises.withLock({ $0.finding }) { throw finding }
  }

  private func begin(canStore: @escaping @Sendable () -> Bool) {
    promises.withLock { promises in
      promises.succeededNow = []
      promises.canStore = canStore
    }
  }

  private func write(to life: Life) async {
    let number = promises.withLock { promises in
      promises.lastNumber += 1
      return promises.lastNumber
    }
    if number % 4 == 3 { return await enqueue(number, in: life) }
    let time = now
    let name = DocumentName(
      database: Self.database,
      path: ResourcePath(slashSeparated: "c/\(number)")
    )
    let document = FirestoreDocument(name: name, fields: [:], createTime: time, updateTime: time)
    var batch = StorageBatch()
    CommitLog.append(
      [DocumentChange(name: name, before: nil, after: document)],
      commitTime: time,
      database: Self.database,
      auth: .admin,
      to: &batch
    )
    do {
      try await life.storage.commit(batch)
      promises.withLock { _ = $0.acknowledged.insert(number) }
      life.tailer.wake()
    } catch {
      // Not acknowledged: it may be delivered or not.
    }
  }

  /// Enqueues a task; sometimes pauses or resumes the queue first.
  private func enqueue(_ number: Int, in life: Life) async {
    do {
      if number % 16 == 3 {
        _ = try await life.service.tasks.setPaused(number % 32 == 3, queue: "q")
      }
      let time = number % 8 == 7 ? now.advanced(by: .seconds(3)) : nil
      let task = NewTask(id: "\(number)", body: [], scheduleTime: time)
      _ = try await life.service.tasks.enqueue(task, in: "q")
      promises.withLock { _ = $0.acknowledged.insert(number) }
    } catch {
      // Not acknowledged; before the deployment there is no queue.
    }
  }

  private static let functions: [String: FunctionEndpoint] = {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.eventTrigger = FunctionEndpoint.EventTrigger(
      eventType: DocumentEventType(.created).name,
      eventFilters: ["database": "(default)"],
      eventFilterPathPatterns: ["document": "c/{id}"],
      retry: true
    )
    var queue = FunctionEndpoint(entryPoint: "q")
    queue.taskQueueTrigger = FunctionEndpoint.TaskQueueTrigger(
      retryConfig: FunctionEndpoint.RetryConfig(maxAttempts: 5)
    )
    return ["f": endpoint, "q": queue]
  }()

  // MARK: Invocations

  func invoke(_ request: InvocationRequest) async throws -> Response {
    let fields = request.head.headerFields
    let document =
      fields[fieldName("ce-document")] ?? fields[fieldName("x-cloudtasks-taskname")] ?? ""
    let succeeds = promises.withLock { promises -> Bool in
      guard let number = Int(document.split(separator: "/").last ?? "") else {
        promises.finding = CrashTestError("something is delivered for \"\(document)\"")
        return true
      }
      if promises.succeededNow.contains(number), promises.canStore() {
        promises.finding = CrashTestError("event \(number) had succeeded and is delivered again")
      }
      promises.runs[number, default: 0] += 1
      guard number % 5 != 0 || promises.runs[number] != 1 else { return false }
      promises.succeededNow.insert(number)
      promises.succeeded.insert(number)
      return true
    }
    return Response(
      head: HTTPResponse(status: succeeds ? .ok : .internalServerError),
      body: .whole(ByteBuffer())
    )
  }

  // MARK: Checks

  /// Delivers what is left after a crash; after a clean stop nothing may be left.
  func check(_ life: Life, after ending: Ending) async throws {
    let runs = promises.withLock { $0.runs }
    begin { true }
    try life.service.updateFunctions(Self.functions)
    try await run(life) {
      try await life.service.waitUntilIdle()
      _ = try await life.service.tasks.setPaused(false, queue: "q")
      try await life.service.waitUntilIdle()
      while let due = life.service.nextDue {
        self.clock.advance(by: due.duration(since: self.now))
        life.service.timeJumped()
        try await life.service.waitUntilIdle()
      }
      try self.check(try await life.service.administration.list(limit: .max))
    }
    guard ending != .stopped || promises.withLock({ $0.runs }) == runs else {
      throw CrashTestError("what was settled is delivered again after a clean stop")
    }
  }

  private func check(_ deliveries: [Delivery]) throws {
    var stored: Set<Int> = []
    for delivery in deliveries {
      guard delivery.state == .succeeded else {
        throw CrashTestError("delivery \(delivery.id) is \(delivery.state) at the end")
      }
      if let number = Int(delivery.subject.split(separator: "/").last ?? "") {
        stored.insert(number)
      }
    }
    try promises.withLock { promises in
      if let finding = promises.finding { throw finding }
      for number in promises.acknowledged.sorted() {
        guard promises.succeeded.contains(number) else {
          throw CrashTestError("event \(number) was acknowledged and is not delivered")
        }
        guard stored.contains(number) else {
          throw CrashTestError("event \(number) was acknowledged and its outcome is not stored")
        }
      }
    }
  }
}
