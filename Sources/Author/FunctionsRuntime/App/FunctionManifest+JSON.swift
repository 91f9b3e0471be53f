import JSONText
package import Manifests

extension FunctionManifest {
  /// The manifest as JSON, which is also valid YAML.
  ///
  /// The keys are sorted so that equal apps produce equal text.
  package var json: String {
    do {
      return String(decoding: try jsonBytes(isPretty: true), as: UTF8.self)
        + "\n"
    } catch {
      preconditionFailure("a manifest holds only strings, numbers and booleans: \(error)")
    }
  }
}
