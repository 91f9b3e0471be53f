import DocumentModel
import EventLog
import Events
import Identity
import Invocation
import Logging
import OutboundHTTP
import ServiceLifecycle
import StorageEngine
import Synchronization
import TestSupport
import TriggerDelivery

/// A delivery service over a store, with clock and functions in a test's hand.
struct DeliveryBench: Sendable {
  let storage: any OrderedStorage
  let tailer: EventTailer
  let service: DeliveryService
  let clock: ManualClock
  let wallClock: WallClock

  private static let database = DatabaseName(project: "demo-test")
  private static let start = Timestamp(microseconds: 1_800_000_000_000_000)

  /// A service that does not run yet; with `realClock` it sleeps in real time.
  init(
    storage: any OrderedStorage,
    invoker: any FunctionInvoker,
    transport: any HTTPTransport = ScriptedServer([]),
    configuration: DeliveryService.Configuration = .init(),
    clock: ManualClock = ManualClock(),
    wallClock: WallClock = WallClock(),
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
      now: { Self.start.advanced(by: clock.now.offset + wallClock.offset) },
      logger: logger
    )
  }

  var now: Timestamp { Self.start.advanced(by: clock.now.offset + wallClock.offset) }

  /// Lets time jump, and everything that is due then come to its end.
  func jump(_ duration: Duration) async throws {
    try await service.waitUntilStill()
    clock.advance(by: duration)
    service.timeJumped()
    try await service.waitUntilStill()
  }

  /// Runs the service beside `body`, then shuts it down gracefully, with `stopping` meanwhile.
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

  /// Commits the creation of a document with a text so long, and returns the event's id.
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

/// A machine's time of day, which somebody may set; its clock of durations goes on all the same.
final class WallClock: Sendable {
  private let moved = Mutex(Duration.zero)

  /// How far the time was set forward in all.
  var offset: Duration { moved.withLock { $0 } }

  /// Sets the time forward, or back by a negative duration.
  func set(by duration: Duration) { moved.withLock { $0 += duration } }
}

extension FunctionEndpoint {
  /// A function that wants every document created at `pattern`.
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

  /// A function that answers plain requests.
  static var web: FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.httpsTrigger = HTTPSTrigger()
    return endpoint
  }

  /// A function that wants events of another service.
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

  /// A function that runs by the clock.
  static func schedule(_ schedule: String, retry: RetryConfig? = nil) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.scheduleTrigger = ScheduleTrigger(schedule: schedule, retryConfig: retry)
    return endpoint
  }

  /// A function that runs tasks.
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
  /// All tasks of a queue that are still to run.
  func all(in queue: String) async throws -> [QueuedTask] {
    try await tasks(in: queue, after: nil, limit: 1000, withBodies: true).tasks
  }
}
