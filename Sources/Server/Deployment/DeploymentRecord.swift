package import Invocation

/// What a deployment serves, as `DATA/deployments/ID/deployment.json` keeps it.
package struct DeploymentRecord: Codable, Sendable, Hashable {
  /// The id, which sorts by time: `20261121T061502-x7Kp`.
  package var id: String
  package var project: String
  package var manifest: FunctionManifest
  /// The folder with the `.env` files, which are read again at every start.
  package var environmentFolder: String
  /// By function, the other deployments whose binaries serve this one's functions.
  package var binaries: [String: String]?
  /// When the deployment was made, in RFC 3339; nil in records of older versions.
  package var time: String?
  /// The id of the deployment it replaced, to which a rollback returns.
  package var replaced: String?
  /// What was done, unless everything was deployed.
  package var note: String?

  /// The id of the deployment whose binary serves a function.
  package func binary(of function: String) -> String { binaries?[function] ?? id }

  /// The deployments whose folders this one needs, including its own.
  var folders: Set<String> { Set((binaries ?? [:]).values).union([id]) }
}
