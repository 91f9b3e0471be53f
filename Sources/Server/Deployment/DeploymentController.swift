import Identifiers
package import Logging
package import Manifests
import StatusCodes
package import WorkerPool

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The controller that builds, checks and activates deployments, one at a time.
///
/// A deployment is first built and copied to its own folder, then asked for its manifest. Then its
/// workers start and take over in one step. Only after that will a restart of the server serve it.
/// If any of these steps fails, the previous deployment still serves and stays the current one.
package actor DeploymentController {
  /// The settings of a controller.
  package struct Configuration: Sendable {
    package var project: String
    /// The path of the `DATA/deployments` folder.
    package var folder: String
    /// The environment variables of every worker, such as the addresses of the emulators.
    package var environment: [String: String]

    package init(project: String, folder: String, environment: [String: String]) {
      self.project = project
      self.folder = folder
      self.environment = environment
    }
  }

  /// Throws a `StatusConvertible` if functions cannot be served; it changes nothing.
  package typealias Validate = @Sendable ([String: FunctionEndpoint]) throws -> Void
  /// Replaces the running functions; throws and changes nothing if the new ones do not start.
  package typealias Replace = @Sendable ([DeployedFunction]) async throws -> Void

  private let configuration: Configuration
  private let folder: DeploymentFolder
  private let builder = BinaryBuilder()
  private let check: ManifestCheck
  private let starts: StartWatch
  private let validate: Validate
  private let replace: Replace
  private let now: @Sendable () -> Date
  private let logger: Logger
  private var isBusy = false

  /// Creates a controller that has not deployed anything yet.
  ///
  /// `validate` adds the conditions of other modules that use the functions. It is called before
  /// any deployment starts.
  package init(
    configuration: Configuration,
    manifestTimeout: Duration = ManifestCheck.timeoutDefault,
    starts: StartWatch,
    now: @escaping @Sendable () -> Date,
    logger: Logger,
    validate: @escaping Validate = { _ in },
    replace: @escaping Replace
  ) {
    self.configuration = configuration
    self.folder = DeploymentFolder(path: configuration.folder)
    self.check = ManifestCheck(timeout: manifestTimeout)
    self.starts = starts
    self.validate = validate
    self.now = now
    self.logger = logger
    self.replace = replace
  }

  /// Returns the functions of the last deployment in a folder; nil if there has never been one.
  ///
  /// Throws a `StatusConvertible` if the deployment is damaged or would be refused.
  package static func lastFunctions(
    in folder: String,
    validate: Validate
  ) throws -> [String: FunctionEndpoint]? {
    guard let manifest = try DeploymentFolder(path: folder).current()?.manifest else { return nil }
    try ManifestCheck.validate(manifest)
    try validate(manifest.endpoints)
    return manifest.endpoints
  }

  /// Serves the last deployment again; returns nil if there has never been one.
  ///
  /// Throws `DeploymentError` if the deployment is damaged, cannot be served or has crashed the
  /// server too often, or if another deployment is in progress.
  package func restore() async throws -> DeploymentRecord? {
    try begin()
    defer { isBusy = false }
    guard let record = try folder.current() else { return nil }
    try await starts.allow(record.id)
    let environment = try await serve(record)
    logger.notice("Serving the last deployment", metadata: ["deployment.id": "\(record.id)"])
    // A deployment shows the same sentences, which say what to do.
    for note in missingSecrets(of: record, environment) { logger.warning("\(note)") }
    return record
  }

  /// Deploys a source and returns the deployment that is served from now on.
  ///
  /// With `only`, the functions with these names come from the source, and all others stay
  /// unchanged. A binary that has crashed the server too often is refused, unless `isAsked` is true
  /// because a person requested this deployment. Throws `DeploymentError` or another
  /// `StatusConvertible`, and then leaves everything unchanged. A call during another one throws
  /// `DeploymentError` at once.
  package func deploy(
    _ source: FunctionsSource,
    builds: Bool,
    only: Set<String>? = nil,
    isAsked: Bool = true,
    progress: @escaping @Sendable (String) -> Void
  ) async throws -> DeploymentRecord {
    try begin()
    defer { isBusy = false }
    let environment = try UserEnvironment(folder: source.folder, project: configuration.project)
    let binary = try await builder.binary(of: source, builds: builds, progress: progress)
    let id = makeID()
    do {
      try stage(binary, id)
      let duplicate = isAsked ? nil : try await starts.allow(newDeployment: id)
      progress("Asking the functions binary what it offers …")
      let manifest = try await check.manifest(
        of: folder.binary(id),
        folder: folder.folder(id),
        environment: workerEnvironment(environment)
      )
      let record = try record(id, of: manifest, from: source, only: only)
      progress("Starting \(record.manifest.endpoints.count) functions …")
      try await activate(record, environment, duplicate: duplicate)
      for note in missingSecrets(of: record, environment) { progress(note) }
      return record
    } catch {
      folder.discard(id)
      throw error
    }
  }

  // MARK: - Deployment history

  /// Returns the deployments that can be served again, newest first, and the current one's ID.
  package func deployments() throws -> (current: String?, all: [DeploymentRecord]) {
    (try folder.current()?.id, folder.records())
  }

  /// Serves an earlier deployment again: `id`, or the one that the current one replaced.
  ///
  /// Throws `DeploymentError`, and then leaves everything unchanged.
  package func rollBack(to id: String?) async throws -> DeploymentRecord {
    try begin()
    defer { isBusy = false }
    // A damaged deployment is the best reason to go back to another one.
    let current = try? folder.current()
    let all = folder.records()
    let target = try Self.target(of: id, current: current, among: all)
    try await serve(target)
    do {
      try folder.makeCurrent(target.id)
    } catch {
      try await serveCurrent()
      throw DeploymentError("The rollback cannot be kept in \(folder.path): \(error)")
    }
    logger.notice("Rolled back", metadata: ["deployment.id": "\(target.id)"])
    return target
  }

  /// Serves the current deployment without some of its functions, as a new deployment.
  ///
  /// Throws `DeploymentError` if one of them does not exist, and then leaves everything unchanged.
  package func delete(_ names: Set<String>) async throws -> DeploymentRecord {
    try begin()
    defer { isBusy = false }
    guard let current = try folder.current() else {
      throw DeploymentError("Nothing is deployed, so there is nothing to delete.")
    }
    try Self.check(names, areIn: current.manifest, called: "deployed")
    let id = makeID()
    var record = current
    record.id = id
    record.manifest.endpoints = current.manifest.endpoints.filter { !names.contains($0.key) }
    record.binaries = Dictionary(
      uniqueKeysWithValues: record.manifest.endpoints.keys.map { ($0, current.binary(of: $0)) }
    )
    record.replaced = current.id
    record.time = timestamp()
    record.note = "deleted \(names.sorted().joined(separator: ", "))"
    do {
      try await activate(
        record,
        UserEnvironment(folder: record.environmentFolder, project: configuration.project)
      )
    } catch {
      folder.discard(id)
      throw error
    }
    return record
  }

  /// Restarts the current functions with the current `.env` files.
  ///
  /// Returns nil before the first deployment.
  package func reload() async throws -> DeploymentRecord? {
    try await restore()
  }

  /// Returns the environment of a function's worker, or of a worker for all functions.
  ///
  /// `name` is nil for a worker for all functions. The result does not include the variables that
  /// the pool adds. The files are read again on each call. Before the first deployment, the files
  /// in `source` are read, without secrets.
  package func workerEnvironment(
    of name: String?,
    source: String?
  ) throws -> [String: String] {
    let record = try folder.current()
    guard let folder = record?.environmentFolder ?? source else {
      return configuration.environment
    }
    let environment = try UserEnvironment(folder: folder, project: configuration.project)
    var values = workerEnvironment(environment)
    for (function, endpoint) in record?.manifest.endpoints ?? [:]
    where name == nil || name == function {
      values.merge(environment.secrets(of: endpoint)) { $1 }
    }
    return values
  }

  /// Returns a sentence for each secret that functions declare and that has no value.
  private func missingSecrets(
    of record: DeploymentRecord,
    _ environment: UserEnvironment
  ) -> [String] {
    var readers: [String: [String]] = [:]
    for (name, endpoint) in record.manifest.endpoints {
      for secret in endpoint.secretEnvironmentVariables ?? []
      where environment.secrets[secret.key] == nil {
        readers[secret.key, default: []].append(name)
      }
    }
    return readers.sorted { $0.key < $1.key }.map { secret, functions in
      "The secret \(secret) of \(functions.sorted().joined(separator: ", ")) is not set; "
        + "`hearth functions config set --secret \(secret)` sets it."
    }
  }

  private static func target(
    of id: String?,
    current: DeploymentRecord?,
    among all: [DeploymentRecord]
  ) throws -> DeploymentRecord {
    if let id {
      if let found = all.first(where: { $0.id == id }) { return found }
      let names = all.map(\.id).joined(separator: ", ")
      throw DeploymentError(
        "There is no deployment \(id). Kept are: \(names.isEmpty ? "none" : names)."
      )
    }
    let before =
      all.first { $0.id == current?.replaced }
      // The deployment that it replaced may be gone; then use the newest one before it.
      ?? all.drop { $0.id != current?.id }.dropFirst().first
    guard let before else {
      throw DeploymentError("There is no earlier deployment to go back to.")
    }
    return before
  }

  private static func check(
    _ names: Set<String>,
    areIn manifest: FunctionManifest,
    called adjective: String
  ) throws {
    let unknown = names.subtracting(manifest.endpoints.keys).sorted()
    guard unknown.isEmpty else {
      let known = manifest.endpoints.keys.sorted().joined(separator: ", ")
      let question = NearestName.question(unknown[0], among: manifest.endpoints.keys.sorted())
      throw DeploymentError(
        "No function \(unknown.joined(separator: ", ")) is \(adjective).\(question) "
          + "Functions: \(known)."
      )
    }
  }

  private func record(
    _ id: String,
    of manifest: FunctionManifest,
    from source: FunctionsSource,
    only: Set<String>?
  ) throws -> DeploymentRecord {
    // A damaged record contains nothing to keep, and this deployment replaces it.
    let current = try? folder.current()
    var record = DeploymentRecord(
      id: id,
      project: configuration.project,
      manifest: manifest,
      environmentFolder: source.folder,
      time: timestamp(),
      replaced: current?.id
    )
    guard let only else { return record }
    try Self.check(only, areIn: manifest, called: "in the package")
    record.manifest.endpoints = manifest.endpoints.filter { only.contains($0.key) }
    record.note = "only \(only.sorted().joined(separator: ", "))"
    guard let current else { return record }
    record.binaries = [:]
    for (name, endpoint) in current.manifest.endpoints where !only.contains(name) {
      record.manifest.endpoints[name] = endpoint
      record.binaries?[name] = current.binary(of: name)
    }
    return record
  }

  private func activate(
    _ record: DeploymentRecord,
    _ environment: UserEnvironment,
    duplicate: String? = nil
  ) async throws {
    try await start(record, environment, duplicate: duplicate)
    do {
      try folder.makeCurrent(record)
    } catch {
      // The next start would serve the previous deployment, so it is served now, too.
      try await serveCurrent()
      throw DeploymentError("The deployment cannot be kept in \(folder.path): \(error)")
    }
    folder.prune(current: record)
    logger.notice(
      "Deployed",
      metadata: [
        "deployment.id": "\(record.id)", "function.count": "\(record.manifest.endpoints.count)",
      ]
    )
  }

  private func begin() throws {
    guard !isBusy else {
      var error = DeploymentError("Another deployment is under way; try again when it has ended.")
      error.isBusy = true
      throw error
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
    // A damaged record cannot be served.
    if let record = try? folder.current() {
      try await serve(record)
    } else {
      try await replace([])
      await starts.fail()
    }
  }

  /// Serves a deployment with the environment of its files, which it returns.
  @discardableResult
  private func serve(_ record: DeploymentRecord) async throws -> UserEnvironment {
    let environment = try UserEnvironment(
      folder: record.environmentFolder,
      project: configuration.project
    )
    try await start(record, environment)
    return environment
  }

  /// Activates a deployment; its start stays on record until the server has survived it.
  private func start(
    _ record: DeploymentRecord,
    _ environment: UserEnvironment,
    duplicate: String? = nil
  ) async throws {
    try validate(record)
    await starts.begin(record.id, duplicate: duplicate)
    do {
      try await replace(functions(of: record, environment))
    } catch {
      await starts.fail()
      throw error
    }
    await starts.succeed(record.id)
  }

  /// Throws `DeploymentError` unless all readers of the record's functions accept them.
  private func validate(_ record: DeploymentRecord) throws {
    do {
      try ManifestCheck.validate(record.manifest)
      try validate(record.manifest.endpoints)
    } catch let error as any StatusConvertible {
      throw DeploymentError("Deployment \(record.id) cannot be served. \(error.statusMessage)")
    }
  }

  private func functions(
    of record: DeploymentRecord,
    _ environment: UserEnvironment
  ) -> [DeployedFunction] {
    let shared = workerEnvironment(environment)
    return record.manifest.endpoints.sorted { $0.key < $1.key }.map { name, endpoint in
      DeployedFunction(
        name: name,
        endpoint: endpoint,
        executable: folder.binary(record.binary(of: name)),
        environment: shared.merging(environment.secrets(of: endpoint)) { $1 },
        deploymentID: record.id
      )
    }
  }

  /// Merges the variables of the user's files with the server's own, which take precedence.
  private func workerEnvironment(_ environment: UserEnvironment) -> [String: String] {
    environment.variables.merging(configuration.environment) { $1 }
  }

  /// Formats the current time in RFC 3339 with milliseconds, so that records sort by it.
  private func timestamp() -> String {
    now().formatted(
      .iso8601.year().month().day().timeZone(separator: .omitted)
        .time(includingFractionalSeconds: true).timeSeparator(.colon)
    )
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
