package import Invocation

/// A function of the current deployment, with what its workers need.
package struct DeployedFunction: Sendable, Hashable {
  package var name: String
  package var endpoint: FunctionEndpoint
  /// The path of the binary.
  package var executable: String
  /// The variables that the worker sees besides those that the pool sets.
  package var environment: [String: String]
  package var deploymentID: String

  /// A function with everything that its workers need.
  package init(
    name: String,
    endpoint: FunctionEndpoint,
    executable: String,
    environment: [String: String],
    deploymentID: String
  ) {
    self.name = name
    self.endpoint = endpoint
    self.executable = executable
    self.environment = environment
    self.deploymentID = deploymentID
  }
}

/// The workers and invocations of a function at this moment.
package struct FunctionStatus: Sendable, Hashable, Codable {
  package var name: String
  package var deploymentID: String
  package var workersReady: Int
  package var workers: Int
  package var running: Int
  package var waiting: Int
  package var processes: [WorkerStatus]
  /// Why the last worker could not be started; nil once one has.
  package var startError: String?
}

/// One worker process at this moment.
package struct WorkerStatus: Sendable, Hashable, Codable {
  package var pid: Int32
  /// The memory of the worker and all it has started, at the last look.
  package var memoryBytes: Int
}
