/// The functions of a binary, in the JSON form of Firebase's `functions.yaml` (`v1alpha1`).
///
/// A worker outputs it on request (`FUNCTIONS_MANIFEST_OUTPUT_PATH`, `GET /__/functions.yaml`). The
/// deployment validates it; the gateway and the triggers read it.
package struct FunctionManifest: Codable, Sendable, Hashable {
  package var specVersion: String
  /// The endpoints by function name.
  package var endpoints: [String: FunctionEndpoint]

  /// Creates a manifest of the current version.
  package init(endpoints: [String: FunctionEndpoint]) {
    self.specVersion = "v1alpha1"
    self.endpoints = endpoints
  }
}
