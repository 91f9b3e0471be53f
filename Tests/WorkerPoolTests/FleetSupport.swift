import Foundation
import HTTPMessages
import HTTPTypes
import Invocation
import LibC
import Logging
import Manifests
import NIOCore
import TestSupport
import Testing

@testable import WorkerPool

/// Sample functions as a deployment provides them.
func sample(
  _ names: [String],
  executable: String? = nil,
  environment: [String: String] = [:],
  configure: (inout FunctionEndpoint) -> Void = { _ in }
) throws -> [DeployedFunction] {
  let executable = try executable ?? BuiltProduct.path("SampleFunctions")
  return names.map { name in
    var endpoint = FunctionEndpoint(entryPoint: name)
    configure(&endpoint)
    return DeployedFunction(
      name: name,
      endpoint: endpoint,
      executable: executable,
      environment: environment,
      deploymentID: "d"
    )
  }
}

func withFleet(
  _ names: [String],
  _ configuration: WorkerFleet.Configuration = .init(),
  _ body: (WorkerFleet, FunctionLogStore) async throws -> Void
) async throws {
  try await withFleet(sample(names), configuration, body)
}

/// Runs `body` with a fleet and waits until the fleet's processes are gone.
func withFleet(
  _ functions: [DeployedFunction],
  _ configuration: WorkerFleet.Configuration = .init(),
  _ body: (WorkerFleet, FunctionLogStore) async throws -> Void
) async throws {
  let log = FunctionLogStore(now: { Date() })
  let fleet = WorkerFleet(configuration: configuration, log: log, logger: .silent)
  // Runs until `stop` below.
  let running = Task { try await fleet.run() }
  let result: Result<Void, any Error>
  do {
    try await fleet.replaceFunctions(functions)
    try await body(fleet, log)
    result = .success(())
  } catch {
    result = .failure(error)
  }
  fleet.stop(after: .zero)
  try await running.value
  try result.get()
}

extension WorkerFleet {
  /// The number of running invocations of all functions.
  var running: Int { statuses().reduce(0) { $0 + $1.running } }

  /// Returns once `count` invocations run.
  func waitForRunning(_ count: Int = 1) async {
    await eventually("\(count) invocations run") { running >= count }
  }

  /// Kills all workers and returns once the fleet knows that they are gone.
  func killWorkers() async {
    for process in statuses().flatMap(\.processes) { kill(process.pid, SIGKILL) }
    await eventually("the workers are gone") { statuses().allSatisfy { $0.workers == 0 } }
  }

  func call(
    _ function: String,
    _ body: String = #"{"data":null}"#,
    id: String = "test",
    timeout: Duration? = nil
  ) async throws -> Response {
    try await invoke(invocation(function, body, id: id, timeout: timeout))
  }
}

/// An invocation as a callable's client sends it.
func invocation(
  _ function: String,
  _ body: String = #"{"data":null}"#,
  id: String = "test",
  timeout: Duration? = nil
) -> InvocationRequest {
  InvocationRequest(
    id: id,
    function: function,
    head: HTTPRequest(
      method: .post,
      scheme: nil,
      authority: nil,
      path: "/",
      headerFields: [.contentType: "application/json"]
    ),
    body: ByteBuffer(string: body),
    timeout: timeout
  )
}

extension Response {
  var text: String {
    get async throws { String(buffer: try await body.collect(upTo: 1 << 20)) }
  }

  /// The number in `{"result":1}`; 0 for anything else.
  var number: Int {
    guard case .whole(let buffer) = body else { return 0 }
    return Int(String(buffer: buffer).filter(\.isNumber)) ?? 0
  }
}
