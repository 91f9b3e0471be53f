package import Invocation

/// A function of the current deployment, as its workers are started.
package struct DeployedFunction: Sendable, Hashable {
  package var name: String
  package var endpoint: FunctionEndpoint
  /// The path of the binary.
  package var executable: String
  /// What the worker sees besides the variables that the pool sets itself.
  package var environment: [String: String]
  package var deploymentID: String

  /// A function with all that its workers need.
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

/// How many workers and invocations a function has at this moment.
package struct FunctionStatus: Sendable, Hashable, Codable {
  package var name: String
  package var deploymentID: String
  package var workersReady: Int
  package var workers: Int
  package var running: Int
  package var waiting: Int
  package var processes: [WorkerStatus]
}

/// One worker process as it is at this moment.
package struct WorkerStatus: Sendable, Hashable, Codable {
  package var pid: Int32
  /// With all that it has started, when it was last looked at.
  package var memoryBytes: Int
}
