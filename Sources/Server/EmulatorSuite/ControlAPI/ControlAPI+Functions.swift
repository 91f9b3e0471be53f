import Deployment
import DocumentModel
import Events
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identifiers
import Identity
import Invocation
import Manifests
import NIOCore
import StatusCodes
import TriggerDelivery
import WorkerPool

/// The endpoints for deployed functions and for deployments.
extension ControlAPI {
  /// Returns the functions that are served, ordered by name.
  func functions() -> [FunctionDescription] {
    let address =
      description().services["functions"] ?? ServiceAddress(host: "127.0.0.1", port: 0)
    let debuggers = fleet.debuggers
    let statuses = Dictionary(uniqueKeysWithValues: fleet.statuses().map { ($0.name, $0) })
    return fleet.endpoints.sorted { $0.key < $1.key }.compactMap { name, endpoint in
      guard let status = statuses[name] else { return nil }
      var function = FunctionDescription(
        name: name,
        endpoint: endpoint,
        project: project,
        address: address
      )
      function.debugger = debuggers[name]
      function.workers = status.processes.isEmpty ? nil : status.processes
      function.running = status.running
      function.waiting = status.waiting
      return function
    }
  }

  /// Sends the event that a request describes to one function, and reports the outcome.
  func fire(_ name: String, _ request: Request) async throws -> Response {
    guard let endpoint = fleet.endpoints[name] else {
      let names = fleet.endpoints.keys.sorted().joined(separator: ", ")
      let question = NearestName.question(name, among: fleet.endpoints.keys.sorted())
      throw StatusError(
        .notFound,
        "No function \(name) is deployed.\(question) Functions: \(names)."
      )
    }
    guard let trigger = endpoint.eventTrigger else {
      throw StatusError(
        .failedPrecondition,
        "\(name) takes no events: \(invocationHint(name, endpoint))"
      )
    }
    let body = try await request.wholeBody(upTo: Self.fireBytesMax)
    let json = Array(body.readableBytesView)
    if let type = DatabaseEventType(name: trigger.eventType) {
      let change = try FiredValue(json: json, for: trigger, project: project).change
      try check(change.kind, isFor: type.kind, of: name)
      return try await fire(name, .occurrence(.value(change)), DocumentEventType(type.kind))
    }
    guard let type = DocumentEventType(name: trigger.eventType) else {
      let event = try FiredCloudEvent(json: json, for: name, trigger).event
      return try await fire(name, .occurrence(.event(event)), DocumentEventType(.written))
    }
    let event = try FiredEvent(
      json: json,
      database: DatabaseName(project: project),
      time: time.now
    )
    try check(event.change.kind, isFor: type.kind, of: name)
    return try await fire(name, .document(event.change), type)
  }

  /// Throws `FAILED_PRECONDITION` for a change that is no event of the function's kind.
  private func check(_ change: ChangeKind, isFor kind: ChangeKind, of name: String) throws {
    guard !kind.includes(change) else { return }
    throw StatusError(
      .failedPrecondition,
      "\(name) waits for \(kind.rawValue); this event is \(change.rawValue). "
        + "--before and --data decide which it is."
    )
  }

  /// Returns a hint about how to invoke a function that has no event trigger.
  private func invocationHint(_ name: String, _ endpoint: FunctionEndpoint) -> String {
    if endpoint.scheduleTrigger != nil { return "`hearth functions run \(name)` runs it." }
    if endpoint.callableTrigger != nil { return "`hearth call \(name)` calls it." }
    if endpoint.blockingTrigger != nil { return "it runs when a user signs up or signs in." }
    let url = description().services["functions"].map {
      "http://\($0.host):\($0.port)/\(project)/\(endpoint.regions[0])/\(name)"
    }
    guard endpoint.taskQueueTrigger != nil else {
      return "it is an HTTP function; `curl \(url ?? name)` calls it."
    }
    return
      "it is a task queue; `hearth enqueue \(name)` gives it a task, or `curl -d '{\"data\": {}}' "
      + "-H 'Content-Type: application/json' \(url ?? name)` runs it without one."
  }

  /// Sends one event to one function and reports the outcome.
  private func fire(
    _ name: String,
    _ content: DeliveryEvent.Content,
    _ type: DocumentEventType
  ) async throws -> Response {
    let delivered = DeliveryEvent(content: content, commitTime: time.now, auth: .admin)
    let delivery = Delivery(
      // No commit has a sequence this large, so the event has an id and a trace of its own.
      id: DeliveryID(
        sequence: .random(in: UInt64(UInt32.max)...(1 << 52)),
        changeIndex: 0,
        function: name
      ),
      event: delivered,
      type: type
    )
    let clock = ContinuousClock()
    let start = clock.now
    let reply = try await fleet.invoke(
      deliveryRequest.invocation(for: delivery, bringing: delivered, id: RandomID.make())
    )
    let text = String(buffer: try await reply.body.collect(upTo: Self.fireBytesMax))
    let elapsed = start.duration(to: clock.now)
    let succeeded = reply.head.status.kind == .successful
    return try .json(
      encoding: FireOutcome(
        succeeded: succeeded,
        milliseconds: Int(elapsed / .milliseconds(1)),
        error: succeeded
          ? nil
          : FailureReason(of: reply.head)?.description
            ?? "HTTP \(reply.head.status.code) \(text)"
      )
    )
  }

  /// Handles `POST /hearth/v1/functions/{name}/run`: runs a scheduled function now.
  func runSchedule(_ name: String) async throws -> Response {
    if let unserved = fleet.unserved, !deliveries.isDeployed {
      throw StatusError(.unavailable, unserved.reason)
    }
    let id = try await deliveries.schedules.runNow(name)
    return try .json(encoding: ["id": id.description])
  }

  // MARK: - Deployments

  /// Handles `POST /hearth/v1/deployments?build=false&only=a,b`.
  ///
  /// Streams the progress as lines; the last line is the outcome.
  func deploy(_ query: QueryParameters, _ client: ClientWatch) throws -> Response {
    let deployer = self.deployer
    let builds = query["build"] != "false"
    let only = try names(query["only"], isRequired: false)
    return lines(for: client) { count in
      DeployLine(.progress, "(\(count) lines were left out: they came faster than they were read.)")
    } _: { write in
      await deployer.deploy(builds: builds, only: only) { line in write(line) }
    }
  }

  /// Handles `POST /hearth/v1/deployments/rollback?to=ID`.
  func rollBack(_ query: QueryParameters) async throws -> Response {
    try .json(encoding: await deployer.rollBack(to: query["to"]))
  }

  /// Handles `DELETE /hearth/v1/functions?names=a,b`.
  func deleteFunctions(_ query: QueryParameters) async throws -> Response {
    let names = try names(query["names"], isRequired: true) ?? []
    return try .json(encoding: await deployer.delete(names))
  }

  private func names(_ list: String?, isRequired: Bool) throws -> Set<String>? {
    let names = list?.split(separator: ",").map(String.init) ?? []
    guard names.isEmpty else { return Set(names) }
    guard !isRequired, list == nil else {
      throw StatusError.invalidArgument("Name at least one function.")
    }
    return nil
  }

  /// The maximum size of a body.
  ///
  /// A fired event contains at most two versions of a document: before and after the change.
  private static let fireBytesMax = 4 << 20
}
