package import Manifests

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The reader of a functions source's manifest, which deploys nothing.
package struct ManifestReader: Sendable {
  /// The functions of a source and the binary that offers them.
  package struct Functions: Sendable, Hashable {
    package var manifest: FunctionManifest
    /// The path of the binary; its last part is the name of the product.
    package var binary: String
    /// The variables of `.env` and `.env.{project}`, without those of this machine and secrets.
    package var variables: [String: String]
  }

  package init() {}

  /// Builds the source if asked, as a deployment does, and asks the binary for its functions.
  ///
  /// `environment` is that of the binary. Throws `DeploymentError` with the compiler's or the
  /// binary's output, and for a malformed `.env` file.
  package func functions(
    of source: FunctionsSource,
    builds: Bool,
    project: String,
    environment: [String: String],
    progress: @escaping @Sendable (String) -> Void
  ) async throws -> Functions {
    let authors = try UserEnvironment(folder: source.folder, project: project)
    let binary = try await BinaryBuilder().binary(of: source, builds: builds, progress: progress)
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "hearth-manifest-\(UUID().uuidString)"
    )
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // The folder has only the manifest; one that stays behind harms nobody.
    defer { try? FileManager.default.removeItem(at: folder) }
    let manifest = try await ManifestCheck().manifest(
      of: binary,
      folder: folder.path,
      environment: environment.merging(authors.variables) { $1 }
    )
    return Functions(
      manifest: manifest,
      binary: binary,
      variables: try UserEnvironment.shared(folder: source.folder, project: project)
    )
  }
}
