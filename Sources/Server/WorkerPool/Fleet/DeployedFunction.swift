package import Manifests

/// A function of the current deployment and the settings of its workers.
package struct DeployedFunction: Sendable, Hashable {
  package var name: String
  package var endpoint: FunctionEndpoint
  /// The path of the worker binary.
  package var executable: String
  /// The environment variables of the worker, in addition to those that the pool sets.
  package var environment: [String: String]
  package var deploymentID: String

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

/// A snapshot of the workers and invocations of a function.
package struct FunctionStatus: Sendable, Hashable, Codable {
  package var name: String
  package var deploymentID: String
  package var workersReady: Int
  package var workers: Int
  package var running: Int
  package var waiting: Int
  package var processes: [WorkerStatus]
  /// The reason why the function has fewer workers than it needs; nil if it has enough.
  package var shortage: WorkerShortage?
}

/// A reason why a function has fewer workers than it needs.
package struct WorkerShortage: Sendable, Hashable, Codable {
  /// The kinds of reasons.
  package enum Cause: String, Sendable, Codable {
    /// Other workers hold all places, so no further worker can start.
    case placesTaken
    /// The last worker that was started never answered.
    case cannotStart
  }

  package var cause: Cause
  /// An explanation for people: the functions that hold the places, or how the worker ended.
  package var message: String
}

/// A snapshot of one worker process.
package struct WorkerStatus: Sendable, Hashable, Codable {
  package var pid: Int32
  /// The memory of the worker and its descendants, as of the last sample.
  package var memoryBytes: Int
}
