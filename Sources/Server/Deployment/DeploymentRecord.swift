package import Manifests

/// The functions of a deployment, as stored in `DATA/deployments/ID/deployment.json`.
package struct DeploymentRecord: Codable, Sendable, Hashable {
  /// The ID, which sorts by time: `20261121T061502-x7Kp`.
  package var id: String
  package var project: String
  package var manifest: FunctionManifest
  /// The folder with the `.env` files, which are read again at every start.
  package var environmentFolder: String
  /// The IDs of other deployments whose binaries serve functions of this one, by function.
  package var binaries: [String: String]?
  /// The time of the deployment, in RFC 3339; nil in records of older versions.
  package var time: String?
  /// The ID of the deployment it replaced, which a rollback restores.
  package var replaced: String?
  /// A note about a partial deployment; nil if everything was deployed.
  package var note: String?

  /// Returns the ID of the deployment whose binary serves a function.
  package func binary(of function: String) -> String { binaries?[function] ?? id }

  /// The IDs of the deployments whose folders this one needs, including its own.
  var folders: Set<String> { Set((binaries ?? [:]).values).union([id]) }
}
