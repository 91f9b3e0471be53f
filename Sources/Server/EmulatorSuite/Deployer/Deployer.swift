import Manifests
import Deployment
import Logging
import StatusCodes
import TriggerDelivery
import WorkerPool

/// The component that deploys functions and then updates their triggers.
struct Deployer: Sendable {
  let controller: DeploymentController
  let deliveries: DeliveryService
  let fleet: WorkerFleet
  /// The source of the functions; nil if `firebase.json` does not name one.
  let source: FunctionsSource?
  let logger: Logger

  /// Returns the last deployment in a folder, which is not served yet.
  ///
  /// If there is none, returns the first deployment if the start makes it, otherwise nil.
  static func unserved(in folder: String, deploysFirst: Bool) -> UnservedDeployment? {
    let reason = "The suite is starting and does not run its functions yet; try again in a moment."
    do {
      let last = try DeploymentController.lastFunctions(
        in: folder,
        validate: TriggerCheck.validate
      )
      guard last != nil || deploysFirst else { return nil }
      return UnservedDeployment(endpoints: last, isFirst: last == nil, reason: reason)
    } catch {
      // `restore` fails for the same reason, and reports it.
      return UnservedDeployment(endpoints: nil, reason: reason)
    }
  }

  /// Serves the last deployment again, if there is one and it starts.
  func restore() async {
    do {
      guard let record = try await controller.restore() else { return }
      _ = try await update(record)
    } catch {
      fleet.unserved?.reason = """
        The last deployment could not be served, so its functions do not run. The log of the suite \
        says why; `hearth deploy` replaces it.
        """
      logger.error(
        "The last deployment cannot be served",
        metadata: ["error": "\(StatusError.message(of: error))"]
      )
    }
  }

  /// Deploys and reports each step; the last line reports the outcome.
  ///
  /// Unless `isAsked`, functions that have crashed the server too often are refused. Returns the
  /// error message, or nil on success.
  @discardableResult
  func deploy(
    builds: Bool,
    only: Set<String>? = nil,
    isAsked: Bool = true,
    report: @escaping @Sendable (DeployLine) -> Void
  ) async -> String? {
    do {
      let text = try await deployOnce(builds: builds, only: only, isAsked: isAsked) { line in
        report(DeployLine(.progress, line))
      }
      report(DeployLine(.deployed, text))
      return nil
    } catch {
      let text = explanation(of: error)
      report(DeployLine(.failed, text))
      return text
    }
  }

  /// Returns the message of a failed deployment, which also says if an earlier one keeps serving.
  func explanation(of error: any Error) -> String {
    let message = StatusError.message(of: error)
    // The other deployment decides what serves next.
    let isBusy = (error as? DeploymentError)?.isBusy == true
    guard !isBusy, fleet.unserved == nil, !fleet.endpoints.isEmpty else { return message }
    return "\(message)\nThe last deployment keeps serving."
  }

  /// Deploys and returns a summary, with a line for each function whose events are affected.
  func deployOnce(
    builds: Bool,
    only: Set<String>? = nil,
    isAsked: Bool = true,
    progress: @escaping @Sendable (String) -> Void
  ) async throws -> String {
    guard let source else {
      throw DeploymentError(
        "firebase.json names no functions; add {\"functions\": {\"source\": \"FOLDER\"}} and "
          + "start again."
      )
    }
    let record = try await controller.deploy(
      source,
      builds: builds,
      only: only,
      isAsked: isAsked,
      progress: progress
    )
    let effects = try await update(record)
    let names = (only ?? Set(record.manifest.endpoints.keys)).sorted().joined(separator: ", ")
    return (["Deployed \(record.id): \(names)"] + effects.sentences).joined(separator: "\n")
  }

  /// Serves an earlier deployment again; nil means the previous one.
  func rollBack(to id: String?) async throws -> DeploymentDescription {
    try await serving(await controller.rollBack(to: id))
  }

  /// Stops serving the functions with these names.
  func delete(_ names: Set<String>) async throws -> DeploymentDescription {
    try await serving(await controller.delete(names))
  }

  /// Restarts the functions with the current `.env` files; returns false if nothing is deployed.
  func reload() async throws -> Bool {
    guard let record = try await controller.reload() else { return false }
    _ = try await serving(record)
    return true
  }

  /// Returns the deployments that can be served again, newest first.
  func deployments() async throws -> [DeploymentDescription] {
    let (current, all) = try await controller.deployments()
    return all.map { DeploymentDescription($0, isCurrent: $0.id == current) }
  }

  private func serving(_ record: DeploymentRecord) async throws -> DeploymentDescription {
    let effects = try await update(record)
    var description = DeploymentDescription(record, isCurrent: true)
    description.effects = effects.sentences.isEmpty ? nil : effects.sentences
    return description
  }

  /// Updates the triggers to the functions of a deployment, and keeps those of debuggers.
  private func update(_ record: DeploymentRecord) async throws -> DeploymentEffects {
    let effects = try deliveries.updateFunctions(
      record.manifest.endpoints.merging(fleet.debuggedEndpoints) { $1 }
    )
    fleet.unserved = nil
    return effects
  }
}

extension DeploymentDescription {
  /// Creates the description of a stored deployment.
  init(_ record: DeploymentRecord, isCurrent: Bool) {
    self.init(
      id: record.id,
      time: record.time,
      isCurrent: isCurrent,
      functions: record.manifest.endpoints.keys.sorted(),
      note: record.note,
      protocolVersion: record.manifest.specVersion
    )
  }
}
