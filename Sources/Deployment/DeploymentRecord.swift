package import Invocation

/// What was served from one moment on, as `DATA/deployments/ID/deployment.json` keeps it.
package struct DeploymentRecord: Codable, Sendable, Hashable {
  /// Sorts by time: `20261121T061502-x7Kp`.
  package var id: String
  package var project: String
  package var manifest: FunctionManifest
  /// The folder with the `.env` files, read again at every start.
  package var environmentFolder: String
  /// The deployments whose binaries serve functions that this one did not bring itself, by the
  /// function's name.
  package var binaries: [String: String]?
  /// When it was made, RFC 3339; records of older versions have none.
  package var time: String?
  /// What was current before; a rollback goes there.
  package var replaced: String?
  /// What was done, when it was not a deployment of everything.
  package var note: String?

  /// The id of the deployment whose binary serves a function.
  package func binary(of function: String) -> String { binaries?[function] ?? id }

  /// The deployments whose folders this one needs, its own included.
  var folders: Set<String> { Set((binaries ?? [:]).values).union([id]) }
}
