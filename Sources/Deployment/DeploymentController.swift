import Invocation
package import Logging
import RuntimeSupport
package import WorkerPool

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// Builds, checks and switches deployments, one at a time.
///
/// A deployment is first built and copied aside, then asked for its manifest, then its workers are
/// started and take over in one step; only then does it become the one that a restart serves. When
/// any of that fails, what served before still serves and still is the current one.
package actor DeploymentController {
  /// What a controller is told from outside.
  package struct Configuration: Sendable {
    package var project: String
    /// `DATA/deployments`.
    package var folder: String
    /// What every worker sees, such as the addresses of the emulators.
    package var environment: [String: String]

    /// The settings of one suite.
    package init(project: String, folder: String, environment: [String: String]) {
      self.project = project
      self.folder = folder
      self.environment = environment
    }
  }

  /// Puts functions in the place of those that run; throws and changes nothing when they do not
  /// start.
  package typealias Replace = @Sendable ([DeployedFunction]) async throws -> Void

  private let configuration: Configuration
  private let folder: DeploymentFolder
  private let builder = FunctionsBuilder()
  private let check: ManifestCheck
  private let replace: Replace
  private let now: @Sendable () -> Date
  private let logger: Logger
  private var isBusy = false

  /// A controller that has deployed nothing yet.
  package init(
    configuration: Configuration,
    manifestTimeout: Duration = .seconds(10),
    now: @escaping @Sendable () -> Date,
    logger: Logger,
    replace: @escaping Replace
  ) {
    self.configuration = configuration
    self.folder = DeploymentFolder(path: configuration.folder)
    self.check = ManifestCheck(timeout: manifestTimeout)
    self.now = now
    self.logger = logger
    self.replace = replace
  }

  /// Serves the last deployment again; nil when there has been none.
  ///
  /// Throws `DeploymentError` when it is damaged, or when another deployment is under way.
  package func restore() async throws -> DeploymentRecord? {
    try begin()
    defer { isBusy = false }
    guard let record = try folder.current() else { return nil }
    try await serve(record)
    logger.notice("Serving the last deployment", metadata: ["deployment.id": "\(record.id)"])
    return record
  }

  /// Deploys a source and returns what is served from now on.
  ///
  /// Throws `DeploymentError`, or another `StatusConvertible`, with everything as it was before;
  /// a second call while one runs throws `DeploymentError` at once.
  package func deploy(
    _ source: FunctionsSource,
    builds: Bool,
    progress: @escaping @Sendable (String) -> Void
  ) async throws -> DeploymentRecord {
    try begin()
    defer { isBusy = false }
    let environment = try UserEnvironment(folder: source.folder, project: configuration.project)
    let binary = try await builder.binary(of: source, builds: builds, progress: progress)
    let id = makeID()
    do {
      try stage(binary, id)
      let record = try await activate(id, source, environment)
      folder.prune(current: id)
      return record
    } catch {
      folder.discard(id)
      throw error
    }
  }

  private func activate(
    _ id: String,
    _ source: FunctionsSource,
    _ environment: UserEnvironment
  ) async throws -> DeploymentRecord {
    let manifest = try await check.manifest(
      of: folder.binary(id),
      folder: folder.folder(id),
      environment: workerEnvironment(environment)
    )
    let record = DeploymentRecord(
      id: id,
      project: configuration.project,
      manifest: manifest,
      environmentFolder: source.folder
    )
    try await replace(functions(of: record, environment))
    do {
      try folder.makeCurrent(record)
    } catch {
      // The next start would serve what was before, so that is what serves now, too.
      try await serveCurrent()
      throw DeploymentError("The deployment cannot be kept in \(folder.path): \(error)")
    }
    logger.notice(
      "Deployed",
      metadata: ["deployment.id": "\(id)", "function.count": "\(manifest.endpoints.count)"]
    )
    return record
  }

  private func begin() throws {
    guard !isBusy else {
      throw DeploymentError("Another deployment is under way; try again when it has ended.")
    }
    isBusy = true
  }

  private func stage(_ binary: String, _ id: String) throws {
    do {
      try folder.stage(binary, id: id)
    } catch {
      throw DeploymentError("The functions cannot be copied to \(folder.path): \(error)")
    }
  }

  private func serveCurrent() async throws {
    if let record = try folder.current() {
      try await serve(record)
    } else {
      try await replace([])
    }
  }

  private func serve(_ record: DeploymentRecord) async throws {
    let environment = try UserEnvironment(
      folder: record.environmentFolder,
      project: configuration.project
    )
    try await replace(functions(of: record, environment))
  }

  private func functions(
    of record: DeploymentRecord,
    _ environment: UserEnvironment
  ) -> [DeployedFunction] {
    record.manifest.endpoints.sorted { $0.key < $1.key }.map { name, endpoint in
      var values = workerEnvironment(environment)
      for secret in endpoint.secretEnvironmentVariables ?? [] {
        values[secret.key] = environment.secrets[secret.key]
      }
      return DeployedFunction(
        name: name,
        endpoint: endpoint,
        executable: folder.binary(record.id),
        environment: values,
        deploymentID: record.id
      )
    }
  }

  /// The server's own settings win over the user's files.
  private func workerEnvironment(_ environment: UserEnvironment) -> [String: String] {
    environment.variables.merging(configuration.environment) { $1 }
  }

  private func makeID() -> String {
    let style = Date.ISO8601FormatStyle(
      dateSeparator: .omitted,
      dateTimeSeparator: .standard,
      timeSeparator: .omitted
    )
    let time = now().formatted(style).prefix(15)
    return "\(time)-\(RandomID.make(length: 4))"
  }
}
