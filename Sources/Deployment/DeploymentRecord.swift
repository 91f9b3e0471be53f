package import Invocation

/// One built version of all functions, as `DATA/deployments/ID/deployment.json` keeps it.
package struct DeploymentRecord: Codable, Sendable, Hashable {
  /// Sorts by time: `20261121T061502-x7Kp`.
  package var id: String
  package var project: String
  package var manifest: FunctionManifest
  /// The folder with the `.env` files, read again at every start.
  package var environmentFolder: String
}
