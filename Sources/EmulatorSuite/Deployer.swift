import Deployment
import Invocation
import Logging
import RuntimeSupport
import TriggerDelivery

/// Deploys, and tells the triggers which functions there are from then on.
struct Deployer: Sendable {
  let controller: DeploymentController
  let deliveries: DeliveryService
  /// Nil when `firebase.json` names no functions.
  let source: FunctionsSource?
  let logger: Logger

  /// Serves the last deployment again; false when there has been none or it does not start.
  func restore() async -> Bool {
    do {
      guard let record = try await controller.restore() else { return false }
      try await deliveries.updateFunctions(record.manifest.endpoints)
      return true
    } catch {
      logger.error(
        "The last deployment cannot be served",
        metadata: ["error": "\(Self.text(error))"]
      )
      return false
    }
  }

  /// Deploys and reports each step; the last line says how it ended, and a problem is returned.
  @discardableResult
  func deploy(
    builds: Bool,
    report: @escaping @Sendable (DeployLine) -> Void
  ) async -> String? {
    do {
      guard let source else {
        throw DeploymentError(
          "firebase.json names no functions; add {\"functions\": {\"source\": \"FOLDER\"}} and "
            + "start again."
        )
      }
      let record = try await controller.deploy(source, builds: builds) { line in
        report(DeployLine(.progress, line))
      }
      try await deliveries.updateFunctions(record.manifest.endpoints)
      let names = record.manifest.endpoints.keys.sorted().joined(separator: ", ")
      report(DeployLine(.deployed, "Deployed \(record.id): \(names)"))
      return nil
    } catch {
      let text = Self.text(error)
      report(DeployLine(.failed, text))
      return text
    }
  }

  private static func text(_ error: any Error) -> String {
    (error as? any StatusConvertible)?.statusMessage ?? "\(error)"
  }
}
