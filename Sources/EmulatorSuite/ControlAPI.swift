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
  let now: @Sendable () -> Timestamp
  let logger: Logger

  /// Answers one request.
  func respond(to request: Request) async -> Response {
    if let refusal = originGuard.refusal(of: request) { return refusal }
    do {
      return try await route(request)
    } catch {
      if !(error is any StatusConvertible) {
        logger.error("A control request failed", metadata: ["error": "\(error)"])
      }
      return .error(error)
    }
  }

  private func route(_ request: Request) async throws -> Response {
    let segments = request.pathSegments ?? []
    switch (request.method, segments.count) {
    case (.get, 0): return try hub()
    case (.get, 1) where segments[0] == "emulators": return try emulators()
    case (.post, 2) where segments == ["_admin", "export"]:
      return try await transfer.exportForFirebase(request)
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
    case (.post, "deployments", 0): return deploy(builds: request.query["build"] != "false")
    case (.get, "logs", 0): return await logLines(request.query)
    case (.get, "events", 0): return try await events(request.query)
    case (.get, "events", 1): return try await event(try id(segments[3]))
    case (.post, "events", 2) where path.last == "retry":
      let delivery = try await deliveries.retry(try id(segments[3]))
      return try .json(encoding: EventDescription(delivery, isRunning: false))
    case (.post, "export", 0): return try await transfer.export(request)
    case (.post, "import", 0): return try await transfer.import(request)
    case (.post, "settle", 0): return try await settle(request.query)
    default: throw unknown(request)
    }
  }

  // MARK: - Firebase's hub

  private func hub() throws -> Response {
    struct Hub: Encodable {
      var version: String
      var origins: [String]
      var pid: Int32
      var host: String
      var port: Int
    }
    let suite = description()
    let hub = suite.services["hub"] ?? ServiceAddress(host: "127.0.0.1", port: 0)
    return try .json(
      encoding: Hub(
        version: version,
        origins: ["http://\(hub.host):\(hub.port)"],
        pid: suite.pid,
        host: hub.host,
        port: hub.port
      )
    )
  }

  private func emulators() throws -> Response {
    struct Emulator: Encodable {
      struct Listen: Encodable {
        var address: String
        var family: String
        var port: Int
      }
      var name: String
      var host: String
      var port: Int
      var listen: [Listen]
      var pid: Int32
    }
    let suite = description()
    let entries = suite.services.map { name, address in
      (
        name,
        Emulator(
          name: name,
          host: address.host,
          port: address.port,
          listen: [.init(address: address.host, family: "IPv4", port: address.port)],
          pid: suite.pid
        )
      )
    }
    return try .json(encoding: Dictionary(uniqueKeysWithValues: entries))
  }

  // MARK: - Functions

  /// The deployed functions by name.
  func functions() -> [FunctionDescription] {
    let address =
      description().services["functions"] ?? ServiceAddress(host: "127.0.0.1", port: 0)
    return fleet.endpoints.sorted { $0.key < $1.key }.map { name, endpoint in
      FunctionDescription(
        name: name,
        endpoint: endpoint,
        project: project,
        address: address
      )
    }
  }

  private func fire(_ name: String, _ request: Request) async throws -> Response {
    guard let endpoint = fleet.endpoints[name] else {
      let names = fleet.endpoints.keys.sorted().joined(separator: ", ")
      throw StatusError(.notFound, "No function \(name) is deployed. Functions: \(names).")
    }
    guard let trigger = endpoint.eventTrigger,
      let kind = DocumentEventKind(eventType: trigger.eventType)
    else {
      throw StatusError(
        .failedPrecondition,
        "\(name) has no trigger; `hearth call \(name)` invokes it."
      )
    }
    let body = try await request.wholeBody(upTo: Self.fireBytesMax)
    let event = try FiredEvent(
      json: Array(body.readableBytesView),
      database: DatabaseName(project: project),
      time: now()
    )
    guard kind.includes(event.change.kind) else {
      throw StatusError(
        .failedPrecondition,
        "\(name) waits for \(kind.rawValue); this event is \(event.change.kind.rawValue). "
          + "--before and --data decide which it is."
      )
    }
    let delivery = Delivery(
      id: DeliveryID(sequence: 0, changeIndex: 0, function: name),
      change: event.change,
      kind: kind,
      commitTime: now(),
      auth: .admin,
      retries: false
    )
    let clock = ContinuousClock()
    let start = clock.now
    let reply = try await fleet.invoke(
      deliveryRequest.invocation(for: delivery, id: RandomID.make())
    )
    let text = String(buffer: try await reply.body.collect(upTo: Self.fireBytesMax))
    let elapsed = start.duration(to: clock.now)
    let succeeded = reply.head.status.kind == .successful
    return try .json(
      encoding: FireOutcome(
        succeeded: succeeded,
        milliseconds: Int(elapsed / .milliseconds(1)),
        error: succeeded ? nil : "HTTP \(reply.head.status.code) \(text)"
      )
    )
  }

  private func deploy(builds: Bool) -> Response {
    let deployer = self.deployer
    return lines { write in
      await deployer.deploy(builds: builds) { line in write(line) }
    }
  }

  // MARK: - Logs and events

  private func logLines(_ query: QueryParameters) async -> Response {
    let function = query["function"]
    let limit = min(max(Int(query["limit"] ?? "") ?? 200, 0), Self.logLinesMax)
    let follows = query["follow"] == "true"
    let logs = self.logs
    let following = follows ? logs.stream(function: function) : nil
    let past = await logs.entries(function: function, limit: limit)
    return lines { write in
      for entry in past { write(entry) }
      guard let following else { return }
      for await entry in following { write(entry) }
    }
  }

  private func events(_ query: QueryParameters) async throws -> Response {
    var state: Delivery.State?
    if let name = query["state"], name != "running" {
      guard let known = Delivery.State(rawValue: name) else {
        let names = (["running"] + Delivery.State.allCases.map(\.rawValue)).joined(separator: ", ")
        throw StatusError.invalidArgument("\"\(name)\" is no state; the states are \(names).")
      }
      state = known
    }
    let limit = min(max(Int(query["limit"] ?? "") ?? 50, 1), Self.eventsMax)
    let found = try await deliveries.list(
      state: state,
      isRunning: query["state"] == "running" ? true : nil,
      function: query["function"],
      limit: limit
    )
    var descriptions: [EventDescription] = []
    for delivery in found {
      let isRunning = await deliveries.isRunning(delivery.id)
      descriptions.append(EventDescription(delivery, isRunning: isRunning))
    }
    return try .json(encoding: descriptions)
  }

  private func event(_ id: DeliveryID) async throws -> Response {
    let delivery = try await deliveries.show(id)
    return try .json(
      encoding: EventDescription(delivery, isRunning: await deliveries.isRunning(id))
    )
  }

  private func id(_ text: String) throws -> DeliveryID {
    guard let id = DeliveryID(text) else {
      throw StatusError.invalidArgument(
        "\"\(text)\" is no event's id; `hearth events list` shows them."
      )
    }
    return id
  }

  /// Waits until everything is delivered; `DEADLINE_EXCEEDED` says what is pending after that.
  private func settle(_ query: QueryParameters) async throws -> Response {
    let seconds = min(max(Double(query["timeoutSeconds"] ?? "") ?? 30, 0), 600)
    let deliveries = self.deliveries
    let isSettled = try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await deliveries.waitUntilIdle()
        return true
      }
      group.addTask {
        try await Task.sleep(for: .seconds(seconds))
        return false
      }
      defer { group.cancelAll() }
      return try await group.next() ?? false
    }
    guard isSettled else {
      let pending = try await deliveries.list(state: .pending, limit: 10)
      let names = pending.map(\.id.description).joined(separator: ", ")
      throw StatusError(
        .deadlineExceeded,
        "Not settled after \(seconds) s. Pending: \(names.isEmpty ? "events that no deployment has taken yet" : names)."
      )
    }
    return .json("{}")
  }

  // MARK: - Replies

  /// A reply of JSON lines, sent as they are written; its end is the producer's.
  private func lines(
    _ produce:
      @escaping @Sendable (_ write: @escaping @Sendable (any Encodable & Sendable) -> Void)
      async -> Void
  ) -> Response {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ByteBuffer.self,
      bufferingPolicy: .bufferingNewest(Self.logLinesMax)
    )
    let body = ResponseBody { writer in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          await produce { value in
            // Strings, numbers and booleans always encode.
            guard let line = try? JSONEncoder().encode(value) else { return }
            continuation.yield(ByteBuffer(bytes: line + [0x0A]))
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

  /// A fired event is a document at most, before and after.
  private static let fireBytesMax = 4 << 20
  private static let logLinesMax = 10_000
  private static let eventsMax = 1000
}
