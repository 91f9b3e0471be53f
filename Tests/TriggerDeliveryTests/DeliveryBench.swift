import DocumentModel
import EventLog
import Events
import Identity
import Invocation
import Logging
import ServiceLifecycle
import StorageEngine
import TestSupport
import TriggerDelivery

/// A delivery service over a store, with clock and functions in a test's hand.
struct DeliveryBench: Sendable {
  let storage: any StorageEngine
  let tailer: EventTailer
  let service: DeliveryService
  let clock: ManualClock

  private static let database = DatabaseName(project: "demo-test")
  private static let start = Timestamp(microseconds: 1_800_000_000_000_000)

  /// A service that does not run yet.
  init(
    storage: any StorageEngine,
    invoker: any FunctionInvoker,
    configuration: DeliveryService.Configuration = .init(),
    clock: ManualClock = ManualClock()
  ) {
    self.storage = storage
    self.clock = clock
    tailer = EventTailer(storage: storage, logger: .silent)
    service = DeliveryService(
      storage: storage,
      tailer: tailer,
      invoker: invoker,
      configuration: configuration,
      clock: clock,
      now: { Self.start.advanced(by: clock.now.offset) },
      logger: .silent
    )
  }

  var now: Timestamp { Self.start.advanced(by: clock.now.offset) }

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

  /// Commits the creation of a document and returns the event's id.
  @discardableResult
  func create(_ path: String) async throws -> String {
    let time = now
    let name = DocumentName(
      database: Self.database,
      path: ResourcePath(slashSeparated: path)
    )
    let document = Document(
      name: name,
      fields: ["path": .string(path)],
      createTime: time,
      updateTime: time
    )
    var batch = WriteBatch()
    EventLog.append(
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
  /// A function that wants every document created at `pattern`.
  static func created(_ pattern: String, retries: Bool = false) -> FunctionEndpoint {
    var endpoint = FunctionEndpoint(entryPoint: "f")
    endpoint.eventTrigger = EventTrigger(
      eventType: DocumentEventKind.created.eventType,
      eventFilters: ["database": "(default)"],
      eventFilterPathPatterns: ["document": pattern],
      retry: retries
    )
    return endpoint
  }
}
