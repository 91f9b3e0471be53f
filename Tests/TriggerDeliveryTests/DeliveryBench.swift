import DocumentModel
import EventLog
import Events
import Identity
import Invocation
import Logging
import Manifests
import OutboundHTTP
import ServiceLifecycle
import StorageEngine
import TaskQueueModel
import TestSupport
import TriggerDelivery

/// A delivery service with a clock and functions that the test controls.
struct DeliveryBench: Sendable {
  let storage: any OrderedStorage
  let tailer: EventTailer
  let service: DeliveryService
  let clock: ManualClock
  let wallClock: WallClock

  private static let database = DatabaseName(
    project: DeliveryService.Configuration().project
  )

  /// Creates a service that does not run yet; with `realClock` it sleeps in real time.
  init(
    storage: any OrderedStorage,
    invoker: any FunctionInvoker,
    transport: any HTTPTransport = ScriptedHTTP(),
    configuration: DeliveryService.Configuration = .init(),
    clock: ManualClock = ManualClock(),
    wallClock: WallClock = WallClock(secondsSince1970: 1_800_000_000),
    realClock: (any Clock<Duration>)? = nil,
    logger: Logger = .silent
  ) {
    self.storage = storage
    self.clock = clock
    self.wallClock = wallClock
    tailer = EventTailer(storage: storage, logger: .silent)
    service = DeliveryService(
      storage: storage,
      tailer: tailer,
      invoker: invoker,
      transport: transport,
      configuration: configuration,
      clock: realClock ?? clock,
      now: { wallClock.now().advanced(by: clock.now.offset) },
      logger: logger
    )
  }

  var now: Timestamp { wallClock.now().advanced(by: clock.now.offset) }

  /// Advances the clock and waits until everything that is due has ended.
  func jump(_ duration: Duration) async throws {
    try await service.waitUntilStill()
    clock.advance(by: duration)
    service.timeJumped()
    try await service.waitUntilStill()
  }

  /// Runs the service beside `body`, then shuts it down gracefully while `stopping` runs.
  func run(
    _ body: @Sendable (DeliveryBench) async throws -> Void,
    stopping: @Sendable (DeliveryBench) async -> Void = { _ in }
  ) async throws {
    let group = ServiceGroup(
      configuration: .init(
        services: [.init(service: tailer), .init(service: service)],
        logger: .silent
      )
    )
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask { try await group.run() }
      do {
        try await body(self)
      } catch {
        tasks.cancelAll()
        throw error
      }
      await group.triggerGracefulShutdown()
      await stopping(self)
      try await tasks.waitForAll()
    }
  }

  /// Commits the creation of a document with a text of `bytes` bytes, and returns the event's ID.
  @discardableResult
  func create(_ path: String, bytes: Int = 0) async throws -> String {
    let time = now
    let name = DocumentName(
      database: Self.database,
      path: ResourcePath(slashSeparated: path)
    )
    let document = FirestoreDocument(
      name: name,
      fields: ["path": .string(path), "text": .string(String(repeating: "x", count: bytes))],
      createTime: time,
      updateTime: time
    )
    var batch = StorageBatch()
    CommitLog.append(
      [DocumentChange(name: name, before: nil, after: document)],
      commitTime: time,
      database: Self.database,
      auth: .admin,
      to: &batch
    )
    let sequence = try await storage.commit(batch)
    tailer.wake()
    return "\(sequence).0"
  }
}

extension FunctionEndpoint {
  /// A function triggered by every document created at `pattern`.
  static func created(_ pattern: String, retries: Bool = false) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.eventTrigger = EventTrigger(
      eventType: DocumentEventType(.created).name,
      eventFilters: ["database": "(default)"],
      eventFilterPathPatterns: ["document": pattern],
      retry: retries
    )
    return endpoint
  }

  /// An HTTP function.
  static var web: FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.httpsTrigger = HTTPSTrigger()
    return endpoint
  }

  /// A function triggered by events of another service.
  static func event(
    _ type: String,
    _ filters: [String: String] = [:],
    patterns: [String: String]? = nil
  ) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.eventTrigger = EventTrigger(
      eventType: type,
      eventFilters: filters,
      eventFilterPathPatterns: patterns
    )
    return endpoint
  }

  /// A scheduled function.
  static func schedule(_ schedule: String, retry: RetryConfig? = nil) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.scheduleTrigger = ScheduleTrigger(schedule: schedule, retryConfig: retry)
    return endpoint
  }

  /// A task queue function.
  static func queue(
    _ rateLimits: RateLimits? = nil,
    retry: RetryConfig? = nil
  ) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.taskQueueTrigger = TaskQueueTrigger(rateLimits: rateLimits, retryConfig: retry)
    return endpoint
  }
}

extension TaskDispatch {
  /// Returns all pending tasks of a queue.
  func all(in queue: String) async throws -> [QueuedTask] {
    try await tasks(in: queue, after: nil, limit: 1000, withBodies: true).tasks
  }
}
