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
  /// Why the function has fewer workers than it needs; nil when it has enough.
  package var shortage: WorkerShortage?
}

/// Why a function has fewer workers than it needs.
package struct WorkerShortage: Sendable, Hashable, Codable {
  /// The kinds of reasons.
  package enum Cause: String, Sendable, Codable {
    /// No place is left for another worker; other workers hold them.
    case placesTaken
    /// The last worker that was started did not come to answer.
    case cannotStart
  }

  package var cause: Cause
  /// A sentence for people: who holds the places, or how the worker ended.
  package var message: String
}

/// One worker process at this moment.
package struct WorkerStatus: Sendable, Hashable, Codable {
  package var pid: Int32
  /// The memory of the worker and all it has started, at the last look.
  package var memoryBytes: Int
}
