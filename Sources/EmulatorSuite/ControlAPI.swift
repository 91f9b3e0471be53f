import Deployment
import DocumentModel
import Events
import Foundation
import HTTPSupport
import HTTPTypes
import HummingbirdCore
import Identity
import Invocation
import Logging
import NIOCore
import RuntimeSupport
import TriggerDelivery
import WorkerPool

/// The hub: Firebase's discovery endpoints and our own control API under `/hearth/v1/`.
///
/// It can deploy code, so requests from a foreign origin or for a host that is not loopback are
/// refused before anything else happens.
struct ControlAPI: Sendable {
  let project: String
  let version: String
  let originGuard: LoopbackGuard
  let description: @Sendable () -> SuiteDescription
  let fleet: WorkerFleet
  let logs: FunctionLogStore
  let deliveries: DeliveryService
  let deployer: Deployer
  let transfer: DataTransfer
  let deliveryRequest: DeliveryRequest
  let time: VirtualTime
  let triggers: TriggerSwitch
  let logger: Logger

  /// Answers one request.
  func respond(to request: Request, _ context: HTTPContext) async -> Response {
    if let refusal = originGuard.refusal(of: request) { return refusal }
    do {
      return try await route(request, context)
    } catch {
      if !(error is any StatusConvertible) {
        logger.error("A control request failed", metadata: ["error": "\(error)"])
      }
      return .error(error)
    }
  }

  private func route(_ request: Request, _ context: HTTPContext) async throws -> Response {
    let segments = request.pathSegments ?? []
    switch (request.method, segments.count) {
    case (.get, 0): return try hub()
    case (.get, 1) where segments[0] == "emulators": return try emulators()
    case (.post, 2) where segments == ["_admin", "export"]:
      return try await transfer.exportForFirebase(request)
    case (.put, 2) where segments == ["functions", "disableBackgroundTriggers"]:
      return try await setTriggers(enabled: false)
    case (.put, 2) where segments == ["functions", "enableBackgroundTriggers"]:
      return try await setTriggers(enabled: true)
    default: break
    }
    guard segments.count >= 3, segments[0] == "hearth", segments[1] == "v1" else {
      throw unknown(request)
    }
    let path = segments.dropFirst(3)
    switch (request.method, segments[2], path.count) {
    case (.get, "suite", 0): return try .json(encoding: description())
    case (.get, "functions", 0): return try .json(encoding: functions())
    case (.post, "functions", 2) where path.last == "fire":
      return try await fire(segments[3], request)
    case (.post, "functions", 2) where path.last == "run":
      return try await runSchedule(segments[3])
    case (.delete, "functions", 0): return try await deleteFunctions(request.query)
    case (.get, "deployments", 0): return try .json(encoding: await deployer.deployments())
    case (.post, "deployments", 0): return try deploy(request.query, context.client)
    case (.post, "deployments", 1) where path.last == "rollback":
      return try await rollBack(request.query)
    case (_, "workers", _) where !context.isFromThisMachine:
      throw StatusError(
        .permissionDenied,
        "Only this machine may run functions in a debugger and ask for their settings."
      )
    case (.get, "workers", 1) where path.last == "environment":
      return try await workerEnvironment(request.query)
    case (.post, "workers", 0): return try await attachWorker(request, context.client)
    case (.delete, "workers", 1): return try await releaseWorker(segments[3])
    case (.get, "logs", 0): return try await logLines(request.query, context.client)
    case (.get, "events", 0): return try await events(request.query)
    case (.get, "events", 1): return try await event(try id(segments[3]))
    case (.post, "events", 1) where path.last == "discard":
      return try await discardAll(request.query)
    case (.post, "events", 2) where path.last == "discard":
      return try await discard(try id(segments[3]))
    case (.post, "events", 1) where path.last == "retry":
      return try await retryAll(request.query)
    case (.post, "events", 2) where path.last == "retry":
      let delivery = try await deliveries.retry(try id(segments[3]))
      return try .json(encoding: EventDescription(delivery, isRunning: false))
    case (.post, "export", 0): return try await transfer.export(request)
    case (.post, "import", 0): return try await transfer.import(request)
    case (.post, "settle", 0): return try await settle(request.query)
    case (.get, "clock", 0): return try .json(encoding: clock())
    case (.post, "clock", 0): return try await advanceClock(request)
    case (.get, "faults", 0): return try .json(encoding: await deliveries.currentFaults)
    case (.put, "faults", 0): return try await setFaults(request)
    case (.delete, "faults", 0):
      await deliveries.setFaults(nil)
      return .json("{}")
    default: throw unknown(request)
    }
  }

  // MARK: - Replies

  /// A reply of JSON lines, sent as they are written; its end is the producer's, which is cancelled
  /// when the client leaves.
  func lines(
    for client: ClientWatch,
    _ produce:
      @escaping @Sendable (_ write: @escaping @Sendable (any Encodable & Sendable) -> Void)
      async -> Void
  ) -> Response {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ByteBuffer.self,
      bufferingPolicy: .bufferingNewest(Self.linesMax)
    )
    let body = ResponseBody { writer in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          await client.whileConnected {
            await produce { value in
              // Strings, numbers and booleans always encode.
              guard let line = try? JSONEncoder().encode(value) else { return }
              continuation.yield(ByteBuffer(bytes: line + [0x0A]))
            }
          }
          continuation.finish()
        }
        for await buffer in stream { try await writer.write(buffer) }
        group.cancelAll()
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "application/x-ndjson"], body: body)
  }

  private func unknown(_ request: Request) -> StatusError {
    StatusError(.notFound, "The hub has no \(request.method) \(request.uri.path).")
  }

  /// Lines of a reply that wait for a slow reader.
  static let linesMax = 10_000
}
