import Manifests
import Synchronization

/// The deployed functions, shared by all parts of the delivery service.
final class FunctionRegistry: Sendable {
  /// One deployment with the values derived from it.
  struct Deployment: Sendable {
    let endpoints: [String: FunctionEndpoint]
    let table: TriggerTable
    let retries: [String: DeliveryRetries]
    let limits: [String: DispatchLimits]
    /// The retry policies of the previous deployment, for deliveries that may still run.
    fileprivate(set) var formerRetries: [String: DeliveryRetries] = [:]

    /// Creates a deployment.
    ///
    /// Throws a `StatusConvertible` that names a function with an invalid trigger.
    init(_ endpoints: [String: FunctionEndpoint]) throws {
      self.endpoints = endpoints
      table = try TriggerTable(functions: endpoints)
      retries = endpoints.mapValues { DeliveryRetries($0) }
      limits = endpoints.mapValues { DispatchLimits($0) }
    }
  }

  private let deployment = Mutex<Deployment?>(nil)

  /// The current deployment; nil before the first one.
  var current: Deployment? { deployment.withLock { $0 } }

  /// Returns the retry policy for failed deliveries of a function.
  func retries(of function: String) -> DeliveryRetries {
    let current = current
    return current?.retries[function] ?? current?.formerRetries[function] ?? DeliveryRetries()
  }

  /// Indicates whether a function is deployed that receives requests rather than events.
  func takesRequests(_ function: String) -> Bool {
    guard let endpoint = current?.endpoints[function] else { return false }
    return endpoint.httpsTrigger != nil || endpoint.callableTrigger != nil
      || endpoint.taskQueueTrigger != nil
  }

  /// Replaces the current deployment.
  func update(_ new: Deployment) {
    deployment.withLock { deployment in
      let former = deployment?.retries ?? [:]
      deployment = new
      deployment?.formerRetries = former
    }
  }
}
