import Deployment
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Identifiers
import JSONText
import Logging
import Manifests
import NIOCore
import StatusCodes
import TriggerDelivery
import WorkerPool

/// Workers that a developer has started in a debugger.
extension ControlAPI {
  /// Handles `GET /hearth/v1/workers/environment?function=NAME`.
  ///
  /// Returns the environment of a deployed worker. Without a name, it includes the secrets of all
  /// functions, because one process runs them all.
  func workerEnvironment(_ query: QueryParameters) async throws -> Response {
    let source = deployer.source?.folder
    return try .json(
      encoding: await deployer.controller.workerEnvironment(of: query["function"], source: source)
    )
  }

  /// Handles `POST /hearth/v1/workers`: the process runs its functions while the response is open.
  func attachWorker(_ request: Request, _ client: ClientWatch) async throws -> Response {
    let body = try await request.wholeBody(upTo: Self.registrationBytesMax)
    let registration: WorkerRegistration
    do {
      registration = try WorkerRegistration(decodingJSON: body.readableBytesView)
    } catch {
      throw StatusError.invalidArgument("A worker's registration has pid, port and manifest.")
    }
    guard (1...65_535).contains(registration.port) else {
      throw StatusError.invalidArgument("The worker's port is \(registration.port), which is none.")
    }
    var endpoints = registration.manifest.endpoints
    if let target = registration.target { endpoints = endpoints.filter { $0.key == target } }
    guard !endpoints.isEmpty else {
      throw StatusError.invalidArgument("The worker has no function that it could run.")
    }
    do {
      try ManifestCheck.validate(endpoints)
      try TriggerCheck.validate(endpoints)
    } catch let error as any StatusConvertible {
      throw StatusError.invalidArgument(error.statusMessage)
    }
    let worker = DebuggerWorker(
      pid: registration.pid,
      port: registration.port,
      endpoints: endpoints
    )
    let id = RandomID.make()
    let reply = Response.Body.produced { write in
      logger.notice(
        "A debugger's process takes functions",
        metadata: ["process": "\(worker.pid)", "functions": "\(worker.endpoints.keys.sorted())"]
      )
      do {
        try await client.whileConnected {
          try await hold(worker, id) { line in
            try await write(ByteBuffer(bytes: try line.jsonBytes() + [0x0A]))
          }
        }
      } catch {
        logger.debug("A debugger's process has left", metadata: ["error": "\(error)"])
      }
      fleet.detach(id)
      try await updateTriggers()
    }
    return Response(status: .ok, headers: [.contentType: "application/x-ndjson"], body: reply)
  }

  /// Handles `DELETE /hearth/v1/workers/ID`.
  ///
  /// The process receives no new invocations, but may finish running ones.
  func releaseWorker(_ id: String) async throws -> Response {
    await fleet.release(id)
    try await updateTriggers()
    return .json("{}")
  }

  /// Routes functions to the process until the task is cancelled or a line cannot be written.
  private func hold(
    _ worker: DebuggerWorker,
    _ id: String,
    write: (WorkerLine) async throws -> Void
  ) async throws {
    let fleet = self.fleet
    try await withTaskCancellationHandler {
      try await fleet.attach(worker, id: id)
    } onCancel: {
      fleet.detach(id)
    }
    try await updateTriggers()
    try await write(WorkerLine(id: id, functions: worker.endpoints.keys.sorted()))
    while true {
      // This prevents an idle timeout of the connection, and detects when the other end is lost.
      try await Task.sleep(for: Self.sayAliveInterval)
      try await write(WorkerLine(id: id, functions: []))
    }
  }

  /// Updates the functions that receive events, including those that only a debugger runs.
  ///
  /// Does nothing before the first deployment if one is expected, because events wait for it.
  private func updateTriggers() async throws {
    guard fleet.isDeployed || deployer.source == nil else { return }
    try deliveries.updateFunctions(fleet.endpoints)
  }

  /// The maximum size of a registration: a manifest and the other fields.
  private static let registrationBytesMax = FunctionLimits.manifestBytesMax + 1024
  private static let sayAliveInterval = Duration.seconds(60)
}
