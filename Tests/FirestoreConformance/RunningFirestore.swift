import DocumentModel
import DocumentStore
import EventLog
import FirestoreEmulator
import Foundation
import HTTPSupport
import Logging
import OutboundHTTP
import QueryEngine
import ServiceLifecycle
import StorageEngine
import TestSupport

/// A service on a free port over an in-memory store.
struct RunningFirestore: Sendable {
  let port: Int
  let service: FirestoreService
  let rest: RESTEndpoint
  let log: LogCapture

  func endpoint(_ kind: EndpointKind) -> any Endpoint {
    switch kind {
    case .gRPC: GRPCEndpoint(port: port)
    case .REST: rest
    }
  }
}

/// Starts an empty service, runs `body` with it, and stops it.
func withFirestore(
  budget: TransferBudget? = nil,
  _ body: (RunningFirestore) async throws -> Void
) async throws {
  let log = LogCapture()
  let logger = log.logger(level: .notice)
  let storage = MemoryStorage()
  let engine = QueryRunner(logger: logger)
  try await engine.load(from: storage)
  let tailer = EventTailer(storage: storage, logger: logger)
  let store = DocumentDatabase(
    storage: storage,
    queryRunner: engine,
    tailer: tailer,
    now: { Timestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000)) },
    clock: ContinuousClock(),
    logger: logger
  )
  let service = FirestoreService(
    store: store,
    project: "demo-psst",
    budget: budget,
    logger: logger
  )
  let (listening, continuation) = AsyncStream<ServerAddress>.makeStream()
  let http = service.httpService(
    address: .tcp(host: "127.0.0.1", port: 0),
    onListening: { continuation.yield($0) }
  )
  let group = ServiceGroup(services: [tailer, store, http], logger: logger)
  async let running: Void = {
    defer { continuation.finish() }
    try await group.run()
  }()
  guard let port = await listening.first(where: { _ in true })?.port else {
    try await running
    throw CancellationError()
  }
  let client = OutboundClient()
  do {
    try await body(
      RunningFirestore(
        port: port,
        service: service,
        rest: RESTEndpoint(client: client, port: port),
        log: log
      )
    )
  } catch {
    await group.triggerGracefulShutdown()
    throw error
  }
  await group.triggerGracefulShutdown()
  try await running
}
